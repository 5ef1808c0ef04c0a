#!/usr/bin/env bash
# limits_test.sh FARSIDE PROGRAM_DIR DEATH [quick]
#
# Limits and broken surroundings of `farside run`: too few open files or processes, an agent that fails, output that
# cannot be written, closed descriptors, ranks that are killed while they start, memory that runs out. Each must end
# soon, with a status and a text that say why. PROGRAM_DIR holds act.cpp, DEATH is death.cpp built for any back end.
# With `quick` only some of it. Times are compared with those of a job that does nothing, as the machine may be busy.
set -u
farside=$(realpath "$1")
programs=$(realpath "$2")
death=$(realpath "$3")
quick=${4:-}
# shellcheck source=tests/launcher/checks.sh
. "$(dirname "$0")/checks.sh"
export FARSIDE_SEGMENT=16M
unset FARSIDE_THREADS FARSIDE_STATS FARSIDE_MPI
backends=()
for backend in smp openmpi mpich shmem; do
  [ ! -x "$programs/act_$backend" ] || backends+=("$backend")
done

# How long a job takes that ends well: the slowest of the back ends.
start=0
for backend in "${backends[@]}"; do
  limit=60 run "$farside" run -n 4 "$programs/act_$backend"
  check "$backend: a job that does nothing" 0
  start=$(awk -v a="$start" -v b="$seconds" 'BEGIN { print (a > b ? a : b) }')
done
bound=$(awk -v s="$start" 'BEGIN { print 5 + 5 * s }')
limit=$(awk -v b="$bound" 'BEGIN { printf "%d", b + 20 }')
echo "a job takes $start s; whatever fails has $bound s"

# --- output that cannot be written ------------------------------------------------------------------
# with_output TARGET COMMAND...: what run() does, with another stdout.
with_output() {
  local target=$1 begin=$EPOCHREALTIME
  shift
  : >"$work/out"
  if [ "$target" = closed ]; then
    timeout -k 5 "$limit" "$@" >&- 2>"$work/err" </dev/null
  else
    timeout -k 5 "$limit" "$@" >"$target" 2>"$work/err" </dev/null
  fi
  status=$?
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
}
lost='could not be written to standard output|cannot write the output of the ranks to standard output'
for backend in "${backends[@]}"; do
  with_output /dev/full "$farside" run --backend "$backend" -n 2 "$death" print 0 x
  check "$backend: output to a full device" 1 "($lost): No space left on device"
  for way in print_here cout; do
    with_output /dev/full "$farside" run --backend "$backend" -n 2 "$death" $way 0 x
    check "$backend: output of $way to a full device" 1 "($lost): No space left on device"
  done
  [ ! "$quick" ] || continue
  with_output /dev/full "$farside" run --prefix --backend "$backend" -n 2 "$death" print 0 x
  check "$backend: the same with --prefix" 1 "($lost): No space left on device"
  with_output closed "$farside" run --backend "$backend" -n 2 "$death" print 0 x
  check "$backend: stdout closed" 1 "($lost): Bad file descriptor"
  run "$farside" run --backend "$backend" -n 2 "$death" print 0 x
  check "$backend: output that can be written" 0 "^a line of rank 0$" "^a line of rank 1$"
  (timeout -k 5 "$limit" "$farside" run -n 2 "$programs/act_$backend" lines 0 20000 2>"$work/err"
    echo $? >"$work/status") </dev/null | head -1 >"$work/out"
  status=$(cat "$work/status")
  check "$backend: nobody reads the output" 141 "nobody reads the output of the ranks any more|signal 13 \(SIGPIPE\)"
done
with_output /dev/full "$death" print 0 x; check "started by hand: output to a full device" 1 "No space left"
with_output closed "$death" print 0 x; check "started by hand: stdout closed" 1 "Bad file descriptor"
timeout -k 5 "$limit" "$death" print 0 x >"$work/out" 2>"$work/err" <&-
status=$?; check "started by hand: stdin closed" 0 "^a line of rank 0$"
for option in --help --version; do
  with_output /dev/full "$farside" $option; check "$option: output to a full device" 1 "farside: cannot write to standard output: No space left"
