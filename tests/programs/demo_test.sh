#!/bin/bash
# Tests `farside demo`: it assembles what it should on any number of ranks, and shows what it promises.
#   demo_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which it lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

run "$farside" demo
check "demo" 0 "^A genome of 500000 bases with 60 repeats; 133333 reads .* 4 ranks\.$" "times$" \
  "^[0-9]+ contigs: " "^Every contig is, base for base," "^Together they cover 99\.[0-9]+ % of it\.$" \
  "where communication went \(4 ranks, back end smp\)" "^  get +[0-9]"
grep -E '^ +[0-9]* \|' "$work/out" >plot4
grep -E '^[0-9]+ contigs|different k-mers' "$work/out" >numbers4
if [ "$(wc -l <numbers4)" = 2 ] && [ -s plot4 ]; then pass "a plot and numbers"; else fail "no plot, or no numbers"; fi
for n in 1 3; do
  run "$farside" demo -n $n; check "demo on $n ranks" 0 " $n ranks\.$" "^Every contig is,"
  grep -E '^[0-9]+ contigs|different k-mers' "$work/out" >numbers
  same "the same contigs from $n and 4 ranks" numbers numbers4
done
for backend in $(other_backends demo); do
  run "$farside" demo -n 2 --backend $backend; check "demo on $backend" 0 "^Every contig is,"
  grep -E '^[0-9]+ contigs|different k-mers' "$work/out" >numbers
  same "the same contigs on $backend" numbers numbers4
done
run "$farside" demo --help; check "help" 0 "^usage: farside demo"
run "$farside" demo nonsense; check "an argument" 2 "it takes no arguments, but was given 'nonsense'"

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
