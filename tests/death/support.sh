# shellcheck shell=bash disable=SC2034  # variables of those who source it
# What the tests of dying jobs share. Sourced with FARSIDE PROGRAM FLAVOUR as arguments; PROGRAM is
# death.cpp, built for FLAVOUR (smp, openmpi, mpich, shmem, or with a strategy: openmpi-spawned) or for any.
set -u
farside=$1
program=$2
flavour=$3
backend=${flavour%%-*}
limit_ms=5000
unset FARSIDE_THREADS FARSIDE_STATS
export FARSIDE_SEGMENT=${FARSIDE_SEGMENT:-16M}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/death.XXXXXX")
export TMPDIR=$scratch/tmp # where the launcher and MPI keep the files of a job
mkdir "$TMPDIR"
output=$scratch/output
# Whatever ends the test also ends the jobs it has started, by their tags.
clean_up() {
  pgrep -f -- "tag-$$-[0-9]*-of-this-case" | xargs -r kill -9 2>/dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP
start_ms=1000 # how long a job has taken to start so far: times that the tests allow are made of it
failed=0
number=0

fail() {
  printf 'FAILED %s (%s)\n  %s\n--- it said:\n%s\n---\n' "$what" "$flavour" "$1" "$(head -c 4000 "$output")"
  failed=$((failed + 1))
}

now_ms() { date +%s%3N; }

# Processes of the current job, by its tag. The tag is the last argument of each of them.
living() { pgrep -f -- "$tag" 2>/dev/null; }

# nobody_left MS: all processes of the job are gone within that time.
nobody_left() {
  local until=$(($(now_ms) + $1))
  while [[ -n $(living) ]]; do
    if (($(now_ms) > until)); then
      fail "processes are left: $(living | tr '\n' ' ')$(ps -o pid=,stat=,args= -p "$(living | paste -sd,)" | head -5)"
      living | xargs -r kill -9 # by their ids; all have our tag
      return
    fi
    sleep 0.05
  done
}

# What this flavour's transport keeps in /dev/shm while a job runs; other jobs may run too.
case $flavour in
  mpich*) shm_names='mpich|ucx' ;;
  openmpi* | shmem*) shm_names='vader|osc|sm_segment|ucx|sshmem' ;;
  *) shm_names='.' ;;
esac
shm_files() { find /dev/shm -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -E "$shm_names" | sort; }

# no_files_left: nothing in the folder for temporary files, nothing new in /dev/shm that stays
# there without a process that has it mapped.
no_files_left() {
  local left name
  left=$(find "$TMPDIR" -mindepth 1 ! -type d | head -5)
  [[ -z $left ]] || fail "files are left: $left"
  rm -rf "${TMPDIR:?}"/*
  for name in $(comm -13 <(echo "$shm_before") <(shm_files)); do
    sleep 1
    grep -qsF "/dev/shm/$name" /proc/[0-9]*/maps && continue
    [[ ! -e /dev/shm/$name ]] || fail "/dev/shm/$name is left"
  done
}

# measure_start MS: a job took so long to start.
measure_start() { start_ms=$(($1 > start_ms ? $1 : start_ms)); }

start_case() {
  number=$((number + 1))
  tag="tag-$$-$number-of-this-case"
  shm_before=$(shm_files)
  : >"$output" # a job in the background may take a while to do so, and what the last one said is still there
}

# starts HOW RANK WAIT: a job in the background; its launcher's pid is in $launcher.
starts() {
  start_case
  what="$*"
  "$farside" run --backend "$backend" -n 3 "$program" "$@" "$tag" >"$output" 2>&1 </dev/null &
  launcher=$!
  local begin
  begin=$(now_ms)
  while ! grep -q "all are there" "$output"; do
    if (($(now_ms) - begin > 20000 + 5 * start_ms)); then
      fail "did not start"
      kill -9 "$launcher"
      wait "$launcher" 2>/dev/null
      nobody_left 5000
      return 1
    fi
    sleep 0.05
  done
  measure_start $(($(now_ms) - begin))
  sleep 0.5
}

# conclude: what is to be said at the end, and the status.
conclude() {
  if ((failed != 0)); then
    echo "$failed failures in $number cases"
    exit 1
  fi
  echo "$number cases of death checked"
}
