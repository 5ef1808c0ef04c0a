#!/bin/bash
# `farside sort` beside std::sort, in one run on this machine: the whole of the ISx bucket sort (bucket,
# exchange, keys really sorted) against std::sort alone of as many keys on each rank.
#   sort.sh [FARSIDE]       by default build/release/bin/farside
# RANKS, KEYS (of a rank) and RUNS are 2, 2^24 and 5 unless set. Ends with 1 if the ratio is above
# 0.6. Peak memory: of the rank that needs most, its share of the keys and all copies included.
set -euo pipefail
farside=${1:-$(dirname "${BASH_SOURCE[0]}")/../../build/release/bin/farside}
if [[ ! -x $farside ]]; then
  echo "sort.sh: there is no program $farside; ./dev build makes it" >&2
  exit 1
fi
"$farside" sort -n "${RANKS:-2}" --isx --keys "${KEYS:-2^24}" --runs "${RUNS:-5}" --beside-std-sort |
  awk '{ print }
    match($0, /whole \/ std::sort = [0-9.]+/) { ratio = substr($0, RSTART + 20) + 0 }
    END {
      if (!ratio) { print "sort.sh: no ratio was printed"; exit 1 }
      printf "%s of the time of std::sort (at most 0.6 is asked for)\n", ratio
      exit ratio > 0.6
    }'
