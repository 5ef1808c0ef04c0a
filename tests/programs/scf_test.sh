#!/bin/bash
# Tests `farside scf`: energies of the literature, and the same from any number of ranks, and what is refused.
#   scf_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the program lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

# --- energies that are known, to the last digit that their tables have -----------------------------------------
for case in "h2 -1.1167 -1.11671423" "he -2.8078 -2.80778364" "heh+ -2.8607 -2.86065856"; do
  read -r name known energy <<<"$case"
  run "$farside" scf -n 2 --verify "$name"
  check "$name" 0 "^energy $energy hartree$" "^literature: $known hartree$" "^verified: one rank alone finds $energy$"
done

# --- the same from any number of ranks, in blocks of any size ---------------------------------------------------
for n in 1 2 3 4 7; do
  run "$farside" scf -n $n --chain 8 --verify
  check "a chain on $n ranks" 0 "^energy -4.193121[0-9]+ hartree$" "^verified: one rank alone finds -4.193121[0-9]+$"
done
for block in 1 3 64; do
  run "$farside" scf -n 3 --chain 8 --block $block; check "blocks of $block" 0 "^energy -4.193121[0-9]+ hartree$"
done
printf '3\nH3+\nH 0 0 0\nH 0.9 0 0\nH 0.45 0.78 0\n' >h3.xyz
run "$farside" scf -n 3 --verify --basis 6-31g --charge 1 --xyz h3.xyz
check "a molecule from a file" 0 "^h3.xyz, 6-31g: 6 functions, 2 electrons" "^energy -1.2[0-9]+ hartree$" "^verified"
run "$farside" scf -n 2 --json h2
check "JSON" 0 '"molecule": "H2 at 1.4 bohr", "functions": 2, "energy": "-1.116714' '"converged": true'
if have python3; then
  if python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"; then pass "it is JSON"; else fail "it is no JSON"; fi
fi

# --- what is refused ----------------------------------------------------------------------------------------
refuses "no such molecule" "there is no molecule h3; there are h2, he and heh\+" scf h3
refuses "two molecules" "two molecules, h2 and he" scf h2 he
refuses "a name and a chain" "are three molecules; give one" scf h2 --chain 4
refuses "an odd number" "a chain of 3 H has 3 electrons; this method takes pairs" scf --chain 3
refuses "no basis" "option --basis: 'cc-pvdz' is neither sto-3g nor 6-31g" scf --basis cc-pvdz
refuses "too few iterations" "after 2 iterations the density still changes" scf --chain 6 --iterations 2
refuses "too many functions to verify" "--verify keeps all integrals of 50 functions" scf --verify --chain 50
refuses "no file" "none.xyz: cannot open it" scf --xyz none.xyz
head -n 4 h3.xyz >cut.xyz; refuses "cut off" "cut.xyz: it ends after 2 of the 3 atoms" scf --xyz cut.xyz
printf '1\n\nC 0 0 0\n' >c.xyz; refuses "carbon" "c.xyz: line 3 has the element C" scf --xyz c.xyz
printf '2\n\nH 0 0 0\nH 0 0 0\n' >same.xyz; refuses "one place" "same.xyz: line 4 has an atom where another is" scf --xyz same.xyz
printf '2\n\nH 0 0 0\nH 0 0\n' >short.xyz; refuses "a short line" "short.xyz: line 4 is not an element and three" scf --xyz short.xyz
refuses "no such option" "there is no option --bais; did you mean --basis\?" scf --bais sto-3g

for backend in $(other_backends scf); do
  run "$farside" scf --backend "$backend" -n 3 --chain 6 --verify; check "on $backend" 0 "^energy -3.1" "^verified: "
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
