#!/usr/bin/env bash
# armci_test.sh FARSIDE FOLDER: programs of ARMCI and Global Arrays (FOLDER/armci_openmpi and so on) on 4 ranks of 4
# hosts (scripts/hosts), by every strategy that ARMCI has. Ends with status 77 where hosts cannot be made, and says why;
# with 1 if anything failed.
set -u
FARSIDE=$(realpath "$1")
folder=$(realpath "$2")
export FARSIDE FARSIDE_SEGMENT=64M FARSIDE_RIG=armci-$$
unset FARSIDE_THREADS FARSIDE_STATS FARSIDE_BOARD FARSIDE_MPI FARSIDE_MPI_SHARED FARSIDE_MPI_STRICT
hosts=$(realpath "$(dirname "$0")/../../scripts/hosts")
. "$(dirname "$0")/possible.sh"
missing=$(why_no_hosts)
if [ -n "$missing" ]; then
  echo "hosts.armci: skipped, $missing"
  exit 77
fi
trap '"$hosts" down > /dev/null' EXIT
"$hosts" up 4 || exit 77

failed=0
# try PROGRAM STRATEGY
try() {
  local begin=$SECONDS output status
  output=$(FARSIDE_MPI=$2 timeout 200 "$hosts" run -n 4 --timeout 180 "$folder/$1" 2>&1)
  status=$?
  if [ $status -eq 0 ] && grep -q 'all as it should be, on 4 processes' <<< "$output"; then
    echo "ok   $1 $2 in $((SECONDS - begin)) s"
  else
    printf 'FAIL %s %s, status %d:\n%s\n' "$1" "$2" $status "$output"
    failed=1
  fi
}
for mpi in openmpi mpich; do
  for program in armci global_arrays; do
    [ -x "$folder/${program}_$mpi" ] || continue
    for strategy in rma progress_thread progress_rank spawned; do
      [ $mpi-$strategy = mpich-spawned ] || try "${program}_$mpi" $strategy
    done
  done
done
exit $failed
