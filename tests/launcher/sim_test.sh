#!/bin/bash
# Tests `farside sim`, and `farside run` of such programs: messages, options, how runs end.
#   sim_test.sh FARSIDE SIM_FAKE SMP_PROGRAM
# SIM_FAKE is sim_fake.cpp; SMP_PROGRAM is any program that is built for another back end.
set -u
farside=$(realpath "$1")
fake=$(realpath "$2")
other=$(realpath "$3")
. "$(dirname "$0")/checks.sh"
cd "$work" || exit 1
for name in $(compgen -e FARSIDE_); do unset "$name"; done
ln -s "$fake" fake

sim() { run "$farside" sim "$@"; }

# lines NAME COUNT PATTERN: so many lines of the output match.
lines() {
  local n
  n=$(cat "$work/out" "$work/err" | grep -cE -- "$3")
  if [ "$n" = "$2" ]; then pass "$1"; else fail "$1: $n lines match '$3', not $2"; fi
}

# Runs the line that a failure printed; leaves what run() leaves.
run_printed_line() {
  local line
  line=$(grep -hE -- "^ +[^ ]*farside sim .*$1" "$work/out" "$work/err" | tail -n 1)
  run bash -c "$line"
}

nothing_left() {
  local left="" i
  for i in 1 2 3 4 5 6 7 8 9 10; do
    left=$(for exe in /proc/[0-9]*/exe; do [ "$(readlink "$exe")" = "$fake" ] && echo "$exe"; done)
    [ -z "$left" ] && break
    sleep 0.1
  done
  if [ -n "$left" ]; then fail "$1: left are" $left; else pass "$1"; fi
}

wrong_command_lines() {
  run "$farside" --help; check "listed" 0 "^ +sim program"
  sim --help; check "help" 0 "usage: farside sim" "^  farside sim -n 3 --seeds 1..1000 ./queue_test" "--shrink "
  sim; check "no program" 2 "no program is named; write farside sim -n 4 ./program"
  sim ./none; check "no such program" 127 "no such program: './none'"
  sim /tmp; check "a directory" 126 "'/tmp' is a directory"
  sim "$other"; check "another back end" 2 "is built for smp, and only .* sim can be simulated; link farside::sim or farside::any instead"
  sim /bin/true; check "no back end" 2 "'/bin/true' carries no note of a back end"
  sim --sed 3 ./fake; check "unknown option" 2 "unknown option --sed; did you mean --seed\?.*farside sim --help"
  sim -n 0 ./fake; check "-n 0" 2 "a job needs at least one rank"
  sim --seeds 5 ./fake; check "range without dots" 2 "--seeds 5: that is not a range; .*--seeds 1..100, or --seed 5"
  sim --seeds a..b ./fake; check "range of words" 2 "--seeds a..b: that is not a range"
  sim --seeds 9..3 ./fake; check "range backwards" 2 "--seeds 9..3: that range ends before it begins; write --seeds 3..9"
  sim --seed x ./fake; check "seed is a word" 2 "--seed x: that is not a whole number .*; write --seed 17"
  sim --seed 3 --seeds 1..2 ./fake; check "seed and seeds" 2 "leave one of them out"
  sim --level awful ./fake; check "no such level" 2 "--level awful: there is no such level; it is mild, normal, harsh, cruel, or all"
  sim --active 3 ./fake; check "active is no range" 2 "--active 3: that is not a range"
  sim --stop 2 ./fake; check "stop without step" 2 "--stop 2: that names no rank and step; write --stop 2@1500"
  sim -n 2 --stop 2@5 ./fake; check "stop of no rank" 2 "--stop 2@5: there is no such rank; with -n 2 they are 0 to 1"
  sim --fail-allocation 0 ./fake; check "allocations count from 1" 2 "--fail-allocation 0: that is not a whole number above 0"
  sim --jobs none ./fake; check "bad jobs" 2 "--jobs none: that is not a whole number above 0"
  sim --minutes long ./fake; check "bad minutes" 2 "--minutes long: that is not a time; write minutes above 0"
  sim --time-limit 0 ./fake; check "bad time limit" 2 "--time-limit 0: that is not a time; write seconds above 0"
  sim --steps 0 ./fake; check "bad steps" 2 "--steps 0: that is not a whole number above 0"
  sim --segment 1 ./fake; check "tiny segment" 2 "give each rank at least 4K"
  sim -e FARSIDE_SIM_SEED=3 ./fake; check "our own variable" 2 "FARSIDE_SIM_SEED: farside sim sets that one itself"
  sim --shrink=1 ./fake; check "value where none belongs" 2 "takes no value; write --shrink"
  sim --trace t ./fake; check "trace of many" 2 "--trace t: a trace is of one run, .* --seed S, or add --shrink"
  sim --seed 1 --trace /none/t ./fake; check "trace cannot be written" 1 "--trace /none/t: cannot write that file"
  sim --exhaustive --seed 3 ./fake; check "exhaustive and a seed" 2 "--exhaustive explores all schedules .* leave one of them out"
  sim --exhaustive --shrink ./fake; check "exhaustive and shrink" 2 "so --shrink cannot be there too"
  sim --exhaustive=0 ./fake; check "exhaustive, no runs" 2 "--exhaustive 0: that is not a whole number above 0"
}

