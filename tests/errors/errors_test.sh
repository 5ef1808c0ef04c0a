#!/usr/bin/env bash
# errors_test.sh FARSIDE PROGRAM [CHECKED_PROGRAM]
#
# Misuses: each must end the job with a status that is not 0 and say what is wrong. PROGRAM and
# CHECKED_PROGRAM are errors.cpp; the latter built with FARSIDE_CHECKED=1.
set -u
farside=$1
program=$2
checked=${3:-}
unset FARSIDE_SEGMENT FARSIDE_STATS FARSIDE_THREADS
failed=0
number=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT

fail() {
  printf 'FAILED %s\n  %s\n--- it said:\n%s\n---\n' "$what" "$1" "$(head -c 4000 "$output")"
  failed=$((failed + 1))
}

# said TEXT...: each must be in the output.
said() {
  local text
  for text; do
    grep -qF -- "$text" "$output" || fail "does not say '$text'"
  done
}

# try TEXT... -- COMMAND...: runs the command; leaves its $status, and the texts in $texts.
try() {
  texts=()
  while [[ $1 != -- ]]; do
    texts+=("$1")
    shift
  done
  shift
  what="$*"
  number=$((number + 1))
  { timeout -k 2 30 "$@" >"$output" 2>&1 </dev/null; } 2>/dev/null # the shell's own 'Aborted'
  status=$?
}

# expect TEXT... -- COMMAND...: must fail, and say so.
expect() {
  local texts status
  try "$@"
  if ((status == 124 || status == 137)); then
    fail "hangs"
  elif ((status == 0)); then
    fail "ends with status 0"
  elif ((status == 64)); then
    fail "is not known to the program"
  fi
  said "${texts[@]}"
}

# accept TEXT... -- COMMAND...: must succeed.
accept() {
  local texts status
  try "$@"
  ((status == 0)) || fail "ends with status $status, not 0"
  said "${texts[@]}"
}

run() { printf '%s\0' "$farside" run -n "$1" "${@:2}"; }
mapfile -d '' -t run1 < <(run 1)
mapfile -d '' -t run2 < <(run 2)
mapfile -d '' -t run3 < <(run 3)

# --- without a runtime ---------------------------------------------------------------------------
expect "the library was used where there is no far::runtime" "far::runtime world(argc, argv)" -- "$program" before-runtime
expect "the library was used where there is no far::runtime" -- "$program" after-runtime
expect "(ulimit -f)" "FARSIDE_SEGMENT=16M" -- bash -c 'ulimit -f 100000; exec "$@"' sh "${run2[@]}" "$program" after-runtime
expect "the library was used where there is no far::runtime" -- "${run2[@]}" "$program" after-runtime-collective
expect "the library was used where there is no far::runtime" "farside run: rank " -- "${run2[@]}" "$program" before-runtime
accept -- "${run2[@]}" "$program" nothing
accept -- "${run2[@]}" --threads "$program" nothing

# --- one runtime, one thread ---------------------------------------------------------------------
expect "a second far::runtime was made while the first one lives" "rank " -- "${run2[@]}" "$program" second-runtime
expect "a second far::runtime was made while the first one lives" -- "${run2[@]}" --threads "$program" second-runtime
expect "a second thread of rank 0 used the library" "thread_level::multiple" -- "$program" second-thread
expect "makes its far::runtime in main" "far::run(argc, argv" -- "${run2[@]}" --threads "$program" in-main
expect "makes its far::runtime in main" -- env FARSIDE_THREADS=2 "$program" in-main

# --- memory --------------------------------------------------------------------------------------
expect "no room for 8796093022208 bytes (8.0 TiB) in the segment of rank" "far::alloc finds at most" "FARSIDE_SEGMENT" "--segment" -- "${run2[@]}" "$program" alloc-too-much
expect "no room for 65536 bytes (64.0 KiB) in the segment of rank" "far::alloc finds at most" "of a segment of 4.0 MiB" -- env FARSIDE_SEGMENT=4M "${run2[@]}" "$program" alloc-bit-by-bit
expect "no room for 8796093022208 bytes (8.0 TiB) in the segment of rank 0: far::alloc_on finds at most" -- "${run2[@]}" "$program" alloc-on-too-much
expect "no room for 65536 bytes (64.0 KiB) in the segment of rank 0: far::alloc_on finds at most" "of a segment of 4.0 MiB" -- "${run3[@]}" --segment 4M "$program" alloc-on-bit-by-bit
expect "alloc_on(2): there are only 2 ranks, 0 to 1" -- "${run2[@]}" "$program" alloc-on-bad-rank
expect "dealloc(" "no allocation begins there" "freed already" -- "${run1[@]}" "$program" dealloc-twice
expect "dealloc(0:0x" "no allocation begins there" "freed already" -- "${run2[@]}" "$program" dealloc-twice-remote
expect "rank 0: another rank has freed 0:0x" "It was freed twice" -- "${run2[@]}" "$program" dealloc-twice-by-another
expect "dealloc(0:0x" "no allocation begins there" -- "${run1[@]}" "$program" dealloc-inside

