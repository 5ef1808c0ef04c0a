#!/bin/bash
# Tests `farside wavelets`: the same tree from any number of ranks, what stages print, files, drawings, and what is
# refused.
#   wavelets_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the program lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

# --- the same tree from any number of ranks -----------------------------------------------------------------
for case in "1 gauss 15 23" "2 5*exp(-300*((x-.5)^2+(y-.5)**2)) 53 85"; do
  read -r dimensions f nodes slope <<<"$case"
  for n in 1 3; do
    run "$farside" wavelets -n $n -d "$dimensions" -f "$f" save f$dimensions.$n differentiate x
    check "$dimensions dimensions on $n ranks" 0 "^project +$nodes nodes, .* leaves down to level" "^differentiate x +$slope nodes, "
  done
  # Sums are made in one order in each node: the bytes are the same.
  same "the tree of $dimensions dimensions from 1 and 3 ranks" f$dimensions.1 f$dimensions.3
done
run "$farside" wavelets -n 2 -d 3 -e 1e-3 --placement hash norm compress norm truncate 1e-1 reconstruct inner gauss
check "three dimensions" 0 "^project +73 nodes, 64 leaves down to level 2" "^norm +0.0973214[0-9]+$" "^compress +73 nodes" \
  "^truncate 1e-1 +73 nodes, " "^inner gauss +0.0094714[0-9]+$"

# --- values, also from a file that was saved ----------------------------------------------------------------
printf '# points\n0.5,0.5\n.25 0.75\n1 0\n' >points
run "$farside" wavelets -n 3 -f "sin(pi*x)+max(y,.25)^2" -e 1e-9 --max-level 8 evaluate @points save sum compress save sum.c
check "values" 0 "^0.5 0.5 1.2499999[0-9]+$|^0.5 0.5 1.25(00[0-9]+)?$" "^0.25 0.75 1.26960678[0-9]+$"
run "$farside" wavelets -n 2 --load sum.c evaluate 0.25,0.75
check "a compressed tree from a file" 0 "^load sum.c +" "^reconstruct +" "^evaluate +0.25 0.75 1.26960678[0-9]+$"
run "$farside" wavelets -n 1 --load sum differentiate y evaluate 0.5,0.75
check "the derivative of a tree from a file" 0 "^evaluate +0.5 0.75 1.(49999|50000)[0-9]+$"
run "$farside" wavelets -n 2 -d 1 -f=-x^2 evaluate 0.5 balance norm
check "a sign first" 0 "^evaluate +0.5 -0.2(5|49999|50000)[0-9]*$" "^balance +" "^norm +0.4472135[0-9]+$"

# --- what is measured, and drawn ----------------------------------------------------------------------------
run "$farside" wavelets -n 3 --times compress
check "times" 0 "^ +seconds +cpu 0 +cpu 1 +cpu 2$" "^project +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$"
run "$farside" wavelets -n 2 --json norm evaluate 0.5,0.5
check "JSON" 0 '"name": "project", .*"nodes": 53, "leaves": 40' '"digits": "0.361800[0-9]+"' '"values": \[\[0.5, 0.5, 5\]\]'
if have python3; then
  if python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"; then pass "it is JSON"; else fail "it is no JSON"; fi
fi
for d in 1 2 3; do
  for n in 1 2; do
    run "$farside" wavelets -n $n -d $d -e 1e-3 --slice y=0.5 plot plot$d.$n.svg; check "a drawing of $d dimensions" 0 "^plot +plot$d.$n.svg$"
  done
  if [ "$(grep -c '<rect' plot$d.1.svg)" -gt 3 ] && tail -n 1 plot$d.1.svg | grep -q '^</svg>$'; then pass "drawn"; else fail "drawn: $d"; fi
done

