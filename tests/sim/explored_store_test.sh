#!/bin/bash
# All schedules of the programs of explored_store.cpp, which pass in every one.
#   explored_store_test.sh FARSIDE FOLDER NAME...
set -u
farside=$1
program=$2/explored_store_sim
status=0
for name in "${@:3}"; do
  if ! out=$("$farside" sim -n 2 --exhaustive 300000 "$program" "$name" 2>&1); then
    echo "FAILED: $name"
    tail -n 30 <<<"$out"
    status=1
  fi
  printf '%-20s %s\n' "$name" "$(tail -n 1 <<<"$out")"
done
exit $status
