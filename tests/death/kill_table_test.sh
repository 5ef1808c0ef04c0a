#!/usr/bin/env bash
# kill_table_test.sh FARSIDE PROGRAM quick|full FLAVOUR...   (quick: SIGKILL to supervisors and daemons)
#
# Each signal to each kind of process of a running job, on each back end: the whole job must end, within a time that
# is counted in start-ups of such a job, with a status that is not 0, name the process that got the signal, and leave
# no process, no file in /dev/shm and no shared memory of System V. Prints a table.
#
#   kinds     rank, launcher, supervisor, mpirun, daemon (of MPICH), server (FARSIDE_MPI=progress_rank)
#   STOP      ends nothing, nor do a few others: afterwards the launcher is told to end (if it is stopped itself, it is
#             killed)
set -u
extent=$3
set -- "$1" "$2" "${@:4}" # support.sh takes a flavour as its third argument; here there are several
flavours=("${@:3}")
# shellcheck source=tests/death/support.sh
. "${BASH_SOURCE[0]%/*}/support.sh"
unset FARSIDE_MPI FARSIDE_MPI_SHARED

# starts_job: as starts, and says how long it took in $start_ms.
starts_job() {
  local begin
  begin=$(now_ms)
  start_case
  # Shells let background jobs ignore SIGINT, and so would the ranks.
  env --default-signal=INT,QUIT,HUP "$farside" run --backend "$backend" -n 3 "$program" none 1 barrier "$tag" >"$output" 2>&1 </dev/null &
  launcher=$!
  while ! grep -q "all are there" "$output"; do
    if (($(now_ms) > begin + 60000)) || ! kill -0 $launcher 2>/dev/null; then
      fail "did not start"
      kill -9 $launcher 2>/dev/null
      wait $launcher 2>/dev/null
      return 1
    fi
    sleep 0.05
  done
  start_ms=$(($(now_ms) - begin))
}

# Processes of the job by what they are. The tag is in the command line of each but the daemon.
children() { cat "/proc/$1/task/"*/children 2>/dev/null; }
tree() {
  local child
  echo "$1"
  for child in $(children "$1"); do tree "$child"; done
}
find_process() { # KIND
  local pid words
  if [[ $1 == server ]]; then
    kill -QUIT "$launcher"
    for _ in $(seq 40); do
      pid=$(sed -nE 's/^ *[0-9]+ +([0-9]+) +running +requests of others.*/\1/p' "$output" | head -1)
      [[ -z $pid ]] || break
      sleep 0.1
    done
    echo "$pid"
    return
  fi
  for pid in $(tree "$launcher"); do
    words=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)
    case $1 in
      launcher) ((pid == launcher)) || continue ;;
      mpirun) [[ ${words%% *} =~ (mpirun|mpiexec|oshrun) ]] || continue ;;
      daemon) [[ ${words%% *} == *hydra_pmi_proxy ]] || continue ;;
      supervisor) [[ ${words#* } == "__rank "* ]] || continue ;;
      rank) [[ ${words%% *} == "$program" ]] || continue ;;
    esac
    echo "$pid"
    return
  done
}

system_v() { awk 'NR > 1 { print $2, $5 }' /proc/sysvipc/shm; } # id and creator

# says KIND PID SIGNAL: what the launcher must say of it.
says() {
  local number
  number=$(kill -l "$3")
  case $1 in
    rank) echo "rank [0-9]+ \(pid $2\) (was killed by signal $number|exited with status|failed)" ;;
    server) echo "progress rank [0-9]+ \(pid $2\) (was killed by signal $number|exited with status|failed)" ;;
    supervisor) echo "supervisor \(pid $2\).* (of rank|received signal $number)" ;;
    mpirun) echo "(mpirun|mpiexec|oshrun)[^ ]* (was killed by signal $number|ended with status)" ;;
    daemon) echo "daemon of .*pid $2\)" ;;
    launcher) echo "received signal $number" ;;
  esac
}

