#!/usr/bin/env bash
# hosts_test.sh FARSIDE PROGRAM_DIR
#
# Several hosts on one machine (scripts/hosts), and jobs over them (farside run --hosts). PROGRAM_DIR
# holds where_ and conformance_ for openmpi, mpich and shmem, as far as they are built, death_any, and
# one program for smp. Ends with status 77 where hosts cannot be made, and says why.
set -u
FARSIDE=$(realpath "$1")
programs=$(realpath "$2")
export FARSIDE FARSIDE_SEGMENT=32M FARSIDE_RIG=test-$$
hosts=$(realpath "$(dirname "$0")/../../scripts/hosts")
. "$(dirname "$0")/../launcher/checks.sh"
. "$(dirname "$0")/possible.sh"
unset FARSIDE_THREADS FARSIDE_STATS FARSIDE_BOARD
limit=120
tag=tag-$$-of-this-test
slow_rig=slow-$$
# shellcheck disable=SC2154  # work is of checks.sh
trap '"$hosts" down >/dev/null; "$hosts" --rig "$slow_rig" down >/dev/null; rm -rf "$work"' EXIT

flavours=()
for flavour in openmpi mpich shmem; do
  [ -x "$programs/where_$flavour" ] && flavours+=("$flavour")
done

# --- what needs neither root nor hosts -----------------------------------------------------------
run "$hosts"
check "no command: usage" 2 '^usage: scripts/hosts'
run "$hosts" --help
check "--help" 0 'up N' 'run OPTIONS' 'down'
run "$hosts" upp 4
check "an unknown command" 2 "there is no command 'upp'" '^usage:'
run "$hosts" up none
check "up without a number" 2 'say how many hosts to make'
run "$hosts" up 2 --rate fast
check "up with no rate" 2 'write it like 100mbit'
run "$hosts" up 2 --delay soon
check "up with no time" 2 'write it like 50us'
run "$hosts" --rig ../x up 2
check "a name that is none" 2 'a name has letters'
run "$hosts" run -n 2 "$programs/hello_smp"
check "run before up" 1 'up 4|only root'
run "$FARSIDE" run --hosts a,b -n 2 "$programs/hello_smp"
check "--hosts with smp" 2 'share the memory of one host; build it for mpi'
run "$FARSIDE" run -N 2 -n 2 "$programs/hello_smp"
check "-N without --hosts" 2 'name them by --hosts'
run "$FARSIDE" run --hosts a:2,b:2 -n 5 "$programs/hello_smp"
check "more ranks than room" 2 'room for 4 ranks on a:2,b:2 only'
run "$FARSIDE" run --hosts a:0,b -n 5 "$programs/hello_smp"
check "no rank on a host" 2 'has no number of ranks behind the colon'
run "$FARSIDE" run --hosts a,b:2 -n 3 "$programs/hello_smp"
check "numbers for some hosts only" 2 'give all of them one, or add -N'
run "$FARSIDE" run --hosts a,a -n 2 "$programs/hello_smp"
check "a host named twice" 2 "'a' is there twice"
run "$FARSIDE" run --hosts 'a;b' -n 2 "$programs/hello_smp"
check "a name that is no host" 2 "'a;b' is no host"
run "$FARSIDE" run --hosts a,b -n 2 --agent /does/not/exist "$programs/hello_smp"
check "an agent that is not there" 127 'there is no such program'

# --- can hosts be made here? ------------------------------------------------------------------------
skip() {
  [ "$failures" = 0 ] || finish
  echo "hosts: skipped, $1"
  exit 77
}
missing=$(why_no_hosts)
[ -z "$missing" ] || skip "$missing"
[ "${#flavours[@]}" -gt 0 ] || skip "there is no program for MPI or OpenSHMEM"

