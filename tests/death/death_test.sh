#!/usr/bin/env bash
# death_test.sh FARSIDE PROGRAM FLAVOUR
#
# One rank of a job dies, in every way there is: the job must end soon, with a status that is not
# 0 and a message that names the rank and the cause, and leave nothing behind. PROGRAM is
# death.cpp, built for FLAVOUR (smp, openmpi, mpich, shmem).
set -u
# shellcheck source=tests/death/support.sh
. "${BASH_SOURCE[0]%/*}/support.sh"

# dies PATTERN HOW RANK WAIT [OPTION...]: what the launcher says must match PATTERN.
dies() {
  local pattern=$1 how=$2 rank=$3 wait=$4
  start_case
  what="$how of rank $rank while others wait: $wait ${*:5}"
  local begin
  begin=$(now_ms)
  timeout -k 2 $((40 + start_ms / 200)) "$farside" run --backend "$backend" -n 3 "${@:5}" "$program" "$how" "$rank" "$wait" "$tag" >"$output" 2>&1 </dev/null
  local status=$? ended died
  ended=$(now_ms)
  died=$(sed -n 's/.*dies at \([0-9]*\) ms.*/\1/p' "$output" | head -1)
  [[ -z $died ]] || measure_start $((died - begin))
  if ((status == 124 || status == 137)) && [[ $how != kill ]]; then
    fail "hangs"
  elif ((status == 0)); then
    fail "ends with status 0"
  elif [[ -z $died ]]; then
    fail "the rank did not come to the point of dying"
  elif ((ended - died > limit_ms)); then
    fail "took $((ended - died)) ms to end"
  fi
  grep -qE -- "$pattern" "$output" || fail "does not say '$pattern'"
  nobody_left 1000
  no_files_left
}

declare -A said=(
  [throw]='rank 2 \(pid [0-9]+\) failed: the reason of this death'
  [run]='rank 2 \(pid [0-9]+\) failed: the reason of this death'
  [odd]='rank 2 \(pid [0-9]+\) failed: '
  [exit3]='rank 2 \(pid [0-9]+\) exited with status 3'
  [exit0]='rank 2 \(pid [0-9]+\) exited with status 0 before its far::runtime ended'
  [_exit0]='rank 2 \(pid [0-9]+\) exited with status 0 before its far::runtime ended'
  [abort]='rank 2 \(pid [0-9]+\) was killed by signal 6 \(SIGABRT\)'
  [segv]='rank 2 \(pid [0-9]+\) was killed by signal 11 \(SIGSEGV\)'
  [kill]='rank 2 \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\)'
)

# --- every way to die, and every way to wait -------------------------------------------------------
for how in throw run odd exit3 exit0 _exit0 abort segv kill; do
  dies "${said[$how]}" "$how" 2 barrier
done
for how in kill _exit0 segv; do
  dies "${said[$how]}" $how 2 multiply
done
for wait in get future compute; do
  dies "${said[throw]}" throw 2 "$wait"
  dies "${said[kill]}" kill 2 "$wait"
  dies "${said[_exit0]}" _exit0 2 "$wait"
done
dies 'rank 0 \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\)' kill 0 barrier
dies 'rank 0 \(pid [0-9]+\) failed: the reason of this death' run 0 compute
if [[ $flavour == smp* ]]; then
  dies 'the reason of this death' run 2 barrier --threads
  dies 'exited with status 3' exit3 1 compute --threads
  dies 'SIGSEGV' segv 1 barrier --threads
fi

# --- it is said why the rank died, in its own words, once -----------------------------------------------
start_case
what="an exception in main"
"$farside" run --backend "$backend" -n 2 "$program" throw 1 barrier "$tag" >"$output" 2>&1 </dev/null
[ "$(grep -c 'the reason of this death' "$output")" = 1 ] || fail "the reason is not printed once"
nobody_left 1000
start_case
what="an exception in far::run"
"$farside" run --backend "$backend" -n 2 "$program" run 1 barrier "$tag" >"$output" 2>&1 </dev/null
[ "$(grep -c 'the reason of this death' "$output")" = 1 ] || fail "the reason is not printed once"
nobody_left 1000

# --- the launcher dies ---------------------------------------------------------------------------
for wait in barrier compute; do
  if starts none 1 "$wait"; then
    what="SIGKILL of the launcher while ranks wait: $wait"
    kill -9 "$launcher"
    wait "$launcher" 2>/dev/null
    nobody_left 5000
    sleep 0.3
    no_files_left
  fi
done

# --- what does a hanging job wait for? -----------------------------------------------------------
if starts none 1 barrier; then
  what="SIGQUIT to the launcher of a hanging job"
  # A wait is written down once it has lasted a while: on a loaded machine, seconds.
  for _ in 1 2 3 4 5 6; do
    kill -QUIT "$launcher"
    for _ in {1..15}; do
      sleep 0.1
      (($(grep -cE '^ *[02] +[0-9]+ +running +(a )?barrier' "$output") < 2)) || break 2
    done
  done
  grep -qE '^ *0 +[0-9]+ +running +(a )?barrier' "$output" || fail "does not say that rank 0 waits for a barrier"
  grep -qE '^ *1 +[0-9]+ +running +nothing: it computes' "$output" || fail "does not say that rank 1 computes"
  grep -qE '^ *2 +[0-9]+ +running +(a )?barrier' "$output" || fail "does not say that rank 2 waits for a barrier"
  kill -0 "$launcher" 2>/dev/null || fail "the job has ended, though it was only asked"
  what="SIGTERM to the launcher of a hanging job"
  kill -TERM "$launcher"
  begin=$(now_ms)
  wait "$launcher"
  status=$?
  ((status == 143)) || fail "ends with status $status, not 143"
  (($(now_ms) - begin < limit_ms)) || fail "took $(($(now_ms) - begin)) ms to end"
  nobody_left 1000
  no_files_left
fi

# --- and after a time-out its stacks are shown too ---------------------------------------------------
start_case
what="--timeout of a hanging job"
begin=$(now_ms)
time=$((2 + 2 * start_ms / 1000))
"$farside" run --backend "$backend" -n 3 --timeout $time "$program" none 1 barrier "$tag" >"$output" 2>&1 </dev/null
status=$?
((status == 124)) || fail "ends with status $status, not 124"
(($(now_ms) - begin < 1000 * time + limit_ms)) || fail "took $(($(now_ms) - begin)) ms to end"
grep -qE '^ *1 +[0-9]+ +running +nothing: it computes' "$output" || fail "does not say that rank 1 computes"
for rank in 0 1 2; do
  grep -qE "^  stack of ranks?( .*)? $rank( .*)?:\$" "$output" || fail "does not show the stack of rank $rank"
done
nobody_left 1000
no_files_left

conclude
