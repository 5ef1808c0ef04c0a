# What the tests of the programs share. To be sourced, with FARSIDE and SCRATCH as arguments.
farside=$(realpath "$1")
. "$(dirname "$0")/../launcher/checks.sh"
. "$(dirname "$0")/killing.sh"
limit=60
folder=$2/test.$$
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

# have PROGRAM: whether a peer is installed.
have() {
  command -v "$1" >/dev/null && return
  echo "skip $1 is not installed: nothing to compare with"
  return 1
}

other_backends() {
  local backend
  for backend in openmpi mpich shmem; do
    [ -e "$(dirname "$farside")/farside_$backend.so" ] && [ -x "$(dirname "$farside")/${1}_any" ] && echo $backend
  done
}
