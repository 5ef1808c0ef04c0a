#!/usr/bin/env bash
# slurm_test.sh FARSIDE PROGRAM_DIR BACKEND...
#
# Jobs under Slurm, of one node: what srun, salloc and sbatch may start, and what they are told where a start would
# become several jobs of one rank. PROGRAM_DIR holds hello_smp and any_any; BACKEND are the carriers of this build.
# All of Slurm runs in namespaces of its own, and ends with this test.
set -u
here=$(realpath "$(dirname "$0")")
. "$here/namespace.sh"
if [[ -z ${INSIDE_OWN_MACHINE:-} ]]; then
  for program in munged slurmctld slurmd srun salloc sbatch; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "there is no $program (apt-get install slurm-wlm)"
  done
  own_machine "$0" "$@"
fi
farside=$(realpath "$1") programs=$(realpath "$2")
shift 2
export PATH=$PATH:/usr/sbin
begin_machine node1 '127.0.0.1 localhost node1'
. "$here/../launcher/checks.sh"
unset FARSIDE_CARRIER FARSIDE_THREADS FARSIDE_NPROCS FARSIDE_SEPARATE_JOBS

# --- a cluster of one node ------------------------------------------------------------------------
export SLURM_CONF=$work/slurm.conf
chmod 755 "$work"
head -c 128 /dev/urandom >"$work/key"
chmod 400 "$work/key"
mkdir "$work/state" "$work/spool"
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=node1(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
NodeName=node1 NodeAddr=127.0.0.1 CPUs=4
PartitionName=all Nodes=node1 Default=YES State=UP OverSubscribe=FORCE:8
CONF
timeout 10 munged --force --key-file="$work/key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
  --log-file="$work/munge.log" --seed-file="$work/seed" || skip "munged does not start: $(tail -n 1 "$work/munge.log")"
slurmctld -D >/dev/null 2>&1 &
slurmd -D -N node1 >/dev/null 2>&1 &
for _ in $(seq 150); do
  [[ $(timeout 2 sinfo -h -o %t 2>/dev/null) == idle ]] && break
  sleep 0.1
done
[[ $(timeout 2 sinfo -h -o %t 2>&1) == idle ]] ||
  skip "Slurm's node does not come up: $(tail -qn 1 "$work/slurmctld.log" "$work/slurmd.log")"
plugins=$(srun --mpi=list 2>&1)

hello=$programs/hello_smp any=$programs/any_any folder=$(dirname "$farside")
alone='this process would be a job of its own, but it is one of 2 processes that srun has started \(SLURM_STEP_NUM_TASKS=2\)'

# --- built for smp --------------------------------------------------------------------------------
run srun -Q -n 2 "$hello"
check "smp: srun -n 2" 1 "$alone: a program that is built for smp learns of its ranks from 'farside run' only" \
  "Start it with 'farside run -n 2 PROGRAM' \(under Slurm: 'salloc -n 2 farside run -n 2 PROGRAM'\), or build it for mpi" \
  "set FARSIDE_SEPARATE_JOBS=1"
run env FARSIDE_SEPARATE_JOBS=1 srun -Q -n 2 "$hello"; check "smp: separate jobs" 0 '^rank 0 of 1 '
run srun -Q -n 2 env FARSIDE_THREADS=2 "$hello"; check "smp: srun -n 2, ranks as threads" 1 "$alone"
run srun -Q -n 1 "$hello"; check "smp: srun -n 1" 0 '^rank 0 of 1 '
run salloc -Q -n 2 "$hello"; check "smp: by hand in salloc" 0 '^rank 0 of 1 '
run salloc -Q -n 2 "$farside" run -n 2 "$hello"; check "smp: farside run in salloc" 0 '^rank 1 of 2 reads 3$'
run srun -Q -n 1 "$farside" run -n 2 "$hello"; check "smp: farside run in a step" 0 '^rank 1 of 2 reads 3$'
run srun -Q -n 2 "$farside" run -n 3 "$hello"
check "two launchers" 2 "this farside run is one of 2 processes that srun has started .*, and each of them would start a job of 3 ranks" \
  "srun -n 1 farside run -n 3 ..., or salloc"
run script -qec "srun -Q -n 2 --pty sh -c '$hello; $farside run -n 2 $hello'" /dev/null
check "smp: by hand in a shell of srun --pty" 0 'rank 0 of 1 ' 'rank 1 of 2 reads 3'
run script -qec "srun -Q -n 2 --pty $hello" /dev/null; check "smp: srun --pty, no shell" 1 "$alone"
printf '#!/bin/sh\n%s\n%s run -n 2 %s\necho over\n' "$hello" "$farside" "$hello" >"$work/script"
run sbatch -n 2 -o "$work/batch" "$work/script"
for _ in $(seq 100); do grep -qs over "$work/batch" && break; sleep 0.1; done
cp "$work/batch" "$work/out"; check "smp: by hand in a batch script" 0 '^rank 0 of 1 ' '^rank 1 of 2 reads 3$'

# --- built for any back end -------------------------------------------------------------------------
run srun -Q -n 2 "$any"
check "any: untold" 1 'this process is one of 2 that srun has started \(SLURM_STEP_NUM_TASKS=2\), but nothing tells it which transport' \
  "'salloc -n 2 farside run -n 2 --backend NAME PROGRAM'" 'set FARSIDE_CARRIER to'
run srun -Q -n 1 "$any"; check "any: srun -n 1" 0 '^1 ranks, carried by smp$'
for backend in "$@"; do
  case $backend in
    openmpi) name='MPI' by=mpi right=pmix wrong='none pmi2' instead="Open MPI's mpirun, or with 'srun --mpi=pmix'" ;;
    shmem) name='OpenSHMEM' by=shmem right=pmix wrong=none instead="oshrun, or with 'srun --mpi=pmix setarch -R PROGRAM'" ;;
    mpich) name='MPI' by=mpi right=pmi2 wrong='none pmix' instead="MPICH's mpiexec, or with 'srun --mpi=pmi2'" ;;
    *) continue ;;
  esac
  # OpenSHMEM registers at most 32 pieces of a process. How many there are depends on where its libraries lie, which
  # `farside run` fixes, and srun does not.
  fixed=()
  [[ $backend != shmem ]] || fixed=(setarch -R)
  carried=(env "FARSIDE_CARRIER=$folder/farside_$backend.so" "${fixed[@]}" "$any")
  for pmi in $wrong; do
    [[ $pmi == none || $plugins == *$pmi* ]] || continue
    run srun -Q --mpi=$pmi -n 2 "${carried[@]}"
    # Slurm gives the status of the first that fails, or of the signal it ended the other with.
    [[ $status == 0 ]] || status=1
    check "$backend: srun --mpi=$pmi -n 2" 1 "$alone: $name is told of none of them" "with $instead"
    run srun -Q --mpi=$pmi -n 1 "${carried[@]}"
    check "$backend: srun --mpi=$pmi -n 1" 0 "^1 ranks, carried by $by\$"
  done
  if [[ $plugins == *$right* ]]; then
    run srun -Q --mpi=$right -n 2 "${carried[@]}"; check "$backend: srun --mpi=$right -n 2" 0 "^2 ranks, carried by $by\$"
  else
    fail "Slurm has no $right"
  fi
  run salloc -Q -n 2 "$farside" run -n 2 --backend "$backend" "$any"
  check "$backend: farside run in salloc" 0 "^2 ranks, carried by $by\$"
  run srun -Q --mpi=$right -n 1 "$farside" run -n 2 --backend "$backend" "$any"
  check "$backend: farside run in a step" 0 "^2 ranks, carried by $by\$"
done
finish
