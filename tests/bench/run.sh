#!/usr/bin/env bash
# Runs the benchmarks of a build folder: micro (Google Benchmark), peers (the same flows on SimGrid and on a plain solver)
# and macro (the library's largest scenarios, one core).
# `growth` and `instructions` (needs valgrind) take minutes and run only when named.
# usage: run.sh BUILD_FOLDER [FILTER [OPTION OF peers/compare.py...]]; without a filter the peers are run with --quick
# appends one JSON line per peer case and macro run to BUILD_FOLDER/bench.jsonl
set -euo pipefail
folder=$1
filter=${2:-.}
case $filter in
  growth) exec python3 "$(dirname "$0")/growth.py" "$folder" "${@:3}" ;;
  instructions) exec "$(dirname "$0")/instructions.sh" "$folder" ;;
esac
(($# > 1)) && peers=("${@:3}") || peers=(--quick)

for program in "$folder"/tests/bench_*; do
  [[ -x $program && $(basename "$program") =~ $filter ]] || continue
  printf '\n== %s\n' "$(basename "$program")"
  "$program" --benchmark_counters_tabular=true --benchmark_min_time=0.2
done

agreed=0
if [[ peers =~ $filter ]]; then
  printf '\n== peers: the same flows elsewhere\n'
  python3 "$(dirname "$0")/peers/compare.py" "$folder/tests/bench/peers" --history "$folder/bench.jsonl" "${peers[@]}" || agreed=1
fi

[[ macro =~ $filter ]] || exit $agreed
printf '\n== macro: whole runs on one core\n'
printf '%-28s %10s %10s %12s %12s %10s\n' scenario 'wall s' 'CPU s' 'peak MiB' 'events' 'step s'
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
for scenario in llama3-405b-16k llama3-405b-131072 scaling-8-to-16384; do
  python3 - "$folder/clustersim" "$scenario" "$commit" "$folder/bench.jsonl" <<'PYTHON'
import json, os, resource, subprocess, sys, time
program, scenario, commit, history = sys.argv[1:]
started = time.monotonic()
command = [program, "run", scenario, "--json", "--no-output"]
output = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
wall = time.monotonic() - started
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
points = output.get("points", [output])
row = {"commit": commit, "bench": scenario, "wall_s": round(wall, 3), "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
       "peak_rss_mib": round(usage.ru_maxrss / 1024, 1), "events": sum(p["events"] for p in points),
       "step_time_s": points[-1]["step_time_s"]}
print(f'{scenario:<28} {row["wall_s"]:>10.3f} {row["cpu_s"]:>10.3f} {row["peak_rss_mib"]:>12.1f} {row["events"]:>12} {row["step_time_s"]:>10.4f}')
with open(history, "a") as file:
    file.write(json.dumps(row) + "\n")
PYTHON
done
exit $agreed