good_runs() {
  sim ./fake ok
  check "100 seeds" 0 "^100 runs at 4 ranks: 40,000 operations, 20,000 deliveries, 100,000 steps; none failed \([0-9.]+ s\)$"
  lines "one line only" 1 ""
  sim --seeds 1..4 --verbose ./fake ok
  check "--verbose, all levels" 0 "^seed 4 \(mild\): ok, after 1,000 steps" "^seed 1 \(normal\)" "^seed 2 \(harsh\)" \
    "^seed 3 \(cruel\)" "^hello from seed 3$"
  sim --seeds 5..6 --level cruel --verbose ./fake ok; check "--level" 0 "^seed 5 \(cruel\)" "^seed 6 \(cruel\)"
  sim -n1 --seed 7 -- ./fake ok; check "one of each" 0 "^1 run at 1 rank: 100 operations, "
  export FARSIDE_SIM_STOP=0@1 FARSIDE_BOARD=x
  sim -n 3 --seed 17 --level harsh --active 2..30 --fail-allocation 4 --steps 99 --segment 1M -e COLOUR=red --verbose \
    ./fake environment
  unset FARSIDE_SIM_STOP FARSIDE_BOARD
  check "environment" 0 "^FARSIDE_NPROCS=3$" "^FARSIDE_SIM_SEED=17$" "^FARSIDE_SIM_LEVEL=harsh$" "^FARSIDE_SIM_ACTIVE=2..30$" \
    "^FARSIDE_SIM_FAIL_ALLOCATION=4$" "^FARSIDE_SIM_STEPS=99$" "^FARSIDE_SEGMENT=1M$" "^COLOUR=red$"
  lines "nothing is inherited" 0 "FARSIDE_SIM_(STOP|TRACE|EXHAUSTIVE)=.|FARSIDE_BOARD"
  sim --seed 1 --stop 2@30 --verbose ./fake environment; check "--stop" 0 "^FARSIDE_SIM_STOP=2@30$"
  if setarch -R true 2>"$work/err"; then
    sim --seeds 1..4 --verbose ./fake addresses
    cp out all
    sim --seed 123456 --active 3..70000 --trace t --verbose ./fake addresses
    cat all >>out
    if [ "$(grep ^stack out | sort -u | wc -l)" = 1 ]; then pass "same addresses"; else fail "same addresses"; fi
  fi
  sim --seed 9 --trace t ./fake ok
  cp t out; status=0; check "--trace FILE" 0 "^trace of seed 9, normal, active always$"
  run bash -c '"$0" sim --seed 9 --trace - ./fake ok 2>summary' "$farside"
  check "--trace -" 0 "^trace of seed 9"; lines "--trace - alone" 1 ""
  mkdir -p empty
  TMPDIR=$work/empty run "$farside" sim --seed 9 --trace - ./fake ok
  if [ -z "$(ls empty)" ]; then pass "no file is left"; else fail "no file is left"; fi
  sim -n 2 --seeds 1..1 --minutes 0.02 ./fake ok
  check "--minutes" 0 "runs at 2 ranks"; faster_than "--minutes stops" 5
  if awk -v n="$(sed -nE 's/^([0-9,]+) runs.*/\1/p' out | tr -d ,)" 'BEGIN { exit !(n > 5) }'; then
    pass "--minutes goes on"
  else
    fail "--minutes goes on"
  fi
}

