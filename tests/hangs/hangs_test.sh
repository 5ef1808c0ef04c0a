#!/bin/bash
# What is said of jobs that can never go on, on every back end; and that others are left alone.
#   hangs_test.sh FARSIDE HANGS BACKEND...
# HANGS is hangs.cpp for any back end. Jobs run a few at a time: most of them wait for seconds.
set -u
farside=$(realpath "$1")
program=$(realpath "$2")
shift 2
source=$(dirname "$0")/hangs.cpp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
at_once=4

line() { grep -n "// at: $1\$" "$source" | cut -d: -f1; } # the line that is marked so

# start KEY COMMAND...: runs it, and leaves KEY.text (all that it printed) and KEY.status.
start() {
  local key=$1
  shift
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
  {
    timeout -k 5 60 "$@" >"$work/$key.text" 2>&1 </dev/null
    echo $? >"$work/$key.status"
  } &
}

# check KEY STATUS PATTERN...: ended so (or so: 1|134), and a line matches each pattern. '!PATTERN': no line does.
check() {
  local key=$1 wanted=$2 pattern problem=""
  shift 2
  grep -qxE -- "$wanted" "$work/$key.status" || problem="status $(cat "$work/$key.status"), not $wanted"
  for pattern in "$@"; do
    if [ "${pattern#!}" != "$pattern" ]; then
      grep -qE -- "${pattern#!}" "$work/$key.text" && problem="a line matches '${pattern#!}'"
    else
      grep -qE -- "$pattern" "$work/$key.text" || problem="no line matches '$pattern'"
    fi
  done
  if [ -z "$problem" ]; then
    echo "ok   $key"
    return
  fi
  echo "FAIL $key: $problem"
  sed 's/^/       /' "$work/$key.text"
  failures=$((failures + 1))
}

once() { # KEY TEXT: printed once
  local n
  n=$(grep -cE -- "$2" "$work/$1.text")
  [ "$n" = 1 ] || { echo "FAIL $1: '$2' is printed $n times"; sed 's/^/       /' "$work/$1.text"; failures=$((failures + 1)); }
}

for backend in smp "$@"; do
  for name in barrier-alone different print-alone pop throws; do
    start "$backend.$name" "$farside" run -n 3 --backend "$backend" "$program" "$name"
  done
done
for name in different-structures quiesce-alone fence-alone save-alone print-and-barrier map-alone clear-alone team lock handler handler-barrier handler-reduce no-room-for-an-answer computes serves teams-differ thread returns says; do
  start "smp.$name" "$farside" run -n 4 --backend smp "$program" "$name"
done
start smp.threads "$farside" run -n 3 --threads --backend smp "$program" barrier-alone
start smp.stacks "$farside" run -n 3 --timeout 2 --backend smp "$program" hangs-computing
for name in barrier-alone different print-alone pop lock handler no-room-for-an-answer returns throws; do
  start "sim.$name" "$farside" sim -n 3 --seed 1 --level normal "$program" "$name"
done
wait

rule="All ranks of a team must call the same collectives in the same order"
for backend in smp "$@"; do
  check "$backend.barrier-alone" 1 "rank 0 calls barrier at .*hangs.cpp:$(line barrier-alone), the others have left far::run\. $rule"
  check "$backend.different" 1 "rank 0 calls all_reduce at .*:$(line all_reduce), ranks 1 and 2 call barrier at .*:$(line barrier)\. $rule"
  check "$backend.print-alone" 1 "rank 0 calls print, the others have left far::run" '!serialized'
  check "$backend.pop" 1 "every rank waits, and nothing is under way that could end that:" \
    "rank 0 waits for an element to pop from the empty queue 'inbox', on rank 0" \
    "ranks 1 and 2 wait for the destructor of circular_queue"
  check "$backend.throws" 1 "rank 1 \(pid [0-9]+\) failed: no room at the inn"
  once "$backend.throws" "no room at the inn"
