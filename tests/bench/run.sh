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
python3 "$(dirname "$0")/macro.py" "$folder" "$folder/bench.jsonl"
exit $agreed
