#!/usr/bin/env bash
# run_test.sh MPI PROCESSES PROGRAM: it ends well, and says so.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
case $1 in
  openmpi) launcher=mpirun.openmpi ;;
  mpich) launcher=mpiexec.mpich ;;
esac
command -v "$launcher" > /dev/null || launcher=mpirun
output=$(timeout 100 "$launcher" -n "$2" "$3" 2>&1) || {
  printf 'ended with status %d:\n%s\n' $? "$output"
  exit 1
}
printf '%s\n' "$output"
grep -q 'all as it should be' <<< "$output"