# --- containers ----------------------------------------------------------------------------------
expect "a container was used that holds nothing" "moved from" -- "${run2[@]}" "$program" map-moved-from
expect "hash_map 'ages' was used after its far::runtime had ended" "declare them after it" -- "${run2[@]}" "$program" map-after-runtime
expect "hash_map 'ages' has no room for another entry on rank" "All entries are still there" "of a segment of 1.0 MiB" -- "${run2[@]}" --segment 1M "$program" map-too-large
expect "hash_map 'ages': an exception while a table was moved: the hash has changed its mind" "must not throw for keys that are in a map" -- "${run3[@]}" "$program" map-hash-throws
expect "fast_queue 'inbox' is full" "Ask for a larger capacity (it is 3)" -- "${run2[@]}" "$program" queue-too-full

# --- collectives ---------------------------------------------------------------------------------
expect "broadcast: root 3 is not in a team of 3 members" -- "${run3[@]}" "$program" bad-root
expect "a collective was called on an empty far::team" -- "${run2[@]}" "$program" empty-team
expect "this far::future holds nothing" -- "${run1[@]}" "$program" empty-future

# --- settings ------------------------------------------------------------------------------------
for bad in abc 0 -1 1.2.3 12Q; do
  expect "FARSIDE_SEGMENT='$bad' is not a size" "FARSIDE_SEGMENT=4G" -- env FARSIDE_SEGMENT=$bad "$program" nothing
done
expect "is not a size" -- env FARSIDE_SEGMENT=abc FARSIDE_THREADS=2 "$program" nothing
expect "a segment of 4096 bytes is too small" "FARSIDE_SEGMENT=" -- env FARSIDE_SEGMENT=4K "$program" nothing
expect "is too small" -- "${run2[@]}" --segment 64K "$program" nothing
accept -- "${run2[@]}" --segment 1M "$program" nothing
expect "is too large" -- env FARSIDE_SEGMENT=100T "$program" nothing
for bad in two 0 -1 1.5; do
  expect "FARSIDE_THREADS='$bad' is not a whole number" -- env FARSIDE_THREADS=$bad "$program" nothing
done
expect "FARSIDE_RANK='2' is not a whole number from 0 to 1" -- env FARSIDE_NPROCS=2 FARSIDE_RANK=2 "$program" nothing
expect "cannot open the job's shared memory /no/such/file" -- env FARSIDE_SEGMENTS=/no/such/file "$program" nothing

# Statistics are no reason to fail a job that was good, but not being able to write them is said.
accept "cannot write the statistics to FARSIDE_STATS=/no/such/folder/file.json" -- env FARSIDE_STATS=/no/such/folder/file.json "${run2[@]}" "$program" nothing
accept "where communication went" "barrier" -- env FARSIDE_STATS=1 "${run2[@]}" "$program" nothing

# --- pointers that lead nowhere: the CPU notices, here by ranks that are processes and threads -------------
null="the far pointer is null"
for how in "" --threads; do
  for misuse in get-null get-many-null load-null copy-from-null async-get-null; do
    expect "a read (get or atomic) at 0:0x" "$null" "Use pointers from far::alloc" "stack:" -- "${run2[@]}" $how "$program" $misuse
  done
  for misuse in put-null put-many-null copy-to-null ref-null async-put-null strided-null; do
    expect "a write (put or atomic) at 0:0x" "$null" -- "${run2[@]}" $how "$program" $misuse
  done
  for misuse in add-null compare-null async-add-null accumulate-null; do
    expect "at 0:0x0 of 2 ranks" "$null" -- "${run2[@]}" $how "$program" $misuse
  done
  expect "a write (put or atomic) at 0:0x320 of 2 ranks" "$null, or nearly" -- "${run2[@]}" $how "$program" element-of-null
  expect "a write (put or atomic) at 1:0x" "it reaches beyond the end of that rank's segment" -- "${run2[@]}" $how --segment 5M "$program" beyond-the-end
  expect "a read (get or atomic) at 1:0x0 of 2 ranks" "the pointer was never set" -- "${run2[@]}" $how --segment 5M "$program" never-set
  expect "there is no such rank" -- "${run2[@]}" $how --segment 5M "$program" rank-too-high