failing_runs() {
  sim -n 3 -j 3 ./fake 17 deadlock
  check "deadlock" 1 "^seed 17 \(normal\): deadlock, every rank waits, after 1,000 steps$" "^    rank 1: this is the end: deadlock$" \
    "^  [^ ]*farside sim -n 3 --seed 17 --level normal ./fake 17 deadlock$" "runs at 3 ranks: .* 1 failed \("
  lines "one failure" 1 "farside sim -n"
  run_printed_line 17; check "the printed line" 1 "^seed 17 \(normal\): deadlock" "^1 run at 3 ranks"
  sim -j 4 ./fake 3 failed; check "the first of many" 1 "^seed 3 \(cruel\): a rank failed"
  sim ./fake 5 steps; check "limit of steps" 1 "^seed 5 \(normal\): the limit of steps was reached, which --steps raises"
  sim ./fake 5 crash; check "crash" 1 "^seed 5 \(normal\): killed by signal 11 \(SIGSEGV\)$" "this is the end: crash"
  sim ./fake 5 status; check "bad end" 1 "no rank failed, but the program exited with status 5"
  sim ./fake 5 silent; check "no report" 1 "exited with status 3 and simulated nothing \(it has to call far::run\)"
  sim ./fake 5 chatter; check "chatter" 1 "^    \(the last 40 of 100,001 lines\)$" "^    line 100000$"
  lines "chatter, 40 lines" 40 "^    line "
  sim --time-limit 0.5 ./fake 5 hang
  check "hangs" 1 "^seed 5 \(normal\): hangs: killed when it was not done after 0.5 s" "farside sim .*--time-limit 0.5 ./fake 5 hang$"
  faster_than "hangs, soon" 5; nothing_left "hangs, nothing left"
  sim ./fake 5 family; check "grandchildren" 1; faster_than "grandchildren, soon" 5; nothing_left "no grandchildren left"
  sim --keep-going --seeds 1..50 ./fake 20 failed
  check "--keep-going" 1 "^failing:$" "^50 runs at 4 ranks: .*; 2 failed"; lines "--keep-going, twice each" 4 "--seed (20|40) --level mild ./fake 20 failed$"
  sim --seed 1 --segment 1M -e "COLOUR=dark red" --steps 7 --active 1..9 --stop 1@2 --fail-allocation 3 ./fake 1 failed "a b"
  check "the whole line" 1 \
    "farside sim -n 4 --seed 1 --level normal --active 1..9 --stop 1@2 --fail-allocation 3 --steps 7 --segment 1M -e 'COLOUR=dark red' ./fake 1 failed 'a b'$"
  run_printed_line failed; check "the whole line runs" 1 "^seed 1 \(normal\): a rank failed"
  PATH=$(dirname "$farside"):$PATH sim --seed 1 ./fake 1 failed; check "farside is in PATH" 1 "^  farside sim -n 4 --seed 1"
}

shrinking() {
  sim -n 3 --shrink ./fake window 500 503 harsh
  check "--shrink" 1 "^seed 2 \(harsh\): a rank failed" "^shrunk in [0-9]+ runs to 3 steps in which the adversary acts, level harsh:$" \
    "farside sim -n 3 --seed 2 --level harsh --active 500..503 ./fake window 500 503 harsh$" "its trace is in fake.seed2.trace$"
  run_printed_line active; check "the shrunk line" 1 "^seed 2 \(harsh\): a rank failed"
  cp fake.seed2.trace out; status=0; check "trace of the shrunk run" 0 "^trace of seed 2, harsh, active 500..503$"
  sim --seeds 3..9 --shrink --trace t ./fake window 0 1 mild
  check "first step, milder" 1 "to 1 step in which the adversary acts, level mild:" "--seed 3 --level mild --active 0..1 " "its trace is in .*/t$"
  cp t out; status=0; check "trace where it should be" 0 "^trace of seed 3, mild, active 0..1$"
  sim --seed 3 --shrink ./fake window 999 1000 cruel; check "last step" 1 "--level cruel --active 999..1000 "
  sim --seed 3 --active 100..900 --shrink ./fake window 200 300 normal
  check "within --active" 1 "to 100 steps in which .* level normal" "--level normal --active 200..300 "
  sim --seed 3 --shrink ./fake window_crash 7777 7780 mild; check "length unknown" 1 "to 3 steps .* level mild" "--active 7777..7780 "
  sim --seed 3 --shrink ./fake 3 failed; check "without adversary" 1 "to 0 steps .* level mild \(it fails also when ranks just take turns\)"
  sim --seed 3 --shrink ./fake fickle once; check "not the same again" 1 "seed 3 \(cruel\) cannot be shrunk: run again, it did not fail"
  sim --seed 3 --shrink ./fake ok; check "nothing to shrink" 0 "none failed"
}

