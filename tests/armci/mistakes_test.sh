#!/usr/bin/env bash
# mistakes_test.sh LAUNCHER PROGRAM: each mistake ends the job, and one line says what was wrong.
set -uo pipefail
launcher=$1 program=$2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
failed=0

# expect TEXT [NAME=value...] MISTAKE
expect() {
  local text=$1 mistake=${*: -1} output status
  output=$(env "${@:2:$#-2}" timeout 60 "$launcher" -n 2 "$program" $mistake 2>&1)
  status=$?
  if [ $status -eq 0 ] || [ $status -eq 124 ] || ! grep -qF -- "$text" <<< "$output" ||
    ! grep -qE "process [0-9]+: (ARMCI|MPI|armci)" <<< "$output"; then
    printf '%s ended with status %d, and without "%s":\n%s\n' "$mistake" $status "$text" "$output"
    failed=1
  fi
}
expect 'there is no process 2: this job has 2' process
expect 'are no memory of process' address
expect 'are no memory of process' FARSIDE_SEGMENT=64M beyond
expect 'which this library has not put there' handle
expect 'are no memory of process' nowhere
expect 'the handle is a null pointer' null
expect '-8 bytes are to be copied' negative
expect '99 stride levels were given' levels
expect 'no allocation begins there' free
expect 'is no operation of a collective' operation
expect 'is of integers, not of floating point' logic
expect 'this is no group' none
expect '9 is no type of an accumulate' type
expect 'there are no mutexes' mutex
expect 'FARSIDE_SEGMENT=SIZE' FARSIDE_SEGMENT=64M room
expect 'is no member of this group' group
expect 'ARMCI has not been started, or has ended' early
expect 'FARSIDE_MPI=two_sided serves others only in calls of the library' FARSIDE_MPI=two_sided process
exit $failed
