#!/usr/bin/env bash
# server_test.sh FARSIDE PROGRAM FLAVOUR
#
# Who serves the others dies (FARSIDE_MPI=progress_rank, spawned), whatever the ranks do meanwhile:
# the job must end soon, with a status that is not 0 and a message that says who it was, and leave
# nothing behind. PROGRAM is death.cpp; FLAVOUR ends with the strategy: openmpi-progress_rank.
set -u
# shellcheck source=tests/death/support.sh
. "${BASH_SOURCE[0]%/*}/support.sh"
export FARSIDE_MPI=${flavour#*-} FARSIDE_MPI_SHARED=0

# The process that serves: a spawned one by its last argument, a progress rank as the launcher says.
server() {
  if [[ $FARSIDE_MPI == spawned ]]; then
    pgrep -f -- "$tag farside-server\$" | head -1
    return
  fi
  # A wait is written down once it has lasted a while: on a loaded machine, seconds.
  local found="" _
  for _ in 1 2 3 4 5 6; do
    kill -QUIT "$launcher"
    sleep 0.5
    found=$(sed -nE 's/^ *[0-9]+ +([0-9]+) +running +requests of others.*/\1/p' "$output" | head -1)
    [[ -z $found ]] || break
    sleep 0.5
  done
  echo "$found"
}

case $FARSIDE_MPI in
  # mpirun has started the servers, and no supervisor of ours watches: a rank notices, or mpirun.
  spawned) said='progress rank 3 has died|mpirun[^ ]* ended with status 137' ;;
  *) said='progress rank 3 \(pid [0-9]+\) was killed by signal 9 \(SIGKILL\)' ;;
esac

for wait in barrier get compute; do
  starts none 1 "$wait" || continue
  what="SIGKILL of a server while ranks wait: $wait"
  pid=$(server)
  if [[ -z $pid ]]; then
    fail "there is no server"
    kill -TERM "$launcher"
  else
    kill -9 "$pid"
  fi
  begin=$(now_ms)
  wait "$launcher"
  status=$?
  ((status != 0)) || fail "ends with status 0"
  (($(now_ms) - begin < limit_ms)) || fail "took $(($(now_ms) - begin)) ms to end"
  grep -qE -- "$said" "$output" || fail "does not say '$said'"
  nobody_left 1000
  no_files_left
done
conclude
