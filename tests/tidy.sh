#!/usr/bin/env bash
# clang-tidy over the sources of the layers (tests are left to the compiler), as many at a time as there are cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset tidy -DCMAKE_CXX_CLANG_TIDY= -DCLUSTERSIM_TESTS=OFF >/dev/null
git ls-files 'sim/*.cpp' 'topologies/*.cpp' 'models/*.cpp' 'scenarios/*.cpp' |
  xargs -P "${CLUSTERSIM_JOBS:-$(nproc)}" -n 1 clang-tidy-19 -p build/tidy --quiet --warnings-as-errors='*' 2>&1 |
  { grep -Ev '^[0-9]+ warnings? generated|^Suppressed|^Use -header-filter' || true; }
