#!/usr/bin/env bash
# any_test.sh FARSIDE PROGRAM BACKEND...
#
# One program, any.cpp, on every back end that this build has, by `farside run`, by `farside sim`, by
# mpirun and by hand; and what it says where it cannot know its transport, or cannot load it.
set -u
farside=$1 program=$2
shift 2
folder=$(dirname "$farside")
. "$(dirname "$0")/../launcher/checks.sh"
limit=60
unset FARSIDE_CARRIER FARSIDE_THREADS FARSIDE_STATS

run "$program"; check "by hand" 0 '^1 ranks, carried by smp$'
run "$farside" run -n 3 "$program"; check "smp unless told otherwise" 0 '^3 ranks, carried by smp$'
run "$farside" run -n 3 --threads "$program"; check "threads" 0 '^3 ranks, carried by smp$'
run "$farside" run -n 2 --env FARSIDE_STATS=1 "$program"; check "statistics" 0 'back end smp'
run "$farside" run -n 2 --backend pigeon "$program"; check "no such back end" 2 'there is no such back end'
# Settings, and the command. MPICH's mpirun dies of SIGPIPE now and then if a program that does not use MPI ends at
# once: on a busy machine in 4 of 60 runs of `mpirun -n 1 true`.
run_mpirun() {
  for _ in 1 2 3 4 5; do
    run env "$@"
    [[ $status == 141 ]] || return 0
  done
}

for backend in "$@"; do
  case $backend in
    openmpi | mpich) name=mpi ;;
    *) name=$backend ;;
  esac
  run "$farside" run -n 3 --backend "$backend" "$program"; check "$backend" 0 "^3 ranks, carried by $name\$"
  # A setting of the caller's own is for programs that are started by hand.
  run env FARSIDE_CARRIER=/nowhere "$farside" run -n 2 --backend "$backend" "$program"
  check "$backend: the launcher decides" 0 "^2 ranks, carried by $name\$"
  if [[ $backend != smp ]]; then
    cp "$farside" "$work/farside"
    run "$work/farside" run -n 2 --backend "$backend" "$program"
    check "$backend: a farside without it" 127 "farside_$backend.so, is neither in"
  fi
  case $backend in
    sim) run "$farside" sim -n 3 --seeds 1..4 "$program"; check "farside sim" 0 '4 runs at 3 ranks' ;;
    openmpi | mpich)
      mpirun=$(command -v "mpirun.$backend" || command -v mpirun)
      options=()
      [[ $backend != openmpi ]] || options=(--allow-run-as-root --oversubscribe)
      run_mpirun FARSIDE_CARRIER="$folder/farside_$backend.so" "$mpirun" "${options[@]}" -n 2 "$program"
      check "$backend: plain mpirun" 0 '^2 ranks, carried by mpi$'
      run_mpirun "$mpirun" "${options[@]}" -n 2 "$program"
      check "$backend: plain mpirun, untold" 1 'one of 2 that .* has started \((OMPI_COMM_WORLD|PMI)_SIZE=2\), but nothing tells it which transport carries it' \
        "'farside run -n 2 --backend NAME PROGRAM'"
      run_mpirun "$mpirun" "${options[@]}" -n 1 "$program"; check "$backend: mpirun -n 1, untold" 0 '^1 ranks, carried by smp$'
      for other in "$@"; do
        case $other in smp | $backend) continue ;; esac
        [[ $backend != openmpi || $other != shmem ]] || continue # whose mpirun it is
        # Addresses that are not random: OpenSHMEM registers as many pieces of a process as its libraries take (32 at most).
        run_mpirun FARSIDE_CARRIER="$folder/farside_$other.so" "$mpirun" "${options[@]}" -n 2 setarch -R "$program"
        check "$other under mpirun of $backend" 1 \
          'this process would be a job of its own, but it is one of 2 processes that .* has started \((OMPI_COMM_WORLD|PMI)_SIZE=2\)' \
          "Start it with 'farside run -n 2 PROGRAM'"
        run_mpirun FARSIDE_CARRIER="$folder/farside_$other.so" "$mpirun" "${options[@]}" -n 1 setarch -R "$program"
        check "$other under mpirun -n 1 of $backend" 0 '^1 ranks, carried by'
      done
      printf '#!/bin/sh\nexec "$@"\n' >"$work/wrapper" && chmod +x "$work/wrapper"
      run "$farside" run -n 2 --backend "$backend" "$work/wrapper" "$program"
      check "$backend: by a script, untold" 1 "'farside run' has started this process as one of 2, but nothing tells it which transport" \
        "'farside run -e FARSIDE_CARRIER=PATH'"
      run "$farside" run -n 2 --backend smp -e FARSIDE_CARRIER="$folder/farside_$backend.so" "$work/wrapper" "$program"
      check "$backend: by a script, as smp" 1 "'farside run' has started it as one of 2 ranks of another back end than"
      ;;
  esac
done

run env FARSIDE_CARRIER=/nowhere/farside_x.so "$program"
check "no such file" 1 "cannot load the transport FARSIDE_CARRIER='/nowhere/farside_x.so'"
cp "$(ldd "$program" | sed -n 's/.*=> \(.*libgcc_s[^ ]*\) .*/\1/p')" "$work/other.so"
run env FARSIDE_CARRIER="$work/other.so" "$program"; check "some other library" 1 'is no transport of farside'
finish
