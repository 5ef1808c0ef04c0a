# What the tests of the program `farside` share: running commands, and looking at how they end.
# To be sourced. Every command is bounded by a time-out.
work=$(mktemp -d)
# Whatever ends the test also ends what it has started.
clean_up() {
  local left
  left=$(jobs -p)
  # shellcheck disable=SC2086  # one word for each process
  [ -z "$left" ] || kill $left 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP
failures=0
limit=20

pass() { echo "ok   $1"; }
fail() {
  echo "FAIL $*"
  sed 's/^/       /' "$work/out" "$work/err"
  failures=$((failures + 1))
}

# Runs a command; leaves $status, $seconds and the files out and err. A program that says in the file $DEATH when
# it dies is timed from then on: mpirun alone may take seconds to start on a busy machine.
run() {
  local begin=$EPOCHREALTIME
  rm -f "$work/death"
  DEATH="$work/death" timeout -k 5 "$limit" "$@" >"$work/out" 2>"$work/err" </dev/null
  status=$?
  if [ -s "$work/death" ]; then begin=$(cat "$work/death"); fi
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
}

# check NAME STATUS [PATTERN...]: the last run ended so, and each pattern is in its output.
check() {
  local name=$1 wanted=$2 pattern
  shift 2
  if [ "$status" != "$wanted" ]; then
    fail "$name: status $status, not $wanted"
    return
  fi
  for pattern in "$@"; do
    if ! grep -qE -- "$pattern" "$work/out" "$work/err"; then
      fail "$name: no line matches '$pattern'"
      return
    fi
  done
  pass "$name"
}

faster_than() {
  if awk -v a="$seconds" -v b="$2" 'BEGIN { exit !(a < b) }'; then pass "$1"; else fail "$1: took $seconds s"; fi
}

# Takes the last run for the measure of how long jobs of this kind take to start, on this machine as it is now. Times
# that a test allows are made of it: $seconds_for_start, and $limit for a command that starts one job.
measure_start() {
  seconds_for_start=$(awk -v s="$seconds" 'BEGIN { printf "%d", 3 * s + 1 }')
  limit=$((20 + 5 * seconds_for_start))
}

# Sends SIGNAL to a hanging job; leaves what run() leaves. Waits before, as long as a job may take to start, until $ready
# of its ranks have said so, if that is set; else for a second.
interrupt() {
  local signal=$1 begin
  shift
  timeout -k 5 "$limit" "$@" >"$work/out" 2>"$work/err" </dev/null &
  local timer=$! launcher="" i
  for i in $(seq 50); do
    launcher=$(cat "/proc/$timer/task/$timer/children" 2>/dev/null)
    [ -n "$launcher" ] && break
    sleep 0.1
  done
  launcher=${launcher% }
  if [ -z "${ready:-}" ]; then sleep 1; else
    for i in $(seq $((10 * limit - 50))); do
      [ "$(grep -o ready "$work/out" | wc -l)" -ge "$ready" ] && break
      sleep 0.1
    done
  fi
  if [ "$signal" = QUIT ]; then
    kill -QUIT "$launcher"
    sleep 0.5
    signal=TERM
  fi
  begin=$EPOCHREALTIME
  kill -"$signal" "$launcher"
  wait "$timer"
  status=$?
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
}

finish() {
  if [ "$failures" -gt 0 ]; then
    echo "$failures failed"
    exit 1
  fi
  echo "all passed"
}
