#!/bin/bash
# Tests `farside matrix`: the same bytes from any number of ranks, conversions there and back, what is shown, and
# what is refused.
#   matrix_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the program lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

# --- every kind of matrix: from any number of ranks the same file -------------------------------------
kinds=("rmat --scale 8 --edge-factor 6" "er --n 200 --degree 5 --values uniform" "random --rows 30 --columns 90 --entries 500"
       "rows --n 50 --per-row 4 --values whole --low -3 --high 3" "banded --rows 40 --columns 30 --lower 2 --upper 1"
       "dense --rows 5 --columns 7 --values uniform --seed 9" "diagonal --n 20 --value 2.5" "laplacian2d --nx 9 --ny 7"
       "laplacian3d --n 4")
for kind in "${kinds[@]}"; do
  name=${kind%% *}
  for n in 1 3; do
    # shellcheck disable=SC2086  # words
    run "$farside" matrix -n $n make $kind -o $name.$n.mtx; check "make $kind on $n ranks" 0 "^$name.$n.mtx: [0-9]+ x [0-9]+, [0-9,]+ entries$"
  done
  same "$name from 1 and 3 ranks" $name.1.mtx $name.3.mtx
done
run "$farside" matrix -n 2 make er --n 200 --degree 5 --values uniform --seed 2 -o other.mtx; check "another seed" 0
if cmp -s other.mtx er.1.mtx; then fail "another seed, the same matrix"; else pass "another seed, another matrix"; fi

# --- there and back, in every form --------------------------------------------------------------------
for name in er rmat rows laplacian2d; do
  for form in fsm mtx.gz el el.gz; do
    run "$farside" matrix -n 3 convert $name.1.mtx $name.$form; check "$name to $form" 0
    vertices=
    [[ $form == el* ]] && vertices="--vertices $(awk '!/^%/ { print $1; exit }' $name.1.mtx)"
    type=$(awk 'NR == 1 { print $4 }' $name.1.mtx)
    # shellcheck disable=SC2086
    run "$farside" matrix -n 2 convert --type "$type" $vertices $name.$form back.mtx; check "$name from $form" 0
    same "$name by way of $form" $name.1.mtx back.mtx
  done
  gunzip -c $name.mtx.gz >unpacked.mtx; same "$name: gunzip agrees" $name.1.mtx unpacked.mtx
done
run "$farside" matrix -n 3 convert --symmetry symmetric laplacian3d.1.mtx half.mtx; check "a triangle" 0
if head -n 1 half.mtx | grep -q 'real symmetric$'; then pass "says symmetric"; else fail "$(head -n 1 half.mtx)"; fi
run "$farside" matrix -n 2 convert half.mtx back.mtx; check "both triangles" 0; same "both triangles" laplacian3d.1.mtx back.mtx
refuses "not symmetric" "cannot write out.mtx as symmetric: the matrix is not so" matrix convert --symmetry symmetric er.1.mtx out.mtx
# gzip files of several members, as they come from `cat`
{ head -n 20 rmat.1.mtx | gzip -c; tail -n +21 rmat.1.mtx | gzip -c; } >members.mtx.gz
run "$farside" matrix -n 3 convert members.mtx.gz back.mtx; check "several members" 0; same "several members" rmat.1.mtx back.mtx
printf '5 6 7\n6 5 7\n6 8 1\n' >graph.txt
run "$farside" matrix -n 2 convert --one-based --undirected --duplicates first --type integer graph.txt out.mtx; check "a graph" 0
printf '%%%%MatrixMarket matrix coordinate integer general\n8 8 4\n5 6 7\n6 5 7\n6 8 1\n8 6 1\n' >expected; same "a graph" expected out.mtx; rm -f out*

# --- what is shown and checked -------------------------------------------------------------------------
run "$farside" matrix -n 3 show --grid 2x2 --plot plot.svg half.mtx
check "show" 0 "^shape +64 x 64$" "^entries +352, of which the file has 208$" "^symmetric +symmetric$" "^bandwidth +16 below the diagonal, 16 above$" \
  "^entries a row +at least 4, mean 5.5, at most 7$" "^ +4 - 7 +64 +#+$" "^ +row 0 +(160|161) +16$"
grep -c '<rect' plot.svg >"$work/out"
if [ "$(cat "$work/out")" -gt 50 ] && tail -n 1 plot.svg | grep -q '^</svg>$'; then pass "a drawing"; else fail "a drawing"; fi
run "$farside" matrix -n 1 show --grid 2x2 --plot plot1.svg half.mtx; check "show on one rank" 0
same "the same drawing" plot.svg plot1.svg
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 nan\n1 2 0\n2 1 0\n' >odd.mtx
run "$farside" matrix -n 2 check odd.mtx
check "check" 0 "^odd.mtx: good: Matrix Market, coordinate, real, general; 2 x 2, 3 entries$" "1 values are infinite or no numbers" "2 entries hold zero"
run "$farside" matrix -n 2 show odd.mtx; check "show what is odd" 0
printf '%%%%MatrixMarket matrix coordinate real general\n0 5 0\n' >empty.mtx
run "$farside" matrix -n 3 show --plot plot.svg empty.mtx; check "show nothing" 0 "^shape +0 x 5$"
printf '%%%%MatrixMarket matrix coordinate real general\n1000000000000 1000000000000 1\n1 1 1\n' >huge.mtx
run "$farside" matrix -n 2 show huge.mtx; check "show what has many rows" 0 "^shape +1,000,000,000,000 x 1,000,000,000,000$"
refuses "too many rows for the binary form" "cannot write out.fsm: the row pointers of [0-9]+ elements .* do not fit the memory" matrix convert huge.mtx out.fsm