done
with_output /dev/full "$farside" doctor; check "doctor: output to a full device" 1 "farside doctor: cannot write to standard output"
for backend in "${backends[@]}"; do
  # Were the board or the segments to get the number 0, something could be read there.
  timeout -k 5 "$limit" "$farside" run -n 2 "$programs/act_$backend" stdin <&- >"$work/out" 2>"$work/err"
  status=$?; check "$backend: stdin closed" 0 "^0 read 0$" "^1 read 0$"
done

# --- open files -----------------------------------------------------------------------------------------
for backend in "${backends[@]}"; do
  [ "$backend" != smp ] || continue
  run bash -c 'ulimit -n 32; exec "$@"' - "$farside" run -n 4 "$programs/act_$backend"
  check "$backend: a low hard limit on open files" 1 \
    "a job of 4 ranks on .* needs at least 48 open files in one process, and the hard limit is 32; raise it \(ulimit -H -n"
  faster_than "$backend: a low hard limit, soon" "$bound"
  [ ! "$quick" ] || continue
  run bash -c 'ulimit -S -n 32; exec "$@"' - "$farside" run -n 4 "$programs/act_$backend"
  check "$backend: a low soft limit on open files is raised" 0
  run bash -c 'ulimit -n 48; exec "$@"' - "$farside" run -n 4 "$programs/act_$backend"
  check "$backend: 48 open files are enough for 4 ranks" 0
done

# --- processes: root has no such limit, so another user does it -----------------------------------------
if [ "$quick" ]; then
  echo "quick: no limits on processes, ranks killed at the start, stopped ranks, memory that runs out"
elif [ "$EUID" = 0 ]; then
  # Files that the other user can reach, in a folder that others can enter.
  open=$(mktemp -d /tmp/limits.XXXXXX)
  trap 'rm -rf "$work" "$open"' EXIT
  chmod 755 "$open"
  cp "$farside" "$(dirname "$farside")/farside_guard.so" "$open"
  for backend in "${backends[@]}"; do cp "$programs/act_$backend" "$open"; done
  nobody=$((60000 + $$ % 5000)) # an id that nobody has: what else runs under it would count
  for backend in "${backends[@]}"; do
    for most in 8 12; do
      [ "$backend:$most" != smp:8 ] || most=4
      run env HOME=/tmp TMPDIR=/tmp setpriv --reuid $nobody --regid $nobody --clear-groups \
        bash -c 'ulimit -u '$most'; exec "$@"' - "$open/farside" run -n $((most == 12 ? 12 : 4)) "$open/act_$backend"
      check "$backend: $most processes at most" 1 "limit on processes|raise the limit on processes"
      faster_than "$backend: $most processes at most, soon" "$bound"
    done
  done
  left=$(pgrep -u $nobody)
  if [ "$left" ]; then fail "processes of a user who may have few are left: $left"; else pass "no process of that user is left"; fi
else
  echo "not root: limits on processes are not tried"
fi

# --- agents that fail -------------------------------------------------------------------------------------
for backend in "${backends[@]}"; do
  [ "$backend" != smp ] || continue
  run "$farside" run --hosts a1,a2 --agent /bin/false -n 2 "$programs/act_$backend"
  case $backend in
    mpich) said="the agent that was to start ranks on another host \(/bin/false, pid [0-9]+\) ended with status 1; try it: /bin/false HOST true" ;;
    *) said="ended with status 1" ;;
  esac
  check "$backend: an agent that fails" 1 "$said"; faster_than "$backend: an agent that fails, soon" "$bound"
