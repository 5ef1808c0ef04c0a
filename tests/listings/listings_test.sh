#!/usr/bin/env bash
# listings_test.sh FARSIDE PROGRAM FOLDER
#
# Runs each listing of a document (FOLDER/name.cpp, part of PROGRAM) on three ranks, as processes, as threads of
# one process, and simulated under several seeds. One with a text beside it (FOLDER/name.txt) runs as processes on four
# ranks, and must print that text. A listing wrong_* must fail when it is simulated and must print
# the text of FOLDER/wrong_*.txt, in which "..." stands for anything; other runs of it prove nothing.
set -u
farside=$1 program=$2 listings=$3
. "$(dirname "$0")/../launcher/checks.sh"
limit=60
unset FARSIDE_THREADS FARSIDE_STATS FARSIDE_ENGINE

# A type of the same name in two listings would be two types of one name in one program.
twice=$(grep -hoE '^(struct|class|enum class) [a-z_]+([^a-z_:]|$)' "$listings"/*.cpp | sort | uniq -d)
[[ -z $twice ]] || { echo "FAILED: in two listings: $twice"; exit 1; }

# said NAME FILE: the last run has printed the text of FILE, however its lines are broken.
said() {
  local pattern all
  all=$(cat "$work/out" "$work/err")
  pattern=$(sed 's/[][\.*^$(){}?+|/]/\\&/g; s/\\\.\\\.\\\./.*/g' "$2" | tr '\n' ' ' | sed 's/ *$//; s/  */[[:space:]]+/g')
  if tr -s '[:space:]' ' ' <<<"$all" | grep -qE -- "$pattern"; then pass "$1"; else fail "$1: not printed: $(cat "$2")"; fi
}

for source in "$listings"/*.cpp; do
  name=$(basename "$source" .cpp)
  if [[ $name == wrong_* ]]; then
    run "$farside" sim -n 3 --seeds 1..40 --steps 300000 "$program" "$name"
    check "$name must fail" 1
    said "$name prints what its document says" "${source%.cpp}.txt"
    continue
  fi
  ranks=3
  [[ -e ${source%.cpp}.txt ]] && ranks=4
  run "$farside" run -n $ranks --timeout 50 "$program" "$name"; check "$name, processes" 0
  ((ranks == 3)) || said "$name prints what its document says" "${source%.cpp}.txt"
  if grep -q 'far::runtime world(' "$source"; then
    run "$farside" run -n 3 --timeout 50 --threads "$program" "$name"
    check "$name, threads" 134 'it makes its far::runtime in main'
    run "$farside" sim -n 3 --seeds 1..1 "$program" "$name"
    check "$name, simulated" 1 'makes its far::runtime in main'
    continue
  fi
  run "$farside" run -n 3 --timeout 50 --threads "$program" "$name"; check "$name, threads" 0
  run "$farside" sim -n 3 --seeds 1..8 "$program" "$name"; check "$name, simulated" 0
done
finish