# --- what is refused ------------------------------------------------------------------------------------
refuses "no command" "no command is given" matrix
refuses "no such command" "there is no command knit" matrix knit x
refuses "no such option" "there is no option --sale; did you mean --scale\?" matrix make rmat --sale 4 -o out.mtx
refuses "no such kind" "make rmst: there is no such kind of matrix; did you mean rmat\?" matrix make rmst -o out.mtx
refuses "an option of another kind" "make er: --scale says nothing about such a matrix" matrix make er --n 4 --scale 3 -o out.mtx
refuses "no size" "make er: it has no size; give --n" matrix make er -o out.mtx
refuses "no output" "no file is given to write to" matrix make er --n 4
refuses "no number" "--n 4k: that is no whole number" matrix make er --n 4k -o out.mtx
refuses "no probabilities" "--a 0.9.* --b 0.2.*: these are no probabilities" matrix make rmat --a 0.9 --b 0.2 -o out.mtx
refuses "one file of two" "convert: 1 files are given, and it takes 2" matrix convert er.1.mtx
refuses "no format" "out.xyz: the name says no format" matrix convert er.1.mtx out.xyz
refuses "no file" "cannot open none.mtx: No such file or directory" matrix check none.mtx
refuses "a folder" "it is no regular file" matrix check --format mtx .
refuses "no such folder" "cannot write none/out.mtx: No such file or directory" matrix convert er.1.mtx none/out.mtx
if [ "$(id -u)" != 0 ]; then
  cp er.1.mtx closed.mtx; chmod 0 closed.mtx
  refuses "no permission" "cannot open closed.mtx: Permission denied" matrix check closed.mtx
fi
sed '5s/ .*/ x/' er.1.mtx >bad.mtx; refuses "a bad line" "bad.mtx: line 5 has 'x' as column" matrix check bad.mtx
gzip -kf bad.mtx; refuses "a bad line, compressed" "bad.mtx.gz: line 5 has 'x' as column" matrix check bad.mtx.gz
sed '$d' er.1.mtx >bad.mtx; refuses "too few" "bad.mtx: line [0-9]+ is the last one: the file has [0-9]+ of the [0-9]+ entries" matrix check bad.mtx
gzip -c er.1.mtx >whole.gz
head -c -9 whole.gz >bad.mtx.gz; refuses "truncated gzip" "bad.mtx.gz: the compressed data ends too early: the file is truncated" matrix check bad.mtx.gz
{ head -c -8 whole.gz; printf '\1\2\3\4'; tail -c 4 whole.gz; } >bad.mtx.gz
refuses "a wrong checksum" "bad.mtx.gz: the compressed data is damaged: incorrect data check" matrix check bad.mtx.gz
{ head -c 12 whole.gz; printf '\377\377\377\377\377\377\377\377'; tail -c +21 whole.gz; } >bad.mtx.gz
refuses "damaged gzip" "bad.mtx.gz: the compressed data is damaged" matrix check bad.mtx.gz
{ cat whole.gz; printf 'rubbish'; } >bad.mtx.gz; refuses "more behind gzip" "bad.mtx.gz: the compressed data is damaged" matrix check bad.mtx.gz
printf '\037\213' >bad.mtx.gz; refuses "the begin of gzip" "bad.mtx.gz: " matrix check bad.mtx.gz
cp er.fsm bad.fsm; printf x | dd of=bad.fsm bs=1 seek=2000 conv=notrunc 2>/dev/null
refuses "a damaged binary file" "bad.fsm is damaged: the checksum of block [0-9]+ is wrong" matrix check bad.fsm
head -c 3000 er.fsm >bad.fsm; refuses "half a binary file" "bad.fsm was cut off: it has 3000 of [0-9]+ bytes" matrix check bad.fsm
mkdir tiny
if with_tiny_disk true 2>/dev/null; then
  "$farside" matrix -n 2 make rmat --scale 14 -o large.mtx >/dev/null
  with_tiny_disk timeout $limit "$farside" matrix -n 3 convert large.mtx tiny/out.mtx >"$work/out" 2>"$work/err"
  status=$?
  check "a full disk" 1 "^farside matrix: .*tiny/out.mtx: No space left on device"
  if grep '^left: ' "$work/err"; then fail "a full disk: something is left"; fi
else
  echo "skip a full disk: this user may not mount"
fi
leaves_nothing matrix make er --n 200000 --degree 12 -o killed.mtx.gz

run "$farside" matrix --help; check "help" 0 "^usage: farside matrix"
if awk 'length > 120' "$work/out" | grep .; then fail "help: lines of more than 120 characters"; fi

# --- other back ends ------------------------------------------------------------------------------------
for backend in $(other_backends matrix); do
  limit=120
  run "$farside" matrix --backend "$backend" -n 2 convert er.fsm back.mtx; check "convert on $backend" 0
  same "convert on $backend" er.1.mtx back.mtx
  run "$farside" matrix --backend "$backend" -n 2 check bad.fsm; check "a bad file on $backend" 1 "^farside matrix: bad.fsm was cut off"
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
