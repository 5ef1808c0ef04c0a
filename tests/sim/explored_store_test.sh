#!/bin/bash
# All schedules of programs of explored_store.cpp, which pass in every one; those after `--fail` do not.
#   explored_store_test.sh FARSIDE FOLDER NAME... [--fail NAME...]
set -u
farside=$1
program=$2/explored_store_sim
expected=0
status=0
for one in "${@:3}"; do
  if [ "$one" = --fail ]; then
    expected=1
    continue
  fi
  out=$("$farside" sim -n 2 --exhaustive 300000 "$program" "$one" 2>&1)
  got=$?
  if [ $got != $expected ]; then
    echo "FAILED: $one: status $got, expected $expected"
    tail -n 30 <<<"$out"
    status=1
  fi
  printf '%-20s %s\n' "$one" "$(tail -n 1 <<<"$out")"
done
exit $status
