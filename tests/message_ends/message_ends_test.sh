#!/usr/bin/env bash
# message_ends_test.sh FARSIDE PROGRAM
#
# Jobs that send messages end well: what is under way is handled, and what goes wrong is told.
# PROGRAM is message_ends.cpp, built for any back end.
set -u
farside=$1 program=$2
failed=0
unset FARSIDE_THREADS FARSIDE_STATS FARSIDE_ATTENTION

# expect STATUS TEXT COMMAND...: ends with that status (0, or anything else) and says TEXT.
expect() {
  local status=$1 text=$2 output result
  shift 2
  output=$(timeout 60 "$@" 2>&1)
  result=$?
  if { ((status == 0)) && ((result != 0)); } || { ((status != 0)) && ((result == 0 || result == 124)); } ||
    [[ $output != *"$text"* ]]; then
    printf 'FAILED %s\n  status %d; expected in it: %s\n--- it said:\n%s\n---\n' "$*" "$result" "$text" "$output"
    failed=1
  fi
}

for attention in poll thread; do
  for more in "" --threads; do
    run=(env FARSIDE_ATTENTION=$attention "$farside" run -n 3 $more "$program")
    expect 0 'the last message is on rank 1' "${run[@]}" end
    expect 1 'rank 1: the handler of a message from rank 0 threw: no 42' "${run[@]}" throw
    expect 1 'rank 1: the handler of an rpc threw: no good' "${run[@]}" error
  done
done
expect 0 '' "$farside" run -n 3 "$program" plain
expect 0 '100 right, 0 messages' "$farside" run -n 3 --segment 16M "$program" no_room
expect 1 'Use FARSIDE_ATTENTION=thread' env FARSIDE_ATTENTION=rank "$farside" run -n 2 "$program" plain
expect 1 "FARSIDE_ATTENTION='nobody' names nobody" env FARSIDE_ATTENTION=nobody "$farside" run -n 2 "$program" plain
expect 1 'Use FARSIDE_ATTENTION=poll' env FARSIDE_ATTENTION=thread "$farside" run -n 2 --backend sim "$program" plain
expect 1 'rank 1: the handler of a message from rank 0 threw: no 42' "$farside" run -n 3 --backend sim "$program" throw
exit $failed
