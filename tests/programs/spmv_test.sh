#!/bin/bash
# Tests `farside spmv`: that every element is right, for any number of ranks and grids of any shape, and what is refused.
#   spmv_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the program lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

for n in 1 2 3 4 7; do
  run "$farside" spmv -n $n -g 12x10x9 -r 7 --verify
  check "on $n ranks" 0 "^12 x 10 x 9 points, 7 products: " "^checked: .* right to [0-9.]+e-(1[5-9]|[2-9][0-9])$|right to 0.0e\+00" \
    "^verified: off by ([0-9.]+e-(1[5-9]|[2-9][0-9])|0.0e\+00) from what rank 0 computes alone$"
done
for grid in 1 2 1x1x5 3x40x1; do
  run "$farside" spmv -n 3 -g $grid -r 30 --verify; check "a grid of $grid" 0 "^checked: " "^verified: "
done
run "$farside" spmv -n 2 -g 8 -r 3 --json
check "JSON" 0 '"points": 512, "products": 3, ' '"rows": 256, "patches": 1, "bytes": 1536'
if have python3; then
  if python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"; then pass "it is JSON"; else fail "it is no JSON"; fi
fi

refuses "two sides" "option --grid: '4x5' is neither one number nor three" spmv --grid 4x5
refuses "no side" "option --grid: '' is not a whole number from 1 to 100000" spmv --grid 4x
refuses "no product" "option --repeat: '0' is not a whole number" spmv --repeat 0
refuses "a file" "it takes no files, but was given 'a.mtx'" spmv a.mtx
refuses "no such option" "there is no option --gird; did you mean --grid\?" spmv --gird 3
refuses "a segment that is too small" "no room|has no room|not enough|does not fit" spmv --segment 1M -g 100

for backend in $(other_backends spmv); do
  run "$farside" spmv --backend "$backend" -n 3 -g 10 -r 5 --verify; check "on $backend" 0 "^checked: " "^verified: "
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
