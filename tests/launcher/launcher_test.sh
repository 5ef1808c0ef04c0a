#!/bin/bash
# Tests the program `farside`: messages, options, and how jobs end on each back end.
#   launcher_test.sh FARSIDE PROGRAM_DIR
# PROGRAM_DIR holds act_smp and, where their library is installed, act_openmpi, act_mpich and
# act_shmem: act.cpp built for each back end. Every command is bounded by a time-out.
set -u
farside=$(realpath "$1")
programs=$(realpath "$2")
. "$(dirname "$0")/checks.sh"

quiet() { # nothing on stderr
  if [ -s "$work/err" ]; then fail "$1: stderr is not empty"; else pass "$1"; fi
}

lines_on_stderr() {
  local n
  n=$(wc -l <"$work/err")
  if [ "$n" = "$2" ]; then pass "$1"; else fail "$1: $n lines on stderr, not $2"; fi
}

# Processes whose environment carries our mark: every job of this script gets it.
export LAUNCHER_TEST_MARK="mark-$$-$RANDOM"
marked() {
  local environment pid
  for environment in /proc/[0-9]*/environ; do
    pid=${environment#/proc/}
    pid=${pid%/environ}
    [ "$pid" = "$$" ] || [ "$pid" = "$BASHPID" ] && continue
    # Waited for below: only those of our jobs, not this script's own helpers.
    if { tr '\0' '\n' <"$environment"; } 2>/dev/null | grep -q "LAUNCHER_TEST_MARK=$LAUNCHER_TEST_MARK"; then
      case $(readlink "/proc/$pid/exe") in
        "$farside" | "$programs"/* | *mpirun* | *mpiexec* | *orterun* | *hydra*) echo "$pid" ;;
      esac
    fi
  done
}

# Folders of launchers that are gone: other jobs may run beside this test.
abandoned() {
  local folder pid
  for folder in /dev/shm/farside.*; do
    pid=${folder#/dev/shm/farside.}
    [ -d "$folder" ] && [ ! -d "/proc/${pid%%.*}" ] && echo "$folder"
  done
}

nothing_left() {
  local left="" i
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    left=$(marked; abandoned)
    [ -z "$left" ] && break
    sleep 0.1
  done
  if [ -n "$left" ]; then
    fail "$1: left are" $left
  else
    pass "$1"
  fi
}

wrong_command_lines() {
  local act=$programs/act_smp
  run "$farside"; check "no command" 2 "usage: farside"
  run "$farside" --version; check "version" 0 "^farside [0-9]+\.[0-9]+"
  run "$farside" --help; check "help" 0 "run -n N"
  run "$farside" run --help; check "run help" 0 "usage: farside run"
  run "$farside" rum; check "unknown command" 2 "no command 'rum'; did you mean 'run'"
  run "$farside" run "$act"; check "-n missing" 2 "number of ranks is missing; write farside run -n 4 "
  run "$farside" run -n 0 "$act"; check "-n 0" 2 "-n 0: a job needs at least one rank; "
  run "$farside" run -n four "$act"; check "-n four" 2 "-n four: that is not a whole number; "
  run "$farside" run -n -3 "$act"; check "-n -3" 2 "-n -3: that is not a whole number"
  run "$farside" run -n 524289 "$act"; check "-n too large" 2 "too many, a far pointer can name 524288 ranks"
  run "$farside" run -n 99999999999999999999 "$act"; check "-n huge" 2 "not a whole number"
  run "$farside" run -n; check "-n without value" 2 "-n needs a number of ranks behind it"
  run "$farside" run -n 2; check "no program" 2 "no program is named; "
  run "$farside" run -n 2 ./none/such; check "no such file" 127 "no such program: './none/such' \(No such file"
  run "$farside" run -n 2 no_such_program_here; check "not in PATH" 127 "is not in PATH; write ./no_such_program_here"
  (cd "$programs" && run "$farside" run -n 2 act_smp; echo "$status" >"$work/status"); status=$(cat "$work/status")
  check "in this directory only" 127 "but it is in this directory; write ./act_smp"
  run "$farside" run -n 2 /tmp; check "a directory" 126 "'/tmp' is a directory, not a program; name a file in it"
  : >"$work/plain_file"
  run "$farside" run -n 2 "$work/plain_file"; check "not executable" 126 "is not executable; if it is a program: chmod \+x"
  run "$farside" run --segmet 1M -n 2 "$act"; check "unknown option" 2 "unknown option --segmet; did you mean --segment\?"
  run "$farside" run --zzz -n 2 "$act"; check "unknown option, nothing near" 2 "unknown option --zzz Options of the program"
  run "$farside" run -n 2 --prefix=1 "$act"; check "value where none belongs" 2 "takes no value; write --prefix"
  run "$farside" run -n 2 --segment big "$act"; check "bad segment" 2 "--segment big: that is not a size; .*--segment 256M"
  run "$farside" run -n 2 --segment 1X "$act"; check "bad suffix" 2 "--segment 1X: that is not a size"
  run "$farside" run -n 2 --segment 99999999T "$act"; check "segment overflows" 2 "is not a size"
  run "$farside" run -n 2 --segment 10 "$act"; check "tiny segment" 2 "holds nothing; give each rank at least 4K"
  run "$farside" run -n 2 --timeout soon "$act"; check "bad timeout" 2 "--timeout soon: that is not a time"
  run "$farside" run -n 2 --bind socket "$act"; check "bad binding" 2 "--bind socket: there is no such binding; it is none or core"
  run "$farside" run -n 2 --env NOT_SET_AT_ALL "$act"; check "env not set" 2 "NOT_SET_AT_ALL: it is not set"
  run "$farside" run -n 2 --env =1 "$act"; check "env without name" 2 "no name before '='"
  run "$farside" run -n 2 --backend gpu "$act"; check "bad back end" 2 "--backend gpu: there is no such back end; it is one of smp"
  run "$farside" run -n 2 --backend openmpi "$act"
  check "back end of another program" 2 "--backend openmpi: '.*act_smp' is built for smp and can be started as that only: as mpi \(Open MPI\)" \
    "leave --backend out, or build it for farside::any"
  run "$farside" run -n 2 --backend sim "$act"; check "smp on sim" 2 "is built for smp and can be started as that only"
  run env PMI_SIZE=3 "$farside" run -n 2 "$act"
  check "one of three launchers" 2 "this farside run is one of 3 processes that an mpiexec such as MPICH's has started \(PMI_SIZE=3\), and each of them would start a job of 2 ranks"
  run env PMI_SIZE=3 "$farside" sim -n 2 "$act"
  check "one of three simulators" 2 "this farside sim is one of 3 processes .*, and each of them would simulate 2 ranks; farside sim is started once"
  run env PMI_SIZE=3 FARSIDE_SEPARATE_JOBS=1 "$farside" run -n 2 "$act"; check "three launchers are meant" 0
  run env PMI_SIZE=1 "$farside" run -n 2 "$act"; check "the only launcher" 0
  run env PMIX_RANK=2 "$farside" run -n 2 "$act"; check "PMIx" 2 "one of at least 3 processes that a launcher that speaks PMIx has started"
  run env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 OMPI_COMM_WORLD_SIZE=1 "$farside" run -n 2 "$act"; check "mpirun within a step of its daemons" 0
  run env SLURM_NTASKS=4 SLURM_PROCID=0 "$farside" run -n 2 "$act"; check "an allocation of 4 tasks" 0
  run "$farside" run -n 2 --mpirun-arg x "$act"; check "mpirun-arg for smp" 2 "uses no mpirun; leave it out"
  run "$farside" run -n 2 /bin/true; check "no note" 2 "'/bin/true' carries no note of a back end: .*--backend smp"
  printf '#!/bin/sh\nexit 0\n' >"$work/script" && chmod +x "$work/script"
  run "$farside" run -n 2 "$work/script"; check "a script" 2 "is a script, .* say how to start it: --backend"
  printf 'neither\n' >"$work/text" && chmod +x "$work/text"
  run "$farside" run -n 2 "$work/text"; check "not ELF" 2 "is no 64-bit ELF program"
  run "$farside" run -n 2 --backend smp "$work/text"; check "cannot be executed" 126 "failed: cannot start .*Exec format error"
  run "$farside" run -n 2 --backend smp "$work/script"; check "a script with --backend" 0
  run "$farside" run -n 2 --threads --prefix "$act"; check "threads and prefix" 2 "leave one of them out"
  if [ -x "$programs/act_mpich" ]; then
    run "$farside" run -n 2 --backend smp "$programs/act_mpich"
    check "an MPI program on smp" 2 "is built for mpi \(MPICH\) and can be started as that only: as smp"
    run "$farside" run -n 2 --backend openmpi "$programs/act_mpich"; check "on another MPI" 2 "is built for mpi \(MPICH\)"
    run "$farside" run -n 2 --backend mpi "$programs/act_mpich"; check "its own, by another name" 0
  fi
  if [ -x "$programs/act_openmpi" ]; then
    run "$farside" run -n 2 --threads "$programs/act_openmpi"
    check "threads of an MPI program" 2 "--threads: .* smp back end only, .* leave --threads out"
    mkdir -p "$work/no_mpi"
    run env PATH="$work/no_mpi" "$farside" run -n 2 "$programs/act_openmpi"
    check "no mpirun" 127 "no mpirun.openmpi is installed; apt-get install openmpi-bin"
  fi
  run "$farside" bench; check "bench without name" 2 "usage: farside bench core"
  run "$farside" bench frobnicate; check "no such benchmark" 2 "no benchmark 'frobnicate'"
  run "$farside" bench core --backend gpu; check "bench, bad back end" 2 "no such back end"
  run "$farside" doctor extra; check "doctor takes no argument" 2 "farside doctor takes none"
  run "$farside" doctor; check "doctor" 0 "smp +usable" "cores" "/dev/shm" "futex"
  run env FARSIDE_NVSHMEM=/nowhere "$farside" doctor; check "doctor, no NVSHMEM" 0 "NVSHMEM +not found"
  if command -v python3 >/dev/null; then  # a package with a library that is none
    mkdir -p "$work/python/nvidia/nvshmem/lib"
    touch "$work/python/nvidia/nvshmem/__init__.py"
    echo "no library" >"$work/python/nvidia/nvshmem/lib/libnvshmem_host.so.3"
    run env -u NVSHMEM_HOME PYTHONPATH="$work/python" "$farside" doctor
    check "doctor, NVSHMEM of Python" 0 "NVSHMEM +cannot be opened: $work/python/nvidia/nvshmem/lib/libnvshmem_host.so.3"
  fi
}

smp_only() {
  local act=$programs/act_smp
  run "$farside" run -n 2 -- "$act" arguments -n --prefix "a b"
  check "arguments belong to the program" 0 "^0 <-n>" "^1 <--prefix>" "^0 <a b>"
  run env PATH="$programs:$PATH" "$farside" run -n 1 act_smp; check "found in PATH" 0
  run "$farside" run -n2 "$act"; check "-n2" 0
  run "$farside" run -np 2 "$act" env FARSIDE_NPROCS; check "-np 2" 0 "^1 2$"
  run "$farside" run -n=2 "$act" env FARSIDE_NPROCS; check "-n=2" 0 "^1 2$"
  run "$farside" run -np; check "-np without value" 2 "-n needs a number of ranks behind it"
  run "$farside" run --ranks=2 "$act"; check "--ranks=2" 0
  run "$farside" run -n 3 "$act" env FARSIDE_RANK; check "FARSIDE_RANK" 0 "^2 2$"
  run "$farside" run -n 3 "$act" env FARSIDE_NPROCS; check "FARSIDE_NPROCS" 0 "^2 3$"
  run "$farside" run -n 3 "$act" env FARSIDE_SEGMENTS; check "FARSIDE_SEGMENTS" 0 "^1 /proc/[0-9]+/fd/[0-9]+$"
  run "$farside" run -n 2 --threads --backend smp /bin/sh -c 'echo "$FARSIDE_THREADS ${FARSIDE_RANK-none}"'
  check "--threads" 0 "^2 none$"
  run "$farside" run -n 2 --backend smp /bin/sh -c 'ls -l /proc/self/fd'
  if grep -q memfd "$work/out"; then fail "memfds are not inherited"; else pass "memfds are not inherited"; fi
  run "$farside" run -n 3 --bind core --backend smp /bin/sh -c 'grep Cpus_allowed_list /proc/self/status'
  check "--bind core" 0 "Cpus_allowed_list:.[0-9]+$"
  run "$farside" run -n 2 --verbose "$act"; check "--verbose" 0 "as 2 process"
  run "$farside" run -n 64 "$act"; check "64 ranks" 0
  run env FARSIDE_RANK=7 FARSIDE_THREADS=3 "$farside" run -n 1 "$act" env FARSIDE_THREADS
  check "a job within a job" 0 "^0 \(unset\)$"
}

# All the ways to end, on one back end.
endings() {
  local backend=$1 act=$programs/act_$1
  run "$farside" run -n 3 "$act"; measure_start
  check "$backend: all finish" 0; quiet "$backend: all finish quietly"
  run "$farside" run -n 3 "$act" plain; check "$backend: no runtime at all" 0
  run "$farside" run -n 3 "$act" usage 0 2; check "$backend: all exit with 2" 2 "rank [012] \(pid [0-9]+\) exited with status 2"
  run "$farside" run -n 3 "$act" kill 2 9
  check "$backend: killed" 137 "^farside run: rank 2 \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\), by .*; ending the other 2 ranks$"
  lines_on_stderr "$backend: killed, one line" 1
  faster_than "$backend: killed, soon" 5; nothing_left "$backend: killed, nothing left"
  if [ "$backend" != shmem ]; then # whose library survives it
    run "$farside" run -n 2 "$act" kill 0 15
    check "$backend: terminated" 143 "rank 0 \(pid [0-9]+\) was killed by signal 15 \(SIGTERM\); ending the other rank$"
  fi
  run "$farside" run -n 3 "$act" exit 1 3
  check "$backend: exit" 3 "^farside run: rank 1 \(pid [0-9]+\) exited with status 3; ending the other 2 ranks$"
  lines_on_stderr "$backend: exit, one line" 1; nothing_left "$backend: exit, nothing left"
  run "$farside" run -n 3 "$act" vanish 1
  check "$backend: early exit with 0" 1 "rank 1 \(pid [0-9]+\) exited with status 0 before its far::runtime ended; ending the other 2 ranks$"
  lines_on_stderr "$backend: early exit, one line" 1; faster_than "$backend: early exit, soon" 5
  run "$farside" run -n 3 "$act" unborn 1
  check "$backend: exit without runtime" 1 "rank 1 \(pid [0-9]+\) exited with status 0 without making a far::runtime"
  run "$farside" run -n 3 "$act" throw 1
  # An OpenSHMEM library may hang in exit without finalize; then the status is ours.
  [ "$backend" = shmem ] && [ "$status" = 1 ] && status=5
  check "$backend: exception" 5 "rank 1 \(pid [0-9]+\) failed: far::alloc: 9 GiB asked, 1 GiB free; ending" "^last words$"
  run "$farside" run -n 3 "$act" throw_hang 1
  check "$backend: exception, then nothing" 1 "rank 1 \(pid [0-9]+\) failed: far::alloc"; faster_than "$backend: exception, soon" 5
  run "$farside" run -n 3 "$act" refuse 1; check "$backend: refusal" 1 "^act: a file is missing$"
  lines_on_stderr "$backend: refusal, nothing added" 1; faster_than "$backend: refusal, soon" 5
  nothing_left "$backend: refusal, nothing left"
  run "$farside" run -n 3 "$act" late 1 6; check "$backend: status after the runtime" 6 "rank 1 \(pid [0-9]+\) exited with status 6$"
  run "$farside" run -n 3 "$act" deaf 1; check "$backend: deaf to SIGTERM" 4; faster_than "$backend: deaf, soon" 5
  nothing_left "$backend: deaf, nothing left"
  run "$farside" run -n 3 "$act" family 1; check "$backend: with grandchildren" 4; nothing_left "$backend: no grandchildren left"
}

options_on() {
  local backend=$1 act=$programs/act_$1 n
  run "$farside" run -n 2 -e COLOUR=red "$act" env COLOUR; check "$backend: --env" 0 "^0 red$" "^1 red$"
  run env COLOUR=blue "$farside" run -n 2 --env=COLOUR "$act" env COLOUR; check "$backend: --env NAME" 0 "^1 blue$"
  run "$farside" run -n 2 --segment 64M "$act" env FARSIDE_SEGMENT; check "$backend: --segment" 0 "^1 64M$"
  run "$farside" run -n 2 --stats "$act" env FARSIDE_STATS; check "$backend: --stats" 0 "^1 1$"
  run "$farside" run -n 2 --stats=a.json "$act" env FARSIDE_STATS; check "$backend: --stats=FILE" 0 "^1 a.json$"
  run "$farside" run -n 2 "$act" env FARSIDE_SLOT; check "$backend: slots" 0 "^0 0$" "^1 1$"
  run "$farside" run -n 2 --bind core "$act"; check "$backend: --bind core" 0; quiet "$backend: --bind core quietly"
  run "$farside" run -n 3 --prefix "$act" lines 0 500
  n=$(grep -cE '^\[0\] a{200}$|^\[1\] b{200}$|^\[2\] c{200}$' "$work/out")
  if [ "$n" = 1500 ] && [ "$(wc -l <"$work/out")" = 1500 ]; then pass "$backend: --prefix"; else fail "$backend: --prefix: $n lines"; fi
  check "$backend: --prefix on stderr" 0 "^\[2\] error of 2$"
  printf 'abc' | timeout "$limit" "$farside" run -n 2 "$act" stdin >"$work/out" 2>"$work/err"
  status=$?; check "$backend: stdin is rank 0's" 0 "^0 read 3$" "^1 read 0$"
}

signals_on() {
  local backend=$1 act=$programs/act_$1 time=$((2 + seconds_for_start))
  run "$farside" run -n 3 --timeout $time "$act" differ 2
  check "$backend: --timeout" 124 "was not done after $time.0 s \(--timeout\)" "stack of rank 0" "stack of rank 2" \
    "^ +0 +[0-9]+ +running +a barrier +- +[0-9.]+ s +7$" "^ +2 +[0-9]+ +running +a get +0 +[0-9.]+ s +6$" \
    "not entered the same number of collectives" "^ +6: rank 2$" "^ +7: rank 0 1$" "ending the 3 ranks"
  faster_than "$backend: --timeout, soon" $((time + 5)); nothing_left "$backend: --timeout, nothing left"
  ready=3 interrupt INT "$farside" run -n 3 "$act" hang
  check "$backend: SIGINT" 130 "received signal 2 \(SIGINT\); ending the 3 ranks"; faster_than "$backend: SIGINT, soon" 5
  nothing_left "$backend: SIGINT, nothing left"
  ready=3 interrupt QUIT "$farside" run -n 3 "$act" differ 1
  check "$backend: SIGQUIT goes on, SIGTERM ends" 143 "3 ranks, [0-9.]+ s after the start" "^ +1 +[0-9]+ +running +a get +2 " \
    "received signal 15"
  if grep -q "stack of" "$work/err"; then fail "$backend: SIGQUIT to the launcher only"; else pass "$backend: SIGQUIT to the launcher only"; fi
  ready=3 interrupt KILL "$farside" run -n 3 "$act" hang
  check "$backend: launcher killed" 137; nothing_left "$backend: launcher killed, nothing left"
}

wrong_command_lines
smp_only
for backend in smp openmpi mpich shmem; do
  [ -x "$programs/act_$backend" ] || continue
  endings $backend
  options_on $backend
  signals_on $backend
done
if [ -x "$programs/act_openmpi" ]; then
  run "$farside" run -n 2 --verbose "$programs/act_openmpi"; check "openmpi: --verbose" 0 "osc \^rdma" "crashes in its osc/rdma"
  run "$farside" run -n 2 --verbose --mpirun-arg --mca --mpirun-arg osc --mpirun-arg pt2pt "$programs/act_openmpi"
  if grep -q "rdma" "$work/err"; then fail "openmpi: the user's osc wins"; else pass "openmpi: the user's osc wins"; fi
fi
if [ -x "$programs/act_shmem" ]; then
  run "$farside" run -n 2 --segment 100M "$programs/act_shmem" env SHMEM_SYMMETRIC_HEAP_SIZE
  check "shmem: symmetric heap" 0 "^1 $(((100 + 64) << 20))$"
fi

finish