# --- what is refused ----------------------------------------------------------------------------------------
refuses "no such stage" "there is no stage compres; did you mean compress\?" wavelets compres
refuses "no such option" "there is no option --thresold; did you mean --threshold\?" wavelets --thresold 1
refuses "k 0" "option --k: '0' is not a whole number from 1 to 30" wavelets --k 0 save out
refuses "k 100" "option -k: '100' is not a whole number from 1 to 30" wavelets -k 100 save out
refuses "four dimensions" "option --dimensions: '4' is not a whole number from 1 to 3" wavelets --dimensions 4 save out
refuses "a threshold that is no number" "option --threshold: 'nan' is not a number from 0 to 1e\+300$" wavelets --threshold nan save out
refuses "a threshold of zero" "--threshold 0 splits every box; give a --max-level" wavelets --threshold 0 save out
refuses "levels the wrong way round" "--initial-level 5 is deeper than --max-level 4" wavelets --initial-level 5 --max-level 4
refuses "no such function" "the function guass: nothing is called guass, and 'g' is at character 1" wavelets -f guass save out
refuses "nearly a function" "did you mean sqrt\?, and 's' is at character 3" wavelets -f '2*sqr(x)' save out
refuses "no such variable" "there is no z in 2 dimensions" wavelets -f 'x+z' save out
refuses "an expression that ends" "a number, x, y, z, a function or .* is expected, and the text ends" wavelets -f 'x+' save out
refuses "a parenthesis" "a '\)' is missing, and the text ends" wavelets -f '(x' save out
refuses "too many arguments" "exp takes 1 argument; .* and ',' is at character 6" wavelets -f 'exp(x,y)' save out
refuses "too deep" "nested more than 200 deep" wavelets -f "$(printf '(%.0s' {1..500})x" save out
refuses "rubbish" "an operator or the end is expected, and '\\$' is at character 2" wavelets -f 'x$' save out
refuses "no number" "the function is infinite or no number at \(0.0[0-9]+, " wavelets -f 'log(x-.5)' save out
refuses "infinite" "the function is infinite or no number at \(0.5" wavelets -k 1 -f '1/(x-.5)' --initial-level 0 -e 0 --max-level 0 save out
refuses "no such axis" "differentiate z: there is no such axis in 2 dimensions" wavelets differentiate z
refuses "no axis" "differentiate needs an axis behind it" wavelets differentiate
refuses "no point" "evaluate: '0.5' is no point of 2 coordinates from 0 to 1" wavelets evaluate 0.5
refuses "a point outside" "evaluate: '0.5,1.5' is no point" wavelets evaluate 0.5,1.5
printf '0.5 0.5\n0.5 x\n' >bad; refuses "a bad line" "bad, line 2: evaluate: '0.5 x' is no point" wavelets evaluate @bad
refuses "no file of points" "cannot open none" wavelets evaluate @none
refuses "no file" "cannot load none: .*cannot open none: No such file or directory" wavelets --load none save out
refuses "options of a tree that is loaded" "--load sum: the file says what the tree is" wavelets --load sum -k 3
head -c 5000 sum >bad; refuses "cut off" "cannot load bad: .*it has been cut off" wavelets --load bad save out
head -c 50 sum >bad; refuses "no file of a tree" "it is no file of a wavelet tree" wavelets --load bad save out
{ head -c 200 sum; printf 'x'; tail -c +202 sum; } >bad; refuses "changed" "the file is damaged: the records of its nodes have changed" wavelets --load bad save out
{ head -c -1 sum; printf 'x'; } >bad; refuses "changed coefficients" "the file is damaged: the coefficients of box \(.* have changed" wavelets --load bad save out
refuses "no such folder" "cannot save none/out: .*No such file or directory" wavelets save none/out
refuses "no folder for a drawing" "none/out.svg: .*No such file or directory" wavelets plot none/out.svg
refuses "a segment that is too small" "no room for 5832 bytes .* in the segment of rank [0-2]: " \
  wavelets --segment 1M -d 3 -e 0 --max-level 4 save out
refuses "a segment that is too small for details" "no room for 46656 bytes .* in the segment of rank [0-2]: " \
  wavelets --segment 1536K -d 3 -e 0 --max-level 3 compress save out
# What is no file must not be replaced by one: a pipe stands for devices such as /dev/full.
mkfifo pipe
refuses "a pipe" "cannot save pipe: rank 0: is no regular file; ranks write" wavelets save pipe
refuses "a pipe for a drawing" "pipe: is no regular file; ranks write" wavelets plot pipe
if [ -p pipe ]; then pass "it is still there"; else fail "the pipe is gone"; fi
refuses "a placement that is none" "option --placement: 'table' is neither subtrees nor hash" wavelets --placement table save out
mkdir -p tiny
refuses "a directory" "cannot save tiny: rank 0: is a directory" wavelets save tiny
if with_tiny_disk true 2>/dev/null; then
  with_tiny_disk timeout $limit "$farside" wavelets -n 2 -d 2 -e 1e-12 save tiny/out >"$work/out" 2>"$work/err"
  status=$?
  check "a full disk" 1 "^farside wavelets: cannot save tiny/out: .*No space left on device"
  if grep -q '^left:' "$work/err"; then fail "a full disk: $(cat "$work/err")"; fi
fi

for backend in $(other_backends wavelets); do
  run "$farside" wavelets --backend "$backend" -n 2 save f2.$backend compress norm
  check "on $backend" 0 "^norm +0.36180[0-9]+$"
  same "the same tree on $backend" f2.1 f2.$backend
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
