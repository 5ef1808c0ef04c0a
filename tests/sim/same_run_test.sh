#!/bin/bash
# The same seed is the same run, to the byte; another seed is another run.
#   same_run_test.sh FARSIDE FOLDER
set -u
farside=$1
program=$2/conformance_any
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# traced FILE SEED LEVEL
traced() {
  "$farside" sim -n 3 --seed "$2" --level "$3" --trace "$work/$1" "$program" atomics futures teams \
    memory >"$work/out" 2>&1 || {
    echo "FAILED: seed $2 at level $3"
    tail -n 20 "$work/out"
    status=1
  }
}

for level in mild normal harsh cruel; do
  traced first 7 $level
  traced again 7 $level
  traced other 8 $level
  echo "$level: $(wc -l <"$work/first") events"
  if ! cmp "$work/first" "$work/again"; then
    echo "FAILED: two runs of one seed differ at level $level"
    status=1
  fi
  if cmp -s "$work/first" "$work/other"; then
    echo "FAILED: two seeds gave the same run at level $level"
    status=1
  fi
done
exit $status