faults() {
  sim --seeds 1..20 --keep-going --stop random --verbose ./fake frail
  check "--stop random" 1 "^seed 1 \(normal\) without fault: ok" "ok, the fault was survived" "--stop 1@[0-9]+ ./fake frail$" "^40 runs at"
  lines "only rank 1 matters" 0 "--stop [^1]@"
  if [ "$(grep -oE "^stop '[0-3]@" out | sort -u | wc -l)" = 4 ]; then pass "every rank is stopped"; else fail "every rank is stopped"; fi
  sim --seeds 1..20 --stop random ./fake frail; cp out first; run_printed_line stop
  check "the line with a stop" 1 "deadlock" "^1 run at"
  if [ "$(head -n 1 out)" = "$(head -n 1 first)" ]; then pass "same fault again"; else fail "same fault again"; fi
  sim --seed 5 --fail-allocation random ./fake frail; check "--fail-allocation random" 1 "--fail-allocation [1-5] ./fake frail$" "^2 runs at"
  sim --seed 5 --fail-allocation 3 ./fake frail; check "--fail-allocation" 1 "--fail-allocation 3 ./fake frail$" "^1 run at"
}

exhaustive() {
  sim -n 2 --exhaustive ./fake ok; check "--exhaustive" 0 "^720 schedules at 2 ranks, all that there are: .*, 7,200 steps; none failed"
  sim -n 2 --exhaustive 50 ./fake ok; check "--exhaustive RUNS" 0 "^50 schedules at 2 ranks, not all that there are \(--exhaustive RUNS goes further\)"
  sim -n 2 --exhaustive=900 ./fake failed
  check "--exhaustive fails" 1 "^exhaustive: a rank failed, in schedule 33" "farside sim -n 2 --exhaustive 900 ./fake failed$"
}

signals() {
  interrupt INT "$farside" sim -j 4 --minutes 1 ./fake 3 hang
  check "SIGINT" 130 "received signal 2 \(SIGINT\); all runs were ended" "none failed"
  faster_than "SIGINT, soon" 2; nothing_left "SIGINT, nothing left"
  interrupt TERM "$farside" sim ./fake 2 hang; check "SIGTERM" 143; nothing_left "SIGTERM, nothing left"
  interrupt KILL "$farside" sim ./fake 2 hang; check "SIGKILL" 137; nothing_left "SIGKILL, nothing left"
}

plain_run() {
  FARSIDE_SIM_SEED=5 run "$farside" run -n 3 ./fake environment
  check "farside run" 0 "^hello from seed 5$" "^FARSIDE_NPROCS=3$"; lines "farside run, no board" 0 "BOARD|FARSIDE_SLOT"
  run "$farside" run -n 3 --segment 1M -e FARSIDE_SIM_SEED=6 ./fake environment; check "farside run, options" 0 "^FARSIDE_SIM_SEED=6$" "^FARSIDE_SEGMENT=1M$"
  run "$farside" run -n 3 ./fake 1 failed; check "farside run, fails" 1 "this is the end: failed" "^farside run: the simulation exited with status 1$"
  run "$farside" run -n 3 ./fake 1 crash; check "farside run, crash" 139 "the simulation was killed by signal 11 \(SIGSEGV\)"
  run "$farside" run -n 3 --timeout 0.5 ./fake 1 hang; check "farside run --timeout" 124 "not done after 0.5 s \(--timeout\); ending the simulation"
  faster_than "farside run --timeout, soon" 5; nothing_left "farside run --timeout, nothing left"
  interrupt INT "$farside" run -n 3 ./fake 1 hang; check "farside run, SIGINT" 130 "received signal 2"; nothing_left "farside run, SIGINT, nothing left"
  run "$farside" run -n 3 --threads ./fake; check "--threads" 2 "--threads: .* leave --threads out"
  run "$farside" run -n 3 --prefix ./fake; check "--prefix" 2 "--prefix: that is for ranks that are processes, .* as sim"
  run "$farside" run -n 3 --bind core ./fake; check "--bind core" 2 "--bind core: that is for ranks that are processes"
  run "$farside" run -n 3 --mpirun-arg x ./fake; check "--mpirun-arg" 2 "uses no mpirun; leave it out"
  run "$farside" run -n 3 --seed 3 ./fake; check "no --seed" 2 "unknown option --seed"
  run "$farside" run -n 2 --backend sim /bin/sh -c 'echo "$FARSIDE_NPROCS ${FARSIDE_BOARD-none}"'; check "--backend sim" 0 "^2 none$"
  printf 'abc' >input
  run bash -c '"$0" run -n 2 --backend sim /bin/cat <input' "$farside"; check "stdin" 0 "^abc"
}

wrong_command_lines
good_runs
failing_runs
shrinking
faults
exhaustive
signals
plain_run
finish
