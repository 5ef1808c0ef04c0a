#!/usr/bin/env bash
# any_test.sh FARSIDE PROGRAM BACKEND...
#
# One program, any.cpp, on every back end that this build has, by `farside run`, by `farside sim`, by
# mpirun and by hand; and what it says where it cannot know its transport, or cannot load it.
set -u
farside=$1 program=$2
shift 2
folder=$(dirname "$farside")
work=$(mktemp -d "${TMPDIR:-/tmp}/any.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
unset FARSIDE_CARRIER FARSIDE_THREADS FARSIDE_STATS

# expect STATUS TEXT COMMAND...: ends with that status and says TEXT.
expect() {
  local status=$1 text=$2 output result
  shift 2
  output=$(timeout 60 "$@" 2>&1)
  result=$?
  if ((result != status)) || [[ $output != *"$text"* ]]; then
    printf 'FAILED %s\n  status %d, expected %d and: %s\n--- it said:\n%s\n---\n' "$*" "$result" "$status" "$text" "$output"
    failed=1
  fi
}

expect 0 '1 ranks, carried by smp' "$program"
expect 0 '3 ranks, carried by smp' "$farside" run -n 3 "$program"
expect 0 '3 ranks, carried by smp' "$farside" run -n 3 --threads "$program"
expect 0 'back end smp' "$farside" run -n 2 --env FARSIDE_STATS=1 "$program"
expect 2 'there is no such back end' "$farside" run -n 2 --backend pigeon "$program"
for backend in "$@"; do
  case $backend in
    openmpi | mpich) name=mpi ;;
    *) name=$backend ;;
  esac
  expect 0 "3 ranks, carried by $name" "$farside" run -n 3 --backend "$backend" "$program"
  # A setting of the caller's own is for programs that are started by hand.
  expect 0 "2 ranks, carried by $name" env FARSIDE_CARRIER=/nowhere "$farside" run -n 2 --backend "$backend" "$program"

  # A farside that came without it says so.
  if [[ $backend != smp ]]; then
    cp "$farside" "$work/farside"
    expect 127 "farside_$backend.so, is neither in" "$work/farside" run -n 2 --backend "$backend" "$program"
  fi
  case $backend in
    sim) expect 0 '4 runs at 3 ranks' "$farside" sim -n 3 --seeds 1..4 "$program" ;;
    openmpi | mpich)
      mpirun=$(command -v "mpirun.$backend" || command -v mpirun)
      options=()
      [[ $backend != openmpi ]] || options=(--allow-run-as-root --oversubscribe)
      expect 0 '2 ranks, carried by mpi' env FARSIDE_CARRIER="$folder/farside_$backend.so" "$mpirun" "${options[@]}" -n 2 "$program"
      expect 1 'nothing tells it which transport carries it' "$mpirun" "${options[@]}" -n 2 "$program"
      ;;
  esac
done

expect 1 "cannot load the transport FARSIDE_CARRIER='/nowhere/farside_x.so'" env FARSIDE_CARRIER=/nowhere/farside_x.so "$program"
cp "$(ldd "$program" | sed -n 's/.*=> \(.*libgcc_s[^ ]*\) .*/\1/p')" "$work/other.so"
expect 1 'is no transport of farside' env FARSIDE_CARRIER="$work/other.so" "$program"
exit $failed
