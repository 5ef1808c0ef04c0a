#!/usr/bin/env bash
# suites_test.sh FARSIDE PROGRAM_DIR [--quick | --once] [WORD...]
#
# The suites of tests, whole, on 4 ranks of 4 hosts (scripts/hosts), by every strategy of the mpi back
# end, on Open MPI and MPICH: one line for each, such as
#
#   ok   containers.openmpi.two_sided: 143 passed, 0 failed in 40.1 s; slowest: queues.many (1203 ms)
#
# and what was printed, where it failed. WORD: only those whose name contains one of the words.
# --quick: a few tests of conformance and containers. --once: the containers by each strategy on one MPI.
# The containers do a fourth of what they do elsewhere (FARSIDE_TEST_SHARE): eight processes and more share the cores.
# PROGRAM_DIR holds conformance_, containers_ and messages_ for any back end, with what carries them, or for openmpi
# and mpich, as far as they are built. Ends with status 77 where hosts cannot be made, and says why; with 1 if
# anything failed.
set -u
FARSIDE=$(realpath "$1")
programs=$(realpath "$2")
shift 2
quick='' once=''
case ${1:-} in
  --quick) quick=1 && shift ;;
  --once) once=1 && shift ;;
esac
words=("$@")
export FARSIDE FARSIDE_SEGMENT=32M FARSIDE_RIG=suites-$$
unset FARSIDE_THREADS FARSIDE_STATS FARSIDE_BOARD FARSIDE_MPI FARSIDE_MPI_SHARED FARSIDE_MPI_STRICT
hosts=$(realpath "$(dirname "$0")/../../scripts/hosts")
. "$(dirname "$0")/../launcher/checks.sh"
. "$(dirname "$0")/possible.sh"

skip() {
  echo "hosts.suites: skipped, $1"
  exit 77
}
missing=$(why_no_hosts)
[ -z "$missing" ] || skip "$missing"
ls "$programs"/{conformance,containers,messages}_any "$programs"/farside_{openmpi,mpich}.so >/dev/null 2>&1 ||
  ls "$programs"/{conformance,containers,messages}_{openmpi,mpich} >/dev/null 2>&1 ||
  echo "not all suites are built for both Open MPI and MPICH: only those that are will run"

# shellcheck disable=SC2154  # work is of checks.sh
trap '"$hosts" down >/dev/null; rm -rf "$work"' EXIT
"$hosts" up 4 || skip "the hosts could not be made"

# filters SUITE: which of its tests. Those of `attention` need FARSIDE_ATTENTION=thread.
filters() {
  case $1${quick:+-quick} in
    conformance-quick) echo "rma. atomics.every_operation_uint64" ;;
    containers-quick) echo "arrays.over_a_team queues.pushes_of_many" ;;
    messages) echo "rpc visit serving" ;;
  esac
}

slowest() {
  sed -n 's/^ok \(.*\) (\([0-9]*\) ms)$/\2 \1/p' "$work/out" | sort -rn |
    awk 'NR == 1 { printf "; slowest: %s (%s ms)", $2, $1 }'
}

# try SUITE MPI STRATEGY
try() {
  local name=$1.$2.$3 program=$programs/$1_$2 word chosen=$((${#words[@]} == 0)) summary
  if [ -e "$programs/farside_$2.so" ] && [ -x "$programs/$1_any" ]; then program=$programs/$1_any; fi
  [ -x "$program" ] || return 0
  for word in "${words[@]}"; do [[ $name != *"$word"* ]] || chosen=1; done
  ((chosen)) || return 0
  limit=300
  [ -z "$quick" ] || limit=200 # on a busy machine each wait inside of Open MPI costs time slices
  # shellcheck disable=SC2046  # words
  run "$hosts" run -n 4 --backend "$2" -e FARSIDE_MPI="$3" -e FARSIDE_TEST_SHARE=4 --timeout $((limit - 20)) "$program" $(filters "$1")
  summary=$(grep -E '^[0-9]+ passed, 0 failed' "$work/out")
  if [ "$2.$3" = mpich.spawned ]; then
    if [ "$status" = 0 ]; then
      fail "$name: it cannot be, and ends with 0"
    else
      check "$name: cannot be, and says so" "$status" 'MPICH 4.0 cannot spawn. Use FARSIDE_MPI=progress_rank'
    fi
  elif [ "$status" != 0 ] || [ -z "$summary" ]; then
    fail "$name: status $status after $seconds s"
  elif grep -q 'BAD TERMINATION' "$work/out" "$work/err"; then
    fail "$name: passed, but mpiexec complains"
  else
    pass "$name: $summary in $seconds s$(slowest)"
  fi
}

suites=(conformance containers)
[ -n "$quick" ] || suites+=(messages)
for suite in "${suites[@]}"; do
  for strategy in two_sided progress_thread progress_rank spawned rma; do
    for mpi in openmpi mpich; do
      case $once$suite.$mpi.$strategy in
        1containers.openmpi.progress_thread | 1containers.openmpi.progress_rank) continue ;;
        1containers.mpich.two_sided | 1containers.mpich.rma) continue ;;
      esac
      try "$suite" "$mpi" "$strategy"
    done
  done
done
finish