# lives PID: there is such a process, and it has not ended (its parent may not have noticed yet).
lives() {
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  [[ ${stat##*) } != [ZX]* ]]
}

# survives KIND SIGNAL: that process goes on, or waits to be continued. A rank of OpenSHMEM, and the daemon of MPICH,
# have handlers that do nothing.
survives() {
  [[ $2 == STOP ]] || [[ $backend:$1:$2 =~ ^(shmem:rank:TERM|mpich:daemon:(TERM|INT))$ ]]
}

rows=()
slowest=0
slowest_of=none
longest_start=0
combinations=0
strike() { # KIND SIGNAL
  local kind=$1 signal=$2 pid pids begin took=0 status name pattern bound before until living_now
  what="SIG$signal to the $kind"
  before=$failed
  starts_job || return
  pids=$(tree "$launcher")
  pid=$(find_process "$kind")
  if [[ -z $pid ]]; then
    fail "there is no such process"
    kill -9 $launcher
    wait $launcher 2>/dev/null
    return
  fi
  combinations=$((combinations + 1))
  ((start_ms <= longest_start)) || longest_start=$start_ms
  bound=$((5000 + 10 * longest_start))
  kill -"$signal" "$pid"
  if survives "$kind" "$signal"; then
    sleep 0.5
    lives $launcher || fail "the job has ended, though this signal ends nothing"
    [[ $kind == launcher ]] && kill -KILL $launcher || kill -TERM $launcher
  fi
  begin=$(now_ms)
  until=$((begin + bound))
  while :; do
    living_now=""
    for name in $pids; do lives "$name" && living_now+=" $name"; done
    [[ -n $living_now ]] && (($(now_ms) < until)) || break
    sleep 0.05
  done
  took=$(($(now_ms) - begin))
  # A job that does not end shall fail the test, not hold it.
  ! lives $launcher || kill -9 $launcher
  wait $launcher 2>/dev/null
  status=$?
  ((status != 0)) || fail "ends with status 0"
  [[ -z $living_now ]] || fail "processes are left after $took ms:$living_now"
  if [[ -n $living_now ]]; then kill -9 $living_now 2>/dev/null; fi
  ((took <= bound)) || fail "took $took ms to end; a start takes $start_ms ms"
  pattern=$(says "$kind" "$pid" "$signal")
  survives "$kind" "$signal" && pattern='received signal 15'
  # A launcher that is killed cannot speak.
  if [[ $kind != launcher || $signal =~ ^(TERM|INT|HUP)$ ]]; then
    grep -qE -- "$pattern" "$output" || fail "does not say '$pattern'"
  fi
  for name in $pids; do
    [[ -z $(system_v | awk -v pid="$name" '$2 == pid') ]] || fail "shared memory of System V of process $name is left"
  done
  [[ $kind != launcher ]] || sleep 0.3 # the janitor's moment
  no_files_left
  find /dev/shm -mindepth 1 -maxdepth 1 -name "farside.$launcher.*" | grep -q . && fail "its folder in /dev/shm is left"
  ((took <= slowest)) || { slowest=$took; slowest_of="$flavour, SIG$signal to the $kind"; }
  rows+=("$(printf '%-22s %-11s %-5s %5d ms  status %3d  %s' "$flavour" "$kind" "$signal" $took $status \
    "$( ((failed == before)) && echo ok || echo FAILED)")")
}

for flavour in "${flavours[@]}"; do
  backend=${flavour%%-*}
  unset FARSIDE_MPI FARSIDE_MPI_SHARED
  kinds=(rank launcher)
  [[ $backend == smp ]] || kinds+=(supervisor mpirun)
  [[ $backend != mpich ]] || kinds+=(daemon)
  if [[ $flavour == *-progress_rank ]]; then
    export FARSIDE_MPI=progress_rank FARSIDE_MPI_SHARED=0
    kinds=(server)
  fi
  case $flavour in
    mpich*) shm_names='mpich|ucx' ;;
    *) shm_names='vader|osc|sm_segment|ucx|sshmem' ;;
  esac
  for kind in "${kinds[@]}"; do
    signals=(KILL TERM INT HUP SEGV ABRT STOP)
    [[ $extent == full ]] || signals=(KILL)
    [[ $extent == full || $kind =~ ^(supervisor|daemon)$ ]] || continue
    for signal in "${signals[@]}"; do
      strike "$kind" "$signal"
    done
  done
done
printf '%s\n' "${rows[@]}"
echo "$combinations combinations; the slowest job ended after $slowest ms ($slowest_of); the longest start took $longest_start ms"
conclude
