#!/usr/bin/env bash
# host_name_test.sh FARSIDE PROGRAM_DIR BACKEND...
#
# Jobs on a host whose name is in no table, and whose name server does not answer: they start as fast as elsewhere, and
# where they cannot, they say why. PROGRAM_DIR holds any_any, hello_smp and act_BACKEND.
set -u
here=$(realpath "$(dirname "$0")")
. "$here/namespace.sh"
[[ -n ${INSIDE_OWN_MACHINE:-} ]] || own_machine "$0" "$@"
farside=$(realpath "$1") programs=$(realpath "$2")
shift 2
begin_machine nowhere.invalid ''
. "$here/../launcher/checks.sh"
limit=60
unset FARSIDE_CARRIER FARSIDE_THREADS FARSIDE_NPROCS FARSIDE_SEPARATE_JOBS HWLOC_COMPONENTS RES_OPTIONS

names_are_known() { printf '127.0.0.1 localhost\n127.0.1.1 nowhere.invalid\n' >/run/hosts; }
no_name_is_known() { : >/run/hosts; }

no_name_is_known
run timeout 2 getent hosts nowhere.invalid
check "a look-up takes longer than 2 s here" 124
for backend in "$@"; do
  case $backend in
    openmpi | mpich) name=mpi ;;
    *) name=$backend ;;
  esac
  names_are_known
  run "$farside" run -n 2 --backend "$backend" "$programs/any_any"
  check "$backend: with a name" 0 "^2 ranks, carried by $name\$"
  usual=$seconds
  no_name_is_known
  run "$farside" run -n 2 --backend "$backend" "$programs/any_any"
  check "$backend: without a name" 0 "^2 ranks, carried by $name\$"
  # A single look-up takes 10 s at least.
  faster_than "$backend: as fast as with a name ($usual s)" "$(awk -v a="$usual" 'BEGIN { print 3 * a + 3 }')"
  if [[ -s $work/err ]]; then fail "$backend: nothing else is said"; else pass "$backend: nothing else is said"; fi
  if [[ -x $programs/act_$backend && $backend != smp ]]; then
    run env RES_OPTIONS=ndots:2 "$farside" run -n 1 "$programs/act_$backend" env RES_OPTIONS
    check "$backend: the ranks have the user's settings" 0 '^0 ndots:2$'
    run "$farside" run -n 1 "$programs/act_$backend" env RES_OPTIONS
    check "$backend: and none if there are none" 0 '^0 \(unset\)$'
  fi
done

# --- where it cannot be avoided ------------------------------------------------------------------
if [[ " $* " == *' mpich '* ]]; then
  run "$farside" run -n 2 --backend mpich --timeout 4 --mpirun-arg -hosts --mpirun-arg 127.0.0.1 "$programs/any_any"
  check "a job that starts slowly says why" 124 \
    "no rank has started after [0-9.]+ s. To look up the name of this host, 'nowhere.invalid', takes longer than" \
    'Add this line to /etc/hosts: 127\.0\.1\.1 nowhere\.invalid$'
fi
run "$farside" doctor
check "doctor warns" 0 "warning +host name +'nowhere.invalid' is still being looked up after 3.0 s" \
  'add this line to /etc/hosts: 127\.0\.1\.1 nowhere\.invalid$' "warning +host name +'localhost'"
names_are_known
run "$farside" doctor; check "doctor is content" 0 "ok +host name +'nowhere.invalid' resolves"

# --- wrong starts are told from right ones here, too -------------------------------------------------
no_name_is_known
if command -v mpirun.openmpi >/dev/null; then
  plain=(env HWLOC_COMPONENTS=-gl mpirun.openmpi --allow-run-as-root --oversubscribe)
  run "${plain[@]}" -n 2 "$programs/hello_smp"
  check "smp under mpirun" 1 "one of 2 processes that Open MPI's mpirun has started \(OMPI_COMM_WORLD_SIZE=2\)"
  run "${plain[@]}" -n 1 "$programs/hello_smp"; check "smp under mpirun -n 1" 0 '^rank 0 of 1 '
fi
finish
