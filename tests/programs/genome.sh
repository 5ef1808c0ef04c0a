# What the tests of the genome programs share. To be sourced, with FARSIDE and SCRATCH as arguments.
farside=$(realpath "$1")
. "$(dirname "$0")/../launcher/checks.sh"
limit=60
folder=$2/genome.$$
mkdir -p "$folder"
trap 'rm -rf "$work" "$folder"' EXIT
cd "$folder" || exit 1

same() { # NAME FILE FILE
  if cmp -s "$2" "$3"; then pass "$1"; else fail "$1: $2 differs from $3"; fi
}

# refuses NAME PATTERN PROGRAM ARGUMENTS...: one line, status 1, and nothing called out*.
refuses() {
  local name=$1 pattern=$2 program=$3 n
  shift 3
  run "$farside" "$program" -n 3 "$@"
  check "$name" 1 "^farside $program: .*$pattern"
  n=$(wc -l <"$work/err")
  if [ "$n" != 1 ]; then fail "$name: $n lines on stderr"; fi
  if compgen -G 'out*' >/dev/null; then fail "$name: left behind: $(echo out*)"; rm -rf out*; fi
}

# A file system of 64 KiB in the folder `tiny`, where this user may make one.
with_tiny_disk() {
  unshare -m bash -c 'mount -t tmpfs -o size=64k none tiny && "$@"; status=$?
    ls -A tiny | sed "s/^/left: /" >&2; exit $status' tiny "$@"
}

# Whether a rank of a launcher has a file open to write: one without a name, or with another one.
writing() {
  compgen -G '.farside-*.part' >/dev/null && return
  local pid
  for pid in $(pgrep -P "$1"); do readlink "/proc/$pid/fd/"* 2>/dev/null; done | grep -q "^$PWD/.*(deleted)$"
}

# leaves_nothing PROGRAM ARGUMENTS...: of its outputs, called killed*, if ranks are killed in the middle: one, or all.
leaves_nothing() {
  local attempt launcher victims killed=0
  for attempt in 1 2 3 all; do
    "$farside" "$1" -n 3 "${@:2}" >"$work/out" 2>"$work/err" &
    launcher=$!
    until writing $launcher || ! kill -0 $launcher 2>/dev/null; do sleep 0.005; done
    victims=$(pgrep -P $launcher)
    [ $attempt != all ] && victims=$(echo "$victims" | sed -n "${attempt}p")
    [ -n "$victims" ] && kill -9 $victims 2>/dev/null
    wait $launcher
    status=$?
    if [ $status != 0 ]; then
      killed=$((killed + 1))
      if compgen -G 'killed*' >/dev/null; then fail "$1: a rank was killed: there is an output"; fi
      if compgen -G '.farside*' >/dev/null; then fail "$1: a rank was killed: left behind: $(echo .farside*)"; fi
    fi
    rm -f killed* .farside-*
  done
  if [ $killed -gt 0 ]; then pass "$1: killed $killed times, no output"; else fail "$1: no rank could be killed in time"; fi
}

# have PROGRAM: whether a peer is installed.
have() {
  command -v "$1" >/dev/null && return
  echo "skip $1 is not installed: nothing to compare with"
  return 1
}

other_backends() {
  local backend
  for backend in openmpi mpich shmem; do
    [ -x "$(dirname "$farside")/${1}_$backend" ] && echo $backend
  done
}
