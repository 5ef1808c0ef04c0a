#!/bin/bash
# All schedules of the programs of explored.cpp: the right ones pass in every one, the others fail.
#   explored_test.sh FARSIDE FOLDER
set -u
farside=$1
program=$2/explored_sim
status=0

# explore NAME RANKS pass|fail
explore() {
  local out got
  out=$("$farside" sim -n "$2" --exhaustive 300000 "$program" "$1" 2>&1)
  case $? in
    0) got=pass ;;
    1) got=fail ;;
    *) got=broken ;;
  esac
  printf '%-32s %s ranks: %s; %s\n' "$1" "$2" "$got" "$(tail -n 1 <<<"$out")"
  if [ "$got" != "$3" ]; then
    echo "FAILED: expected $3"
    tail -n 30 <<<"$out"
    status=1
  fi
}

explore increments 2 pass
explore increments 3 pass
explore lost_increments 2 fail
explore message 2 pass
explore message 3 pass
explore message_without_flush 2 fail
explore store_buffering 2 pass
explore store_buffering 3 pass
explore store_buffering_without_flush 2 fail
explore remote_heap 2 pass
explore remote_heap 3 pass
explore barrier 2 pass
explore async_gets 2 pass

# A program without such a part is told so.
out=$("$farside" sim -n 2 --exhaustive 10 "$2/wrong_sim" two_puts_to_one_place right 2>&1)
if ! grep -q 'no far::explored part' <<<"$out"; then
  echo "FAILED: nothing to explore, but nobody said so: $out"
  status=1
fi
exit $status
