#!/usr/bin/env bash
# Instruction counts of three fixed runs under callgrind: they do not depend on what else the machine does, so changes of
# a percent show. usage: instructions.sh BUILD_FOLDER
set -euo pipefail
folder=$1
count() {
  local name=$1; shift
  local log
  log=$(mktemp)
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" >/dev/null 2>"$log" || { tail "$log" >&2; exit 1; }
  printf '| %s | %s |\n' "$name" "$(sed -n 's/.*Collected : *\([0-9]*\)$/\1/p' "$log" | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta')"
  rm -f "$log"
}
printf '| run | instructions |\n|---|--:|\n'
count "llama3-405b-16k, lumped" "$folder/clustersim" run llama3-405b-16k --no-output --json
count "all-to-all of unequal sizes, 64 hosts, fat tree" "$folder/tests/bench/peers/clustersim_flows" --topology fat-tree --hosts 64 --pattern all-to-all --jitter 0.5
count "hold model, 100,000 pending, 1,000,000 events" "$folder/tests/bench/peers/clustersim_hold" 100000 1000000
