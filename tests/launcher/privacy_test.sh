#!/usr/bin/env bash
# privacy_test.sh FARSIDE PROGRAM FLAVOUR...
#
# While a job runs on one host nothing of it listens beyond the loopback interface, and no other user can open
# the memory that its ranks share. PROGRAM is death.cpp, built for any back end; a FLAVOUR is a back end, or one
# with a strategy: openmpi-spawned.
set -u
farside=$1
program=$2
shift 2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/privacy.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export FARSIDE_SEGMENT=16M
unset FARSIDE_THREADS FARSIDE_STATS FARSIDE_MPI FARSIDE_MPI_SHARED UCX_TLS UCX_NET_DEVICES
failed=0

fail() {
  echo "FAILED $1"
  failed=$((failed + 1))
}

# tree PID: it and all that descend from it.
tree() {
  local child
  echo "$1"
  for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do tree "$child"; done
}

# listening PID...: the addresses at which these processes listen, or wait for datagrams, as /proc/net writes them.
listening() {
  local pid
  for pid in "$@"; do
    find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null
  done | tr -dc '0-9\n' | sort -u >"$scratch/sockets"
  # shellcheck disable=SC2046  # words
  awk -v sockets="$scratch/sockets" '
    BEGIN { while ((getline line < sockets) > 0) ours[line] = 1 }
    FNR > 1 && ($4 == "0A" || FILENAME ~ /udp/) && ($10 in ours) { print $2 }' \
    $(ls /proc/net/{tcp,udp}{,6} 2>/dev/null)
}

# Bytes of an address stand in the order of this machine, four by four: both have little-endian processors.
is_loopback() {
  [[ $1 =~ ^[0-9A-F]{6}7F: || $1 =~ ^0{24}01000000: || $1 =~ ^0{16}FFFF0000[0-9A-F]{6}7F: ]]
}

# shared_by PID...: "mode what" of shared memory that these processes have mapped and that still has a name.
shared_by() {
  local pid
  for pid in "$@"; do cat "/proc/$pid/maps" 2>/dev/null; done | awk '
    FILENAME ~ /sysvipc/ { mode[$2] = $3; next }
    $6 ~ /^\/SYSV/ && !($5 in seen) { seen[$5] = 1; print mode[$5], "System", "V", $5 }
    $6 ~ /^\/dev\/shm\// && $7 == "" && !($6 in seen) { seen[$6] = 1; print "file", $6 }' /proc/sysvipc/shm -
}

# others_may_open FILE: whether another user can, by its mode and those of the folders above it.
others_may_open() {
  local path=$1
  (((8#$(stat -c %a "$path" 2>/dev/null || echo 0) & 8#066) != 0)) || return 1
  while path=${path%/*} && [[ $path != /dev/shm ]]; do
    (((8#$(stat -c %a "$path" 2>/dev/null || echo 0) & 8#011) != 0)) || return 1
  done
}

# starts NAME COMMAND...: in the background; returns when all ranks run. Its first process is $launcher.
starts() {
  local name=$1
  shift
  : >"$scratch/out"
  timeout -k 2 100 "$@" >"$scratch/out" 2>&1 </dev/null &
  timer=$!
  for _ in $(seq 600); do
    grep -q "all are there" "$scratch/out" && break
    kill -0 "$timer" 2>/dev/null || break
    sleep 0.1
  done
  launcher=$(cat "/proc/$timer/task/$timer/children" 2>/dev/null)
  launcher=${launcher% }
  grep -q "all are there" "$scratch/out" && [[ $launcher ]] && return
  fail "$name: did not start: $(cat "$scratch/out")"
  kill "$timer" 2>/dev/null
  return 1
}

ends() {
  kill -TERM "$launcher"
  wait "$timer"
}

# check_memory NAME PID...
check_memory() {
  local name=$1 mode what n=0
  shift
  while read -r mode what; do
    n=$((n + 1))
    if [[ $mode == file ]]; then
      others_may_open "$what" && fail "$name: others may open $what"
    elif (((8#$mode & 8#077) != 0)); then
      fail "$name: $what has the mode $mode"
    fi
  done < <(shared_by "$@")
  echo "$name: $n pieces of shared memory"
}

for flavour in "$@"; do
  backend=${flavour%%-*}
  [[ $flavour == *-* ]] && export FARSIDE_MPI=${flavour#*-} FARSIDE_MPI_SHARED=0
  if starts "$flavour" "$farside" run --backend "$backend" -n 3 "$program" none 1 barrier; then
    mapfile -t pids < <(tree "$launcher")
    ((${#pids[@]} >= 4)) || fail "$flavour: of the job there are only the processes ${pids[*]}"
    n=0
    for address in $(listening "${pids[@]}"); do
      n=$((n + 1))
      is_loopback "$address" || fail "$flavour: something listens at $address"
    done
    # The process manager always does: if it is not seen, nothing would be.
    [[ $backend == smp ]] || ((n > 0)) || fail "$flavour: nothing listens at all; the test does not see it"
    echo "$flavour: ${#pids[@]} processes, $n sockets listen"
    check_memory "$flavour" "${pids[@]}"
    ends
  fi
  unset FARSIDE_MPI FARSIDE_MPI_SHARED
done

# Without the launcher the library sees to the heap itself.
if [[ " $* " == *" shmem "* ]]; then
  carrier=$(dirname "$farside")/farside_shmem.so
  root=()
  ((EUID != 0)) || root=(--allow-run-as-root)
  if starts "plain oshrun" env FARSIDE_CARRIER="$carrier" setarch -R oshrun "${root[@]}" --oversubscribe -n 2 \
    --mca memory ^patcher -x FARSIDE_CARRIER -x FARSIDE_SEGMENT "$program" none 1 barrier; then
    mapfile -t pids < <(tree "$launcher" | while read -r pid; do
      [[ $(readlink "/proc/$pid/exe") != "$(realpath "$program")" ]] || echo "$pid"
    done)
    heap=$(shared_by "${pids[@]}" | awk '$2 == "System" { n++ } END { print n + 0 }')
    ((heap > 0)) || fail "plain oshrun: the ranks share no memory; the test does not see it"
    check_memory "plain oshrun" "${pids[@]}"
    ends
  fi
fi

((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "all passed"