done
check smp.print-and-barrier 1 "rank 0 calls print, ranks 1 to 3 call barrier at .*:$(line no-print)\. $rule" '!serialized'
in_destructor='1|134' # a rank that finds out in a destructor is ended by std::terminate
check smp.different-structures 1 "rank 0 calls all_reduce" "ranks 1 to 3 call barrier" "$rule" '!signal' '!operator'
check smp.quiesce-alone "$in_destructor" "rank 0 calls quiesce" "ranks 1 to 3 call the destructor of hash_map" "$rule" '!SIGSEGV' '!operator'
check smp.fence-alone "$in_destructor" "rank 0 calls store::fence" "ranks 1 to 3 call the destructor of store" "$rule" '!SIGSEGV' '!operator'
check smp.save-alone "$in_destructor" "rank 0 calls store::save" "ranks 1 to 3 call the destructor of store" '!hash_map'
check smp.map-alone 1 "rank 0 calls the constructor of hash_map at .*:$(line map-alone), the others have left far::run"
check smp.clear-alone 1 "rank 0 calls hash_map::clear, ranks 1 to 3 call the destructor of hash_map"
check smp.team 1 "every rank waits" "rank 0 waits for barrier at .*:$(line team)$" "ranks 1 to 3 wait for barrier at .*:$(line world)$"
check smp.lock 1 "waits? for the lock of mutex 'door', on rank"
check smp.handler 1 "rank 0 waits for a future$" "ranks 1 and 2 wait for a future, inside a handler"
check smp.handler-barrier 1 "rank 1 waits for a barrier, inside a handler$" "rank 0 waits for a future$"
check smp.handler-reduce 1 "rank 1 waits for a collective, inside a handler$" "rank 0 waits for a future$"
check smp.threads 1 "rank 0 calls barrier at .*:$(line barrier-alone), the others have left far::run"
for name in computes serves teams-differ thread; do check "smp.$name" 0 '!farside run'; done
no_room="rank 1 has run the handler of an rpc, but its result of [0-9]+ bytes cannot come back: .* the caller, rank 0, which has no room for it\. .*--segment"
check smp.no-room-for-an-answer 1 "$no_room" '!threw'
check smp.returns 3 "rank 2 \(pid [0-9]+\) exited with status 3"
check smp.says 0 "^rank 0: alone$"
whole=$(grep -cE '^rank [0-3]: line [0-9]+ (a{200}|b{200}|c{200}|d{200})$' "$work/smp.says.text")
[ "$whole" = 200 ] || { echo "FAIL smp.says: $whole of 200 lines are whole"; failures=$((failures + 1)); }
check smp.stacks 124 "^  stack of rank 0:$" "^  stack of ranks 1 and 2:$" "wait_for_the_others\(\)" "barrier at .*hangs.cpp:$(line computes)"
once smp.stacks "stack of rank 0"

check sim.barrier-alone 1 "rank 0 calls barrier at .*:$(line barrier-alone), the others have left far::run\. $rule" \
  "rank 1: waits for the other ranks to leave far::run"
check sim.different 1 "rank 0 calls all_reduce at .*:$(line all_reduce), rank [12] calls barrier at .*:$(line barrier)\. $rule"
check sim.print-alone 1 "rank 0 calls print, the others have left far::run" '!serialized'
check sim.pop 1 "deadlock, every rank waits" "rank 0: waits for an element to pop from the empty queue 'inbox', on rank 0"
check sim.lock 1 "deadlock, every rank waits" "waits for the lock of mutex 'door', on rank"
check sim.handler 1 "deadlock, every rank waits" "rank 0: waits for a future$" "rank 2: waits for a future, inside a handler"
check sim.no-room-for-an-answer 1 "$no_room" '!threw'
check sim.returns 1 "rank 2 failed with status 3"
check sim.throws 1 "rank 1 failed with status 1" "no room at the inn"
once sim.throws "no room at the inn"

if [ "$failures" -gt 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "all passed"