# What the machine has, and what of it is ours. All namespaces hang on processes.
footprint() {
  ip -o link | sed 's/^[0-9]*: //; s/:.*//' | sort
  cut -d' ' -f2 /proc/self/mounts | sort
  ls -A /run/netns 2>/dev/null
  find /run/farside-hosts "${TMPDIR:-/tmp}/farside-hosts" -maxdepth 1 \
    '(' -name "$FARSIDE_RIG" -o -name "$slow_rig" ')' 2>/dev/null
}
footprint >"$work/before"
ours() { pgrep -f -- "$FARSIDE_RIG|$slow_rig|$tag"; }

# nothing_left NAME: no process of ours, no link, mount or folder that was not there before.
nothing_left() {
  local left="" i
  for i in $(seq 30); do
    left=$(ours)
    [ -z "$left" ] && break
    sleep 0.1
  done
  footprint >"$work/after"
  if [ -n "$left" ]; then
    fail "$1: processes are left: $left"
    echo "$left" | xargs -r kill -9 # by their ids; all carry our names
  elif ! diff "$work/before" "$work/after" >"$work/out"; then
    fail "$1: something is left"
  else
    pass "$1"
  fi
}

# hosts_are_clean NAME: no process but the hosts' own, nothing in /dev/shm or in TMPDIR.
hosts_are_clean() {
  local host left="" i
  for i in $(seq 30); do
    left=$(pgrep -f -- "$tag")
    [ -z "$left" ] && break
    sleep 0.1
  done
  for host in head h0 h1 h2 h3; do
    # shellcheck disable=SC2016  # there
    for i in $(seq 20); do
      state=$("$hosts" exec "$host" sh -c 'find /dev/shm $TMPDIR -mindepth 1 ! -type d
        [ $(hostname) = head ] || pgrep -a . | grep -vE "scripts/hosts __|sleep infinity|sh -c|pgrep|grep"')
      [ -z "$state" ] && break
      sleep 0.1
    done
    [ -z "$state" ] || left+=" $host: $(echo "$state" | head -3 | tr '\n' ' ')"
  done
  if [ -z "$left" ]; then pass "$1"; else fail "$1: left are $left"; fi
}

if [ "$(setpriv --reuid 65534 --clear-groups cat "$hosts" 2>/dev/null | head -1)" ]; then
  run setpriv --reuid 65534 --clear-groups "$hosts" up 2
  check "someone else than root" 1 'only root can make'
fi

# --- up, status, up again ---------------------------------------------------------------------------
run "$hosts" up 4
check "up 4" 0 '4 hosts are up: h0 to h3'
run "$hosts" up 4
check "up twice" 1 "'$FARSIDE_RIG' is there already" 'scripts/hosts down'
run "$hosts" status
check "status" 0 "$FARSIDE_RIG: 4 hosts, rate unlimited, delay none"
run "$hosts" --rig "$slow_rig" up 1
check "another rig beside it" 0 '1 hosts? (is|are) up'
run "$hosts" --rig "$slow_rig" down
check "and down" 0 'gone'
run "$hosts" exec h2 sh -c 'hostname; exit 5'
check "exec" 5 '^h2$'
run "$hosts" exec h9 true
check "exec on a host that is not there" 1 "there is no host 'h9'"
run "$hosts" exec h0 sh -c "cat </dev/null >/dev/tcp/10.113.0.2/9; ip route get 192.0.2.1"
check "no way out" 2 'unreachable'

# --- ranks are on different hosts, and share no memory ---------------------------------------------
# on_hosts NAME PATTERN...: each pattern matches one line.
on_hosts() {
  local name=$1 pattern
  shift
  for pattern in "$@"; do
    [ "$(grep -cE -- "$pattern" "$work/out")" = 1 ] || { fail "$name: '$pattern'"; return; }
  done
  pass "$name"
}
for flavour in "${flavours[@]}"; do
  where=$programs/where_$flavour
  run "$hosts" run -n 4 "$where"
  check "$flavour: 4 ranks on 4 hosts" 0
  on_hosts "$flavour: one on each" 'rank 0 is on h0, .*apart' 'rank 1 is on h1, .*apart' \
    'rank 2 is on h2, .*apart' 'rank 3 is on h3, .*apart'
  run "$hosts" run -n 4 -N 2 "$where" files "$tag"
  check "$flavour: 2 ranks on each of 2 hosts" 0
  on_hosts "$flavour: /dev/shm is each host's own" 'rank 0 sees 2 of 4' 'rank 3 sees 2 of 4'
  run "$hosts" run -N 2 -n 2 "$where"
  check "$flavour: both ranks on one host" 0 'rank 0 is on h0, .*shared' 'rank 1 is on h0, .*shared'
  backend=$flavour
  # shellcheck disable=SC2016  # there
  run env GIVEN=1 "$hosts" run -n 5 -e GIVEN -e SAID='two words' --prefix --backend "$backend" -- \
    sh -c 'echo "$(hostname) $GIVEN $SAID $FARSIDE_SEGMENT"'
  check "$flavour: environment, prefix" 0
  on_hosts "$flavour: the shares are equal" '^\[0\] h0 1 two words 32M$' '^\[1\] h0 ' '^\[2\] h1 ' \
    '^\[3\] h2 ' '^\[4\] h3 1 two words 32M$'
  run "$hosts" run -n 2 --verbose --mpirun-arg --does-not-exist "$where"
  check "$flavour: options for mpirun" "$status" '-hosts? h0:1,h1:1' '--does-not-exist'
done

# --- the conformance suite, in part ------------------------------------------------------------------
for flavour in "${flavours[@]}"; do
  for ranks in 2 4; do
    run "$hosts" run -n $ranks --timeout 100 "$programs/conformance_$flavour" rma. \
      atomics.every_operation_uint64 litmus.a_put_after_a_get_is_later
    check "$flavour: conformance on $ranks hosts" 0 'passed, 0 failed'
  done
done

# --- and by every strategy of the mpi back end ---------------------------------------------------------
for flavour in "${flavours[@]}"; do
  [ "$flavour" != shmem ] || continue
  for strategy in two_sided progress_thread progress_rank spawned; do
    run "$hosts" run -n 4 -e FARSIDE_MPI=$strategy -e OMPI_MCA_mpi_yield_when_idle=0 --timeout 100 "$programs/conformance_$flavour" rma. \
      atomics.every_operation_uint64 litmus.a_put_after_a_get_is_later
    if [ "$flavour-$strategy" = mpich-spawned ]; then
      check "$flavour: $strategy says that it cannot be" "$status" 'MPICH 4.0 cannot spawn. Use FARSIDE_MPI=progress_rank'
      [ "$status" != 0 ] || fail "$flavour: $strategy cannot be, and ends with 0"
    else
      check "$flavour: $strategy on 4 hosts" 0 'passed, 0 failed'
    fi
  done
  hosts_are_clean "$flavour: the servers left nothing"
done

# --- a rank on another host dies ------------------------------------------------------------------
# dies FLAVOUR HOW STATUS PATTERN
dies() {
  local name="$1: $2 of rank 2 on h2" died ended
  run "$hosts" run -n 4 --backend "$1" "$programs/death_any" "$2" 2 barrier "$tag"
  ended=$(date +%s%3N)
  check "$name" "$3" "$4"
  died=$(sed -n 's/.*dies at \([0-9]*\) ms.*/\1/p' "$work/out" "$work/err" | head -1)
  if [ -n "$died" ] && [ $((ended - died)) -lt 5000 ]; then
    pass "$name: in $((ended - died)) ms"
  else
    fail "$name: ended $((ended - ${died:-0})) ms later"
  fi
}
rank2='rank 2 \(pid [0-9]+ on h2\)'
for flavour in "${flavours[@]}"; do
  dies "$flavour" kill 137 "$rank2 was killed by signal 9 \(SIGKILL\), by .*; ending the other 3 ranks"
  dies "$flavour" exit3 3 "$rank2 exited with status 3"
  dies "$flavour" _exit0 1 "$rank2 exited with status 0 before its far::runtime ended"
  dies "$flavour" run 1 "$rank2 failed: the reason of this death"
  hosts_are_clean "$flavour: nothing is left on the hosts"

  run "$hosts" run -n 4 --timeout 8 --backend "$flavour" "$programs/death_any" none 1 barrier "$tag"
  check "$flavour: a hanging job" 124 '^ *1 +[0-9]+ +running +nothing: it computes' \
    '^ *3 +[0-9]+ +running +(a )?barrier' 'stack of ranks? [0-9 and]*3' 'ending the 4 ranks'
done

# starts FLAVOUR: a job in the background that hangs; its process is in $job.
starts() {
  timeout -k 5 "$limit" "$hosts" run -n 4 --backend "$1" "$programs/death_any" none 1 barrier "$tag" \
    >"$work/out" 2>"$work/err" </dev/null &
  timer=$!
  local i
  for i in $(seq 200); do # shellcheck disable=SC2034
    grep -q "all are there" "$work/err" "$work/out" && break
    sleep 0.1
  done
  job=$(pgrep -P "$timer" | head -1)
}
ends() { # NAME STATUS PATTERN
  local begin=$EPOCHREALTIME
  wait "$timer"
  status=$?
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
  check "$@"
}
for flavour in "${flavours[@]}"; do
  starts "$flavour"
  kill -TERM "$job"
  ends "$flavour: SIGTERM" 143 'received signal 15'
  faster_than "$flavour: SIGTERM, in time" 5
  starts "$flavour"
  pkill -KILL -P "$(pgrep -P "$job" | head -1)" # the launcher is the child of what entered the rig
  ends "$flavour: SIGKILL of the launcher" 137
  hosts_are_clean "$flavour: the ranks ended with the launcher"
  starts "$flavour"
  kill -KILL "$job"
  wait "$timer" 2>/dev/null
  hosts_are_clean "$flavour: the job ended with scripts/hosts run"
  starts "$flavour"
  "$hosts" exec h3 ip link set eth0 down
  ends "$flavour: a host that is unplugged" "1" 'rank 3 \(pid [0-9]+ on h3\) is lost'
  faster_than "$flavour: unplugged, in time" 10
  "$hosts" exec h3 ip link set eth0 up
  for _ in $(seq 150); do # its ranks notice the launcher's end once they ask
    [ -z "$(pgrep -f -- "$tag")" ] && break
    sleep 0.1
  done
  hosts_are_clean "$flavour: nothing is left on the unplugged host"
done

# --- down, whatever runs or has run -------------------------------------------------------------------
starts "${flavours[0]}"
run "$hosts" down
check "down while a job runs" 0 'gone'
wait "$timer"
nothing_left "down leaves nothing"
run "$hosts" down
check "down twice" 0 'is not there'
for moment in 0.02 0.05 0.1 0.15; do
  "$hosts" up 4 >/dev/null 2>&1 &
  sleep "$moment"
  kill -KILL $! 2>/dev/null
  wait $! 2>/dev/null
  run "$hosts" down
  [ "$status" = 0 ] || fail "down after up was killed: status $status"
done
sleep 0.5
"$hosts" down >/dev/null # of a keeper that was only just about to begin
nothing_left "down after up was killed in the middle"

# --- a slow network ---------------------------------------------------------------------------------
if [ -e /dev/net/tun ]; then
  run "$hosts" --rig "$slow_rig" up 2 --delay 3ms --rate 100mbit
  check "up with a delay" 0
  run "$hosts" --rig "$slow_rig" run -n 2 "$programs/where_${flavours[0]}" ping
  check "ping" 0 'get [0-9.]+ us'
  took=$(sed -n 's/.*get \([0-9]*\).*/\1/p' "$work/out")
  if [ "${took:-0}" -ge 6000 ]; then pass "a round trip of $took us"; else fail "a round trip of $took us"; fi
  run "$hosts" --rig "$slow_rig" down
  nothing_left "the slow network is gone"
fi
finish