done
[ ! "$quick" ] || finish
[ ! "$quick" ] || exit 0
if [ -x "$programs/act_mpich" ]; then
  run "$farside" run --hosts a1,a2 --agent /bin/true -n 2 "$programs/act_mpich"
  check "mpich: an agent that does nothing" 1 "\(/bin/true\) ended with status 0, but no host has called back"
  faster_than "mpich: an agent that does nothing, soon" "$(awk -v b="$bound" 'BEGIN { print b + 5 }')"

  # --- a rank is killed while MPICH's shared memory has a name ---------------------------------------------
  other=/dev/shm/mpich_shar_tmp-of-another-job-$$
  : >"$other"
  caught=0
  for _ in 1 2 3 4 5 6; do
    rm -f "$work"/pid.*
    before=$(ls /dev/shm)
    WORK=$work timeout -k 5 "$limit" "$farside" run --backend mpich -n 8 \
      sh -c 'echo $$ >"$WORK/pid.$PMI_RANK"; exec "$0" hang' "$programs/act_mpich" >"$work/out" 2>"$work/err" </dev/null &
    job=$!
    mine=""
    while [ ! "$mine" ] && kill -0 $job 2>/dev/null && [ "$(grep -c ready "$work/out")" = 0 ]; do
      for file in /dev/shm/mpich_shar_tmp*; do
        case " $before " in *"${file##*/}"*) ;; *) [ ! -e "$file" ] || mine=$file ;; esac
      done
    done
    read -r pid <"$work/pid.0" && kill -9 "$pid"
    wait $job
    status=$?
    [ "$mine" ] || continue
    caught=$((caught + 1))
    [ ! -e "$mine" ] || fail "mpich: a rank killed during the start leaves $mine"
    rm -f "$mine"
    check "mpich: a rank killed during the start" 137 "rank 0 \(pid $pid\) was killed by signal 9"
    [ $caught -lt 2 ] || break
  done
  [ $caught -gt 0 ] || fail "mpich: no rank could be killed at the right moment"
  if [ -e "$other" ]; then pass "mpich: files of others stay"; else fail "mpich: a file of another job was removed"; fi
  rm -f "$other"
fi

# --- stopped ranks, and memory that runs out --------------------------------------------------------------
for backend in "${backends[@]}"; do
  "$farside" run -n 2 "$programs/act_$backend" hang >"$work/out" 2>"$work/err" </dev/null &
  launcher=$!
  for _ in $(seq 600); do
    [ "$(grep -o ready "$work/out" | wc -l)" -lt 2 ] || break
    sleep 0.1
  done
  kill -QUIT $launcher
  for _ in $(seq 100); do
    pid=$(awk '$1 == 1 && $3 == "running" { print $2 }' "$work/err")
    [ ! "$pid" ] || break
    sleep 0.1
  done
  kill -STOP "$pid"
  for _ in $(seq 20); do
    kill -QUIT $launcher
    sleep 0.2
    grep -qE "^ +1 +$pid +stopped" "$work/err" && break
  done
  kill -TERM $launcher
  begin=$EPOCHREALTIME
  wait $launcher
  status=$?
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
  check "$backend: a stopped rank" 143 "^ +1 +$pid +stopped "
  faster_than "$backend: a stopped rank ends, soon" "$bound"
done
run "$farside" run -n 2 "$programs/act_smp" kill 1 9
check "SIGKILL from somewhere" 137 "killed by signal 9 \(SIGKILL\), by somebody, or by the kernel if memory ran out; ending"
group="" # a control group with little memory, where we may make one
for folder in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  [ -z "$group" ] && mkdir "$folder/farside-limits-$$" 2>/dev/null || continue
  group=$folder/farside-limits-$$
  echo 64M 2>/dev/null >"$group/memory.limit_in_bytes" || echo 64M 2>/dev/null >"$group/memory.max" ||
    { rmdir "$group"; group=""; }
done
if [ "$group" ]; then
  for backend in smp openmpi; do
    [ -x "$programs/act_$backend" ] || continue
    run bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$group" \
      "$farside" run -n 2 "$programs/act_$backend" eat 1
    check "$backend: memory runs out" 137 "rank 1 .*\(SIGKILL\), by the kernel: memory ran out, 1 killed \(oom_kill of $group"
  done
  rmdir "$group"
else
  echo "no control group can be made here: what the kernel kills for memory is not tried"
fi

finish
