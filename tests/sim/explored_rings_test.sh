#!/bin/bash
# All schedules of the programs of explored_rings.cpp, which pass in every one.
#   explored_rings_test.sh FARSIDE FOLDER
set -u
farside=$1
program=$2/explored_rings_sim
status=0

# explore NAME RANKS
explore() {
  local out
  if ! out=$("$farside" sim -n "$2" --exhaustive 300000 "$program" "$1" 2>&1); then
    echo "FAILED: $1 on $2 ranks"
    tail -n 30 <<<"$out"
    status=1
  fi
  printf '%-20s %s ranks: %s\n' "$1" "$2" "$(tail -n 1 <<<"$out")"
}

explore push_and_pop 2
explore next_round 2
explore two_pushes 2
explore one_place 2
explore one_place 3
explore one_element 2
explore full_while_popped 2
explore phased_overrun 2
explore phased_overrun 3
exit $status