done
expect "own handler" -- "${run2[@]}" "$program" own-fault-handler
expect "own handler" "$null" -- "${run2[@]}" "$program" handler-before-runtime
expect "signal 11" -- "${run2[@]}" "$program" signal-sent

# --- what checked builds notice --------------------------------------------------------------------
if [[ -n $checked ]]; then
  expect "get of 1 x 8 bytes at null" "the pointer is null" "Use pointers from far::alloc" -- "${run2[@]}" "$checked" get-null
  expect "put of 1 x 8 bytes at null" "the pointer is null" -- "${run2[@]}" "$checked" put-null
  expect "at 2:0x1000 of 2 ranks" "there is no such rank" -- "${run2[@]}" "$checked" rank-too-high
  expect "it reaches beyond the end of that rank's segment" "put of 1 x 8 bytes at 1:0x" -- "${run2[@]}" "$checked" beyond-the-end
  expect "it reaches beyond the end of that rank's segment" "get of 9 x 8 bytes" -- "${run2[@]}" "$checked" across-the-end
  expect "it reaches beyond the end of that rank's segment" -- "${run2[@]}" "$checked" huge-count
  expect "the pointer is not aligned for its type" "at 0:0x11004" -- "${run2[@]}" "$checked" misaligned
  expect "names device memory" -- "${run2[@]}" "$checked" device-memory
  expect "far::ptr arithmetic on" "left the segment of rank" -- "${run2[@]}" "$checked" arithmetic
  expect "far::ptr arithmetic on 1:0x40 left the segment of rank 1" -- "${run2[@]}" "$checked" arithmetic-below
  expect "flush(2): there are only 2 ranks" -- "${run2[@]}" "$checked" flush-bad-rank
  expect "mismatched collectives on a team of 3" "rank 0 calls broadcast at " " (1 x 4 bytes, root 0), but rank 1 calls all_reduce at " "the same collectives in the same order" -- "${run3[@]}" "$checked" different-collectives
  expect " (1 x 4 bytes, root 0), but rank 1 calls broadcast at " " (1 x 4 bytes, root 1)" -- "${run3[@]}" "$checked" different-roots
  expect " (10 x 4 bytes, root 0), but rank 1 calls broadcast at " " (11 x 4 bytes, root 0)" -- "${run3[@]}" "$checked" different-sizes
  expect " (1 x 4 bytes, root 0), but rank 1 calls broadcast at " " (1 x 8 bytes, root 0)" -- "${run3[@]}" "$checked" different-types
  expect "rank 0 calls all_gather at " " (1 x 4 bytes), but rank 1 calls barrier at " -- "${run3[@]}" "$checked" barrier-or-not
  accept "farside: rank 0: 4 blocks, 100 bytes, of far memory never freed:" "  3 blocks, 96 bytes, allocated by " "errors/errors.cpp:" \
    "  1 block, 4 bytes, allocated by far::make" "farside: rank 1: 4 blocks" "Give it back with far::dealloc" -- "${run2[@]}" "$checked" never-freed
  accept -- "${run2[@]}" "$checked" local-of-others
  expect "that is on another node" -- env FARSIDE_PRETEND_NODES=2 "${run2[@]}" "$checked" local-of-others
  accept -- env FARSIDE_PRETEND_NODES=1 "${run2[@]}" "$checked" local-of-others
  expect "FARSIDE_PRETEND_NODES" -- env FARSIDE_PRETEND_NODES=3 "${run2[@]}" "$checked" local-of-others
  expect "FARSIDE_PRETEND_NODES is set, but this program is no checked build" -- env FARSIDE_PRETEND_NODES=2 "${run2[@]}" "$program" nothing
  expect "store 'store 1': an iterator of local() was used after this rank had put or erased an entry." \
    "begin again, or collect the keys first" -- "${run2[@]}" "$checked" store-iterator-kept
  accept -- "${run3[@]}" "$checked" nothing
  accept -- "${run3[@]}" --threads "$checked" nothing
fi

if ((failed != 0)); then
  echo "$failed of $number misuses went wrong"
  exit 1
fi
echo "$number misuses checked"
