#!/bin/bash
# Tests `farside multiply`: products of files and generators by each algorithm against a serial one, the same result
# from any number of ranks, tables, JSON and drawings, and what is refused.
#   multiply_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the program lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

graph=rmat:scale=7,edge-factor=6,values=whole
# --- each algorithm, each kind ---------------------------------------------------------------------------
for kind in "--spgemm $graph" "--spmm $graph --columns 5" "--gemm dense:n=37,values=whole --tiles 3x2x4"; do
  for n in 1 3; do
    # shellcheck disable=SC2086  # words
    run "$farside" multiply -n $n $kind -a all --verify
    check "$kind on $n ranks" 0 "^C = A B, " "^stationary C, none$" "^stationary B, none$" "^SUMMA, none$" "^slices, stationary C, none$"
    if [ "$(grep -c '^  verified: [0-9,]* entries are those of a serial product$' "$work/out")" = 6 ]; then
      pass "$kind on $n ranks: six algorithms agree"
    else
      fail "$kind on $n ranks: $(grep -c verified "$work/out") of 6 agree"
    fi
  done
  for help in random near; do
    # shellcheck disable=SC2086
    run "$farside" multiply -n 3 $kind -a c,a --stealing $help --verify --update-memory 64K; check "$kind, stealing $help" 0 "^stationary A, $help$" "^  verified"
    if grep -q WRONG "$work/out"; then fail "$kind, stealing $help: wrong"; fi
  done
done
for over in min_plus max_times or_and plus_first; do
  run "$farside" multiply -n 2 --spgemm $graph --semiring $over --verify; check "over $over" 0 "^C = A B, sparse by sparse, over $over; " "^  verified"
  run "$farside" multiply -n 2 --spmm $graph --columns 3 --semiring $over --verify; check "over $over, dense B" 0 "^  verified"
done

# --- in device memory, by the stand-in for GPUs --------------------------------------------------------------
export FARSIDE_DEVICE=stand-in
for kind in "--spgemm $graph" "--spmm $graph --columns 5" "--gemm dense:n=37,values=whole --tiles 3x2x4"; do
  # shellcheck disable=SC2086  # words
  run "$farside" multiply -n 3 --device $kind -a all --verify
  check "$kind on devices" 0 "^C = A B, .*, in device memory \(stand-in\); 3 ranks" "^copied    A and B to device memory in " "^stationary B, none$"
  if [ "$(grep -c '^  verified: [0-9,]* entries are those of a serial product$' "$work/out")" = 4 ]; then
    pass "$kind on devices: four algorithms agree"
  else
    fail "$kind on devices: $(grep -c verified "$work/out") of 4 agree"
  fi
  # shellcheck disable=SC2086
  run "$farside" multiply -n 2 --device $kind -a c,a --stealing near --verify --update-memory 64K; check "$kind on devices, stealing" 0 "^stationary A, near$" "^  verified"
  if grep -q WRONG "$work/out"; then fail "$kind on devices, stealing: wrong"; fi
done
run "$farside" multiply -n 2 --device --spgemm $graph --json --verify -o on.mtx; check "JSON of a device" 0 '"device": "stand-in"' '"verified": true'
run "$farside" multiply -n 3 --spgemm $graph -o off.mtx; check "the same without" 0; same "the same product on devices and on CPUs" on.mtx off.mtx
FARSIDE_DEVICE_SEGMENT=1M refuses "device memory that is too small" "no room for [0-9]+ bytes .* in its device memory" multiply --device --gemm dense:n=600
refuses "SUMMA on devices" "--device knows the algorithms c, a, b and layers, and not summa" multiply --device --spgemm -a c,summa $graph
refuses "another semiring on devices" "--semiring min_plus: --device knows sums of products alone" multiply --device --spgemm --semiring min_plus $graph
refuses "a slow rank on devices" "--slow goes by the time that CPUs take" multiply --device --spgemm --slow 1:2 $graph
refuses "roofs of CPUs for devices" "--roofline draws the roofs of this machine's CPUs" multiply --device --spgemm --roofline r.svg $graph
unset FARSIDE_DEVICE
refuses "no device" "was not built with CUDA" multiply --device --spgemm $graph

# --- files: the same from any number of ranks, by any algorithm --------------------------------------------
run "$farside" matrix -n 2 make rmat --scale 6 --edge-factor 5 --values whole -o a.mtx.gz; check "a factor" 0
for n in 1 2 3; do
  run "$farside" multiply -n $n --spgemm -a a -o c.$n.mtx a.mtx.gz laplacian2d:n=8; check "a product of a file on $n ranks" 0 "^A +a.mtx.gz: 64 x 64, [0-9]+ entries$"
  same "the same product from 1 and $n ranks" c.1.mtx c.$n.mtx
done
run "$farside" multiply -n 2 --spgemm -o c.fsm a.mtx.gz laplacian2d:n=8; check "a binary product" 0
run "$farside" matrix -n 2 convert --type real c.fsm back.mtx; check "back" 0; same "the binary product" c.1.mtx back.mtx
run "$farside" multiply -n 3 --gemm -o d.mtx dense:rows=5,columns=4 dense:rows=4,columns=3; check "a dense product" 0 "^C +15 entries, 60 products$"
printf '%%%%MatrixMarket matrix array real general\n5 3\n' >expected
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do printf '%24s\n' 4 >>expected; done
same "a dense product" expected d.mtx

# --- what is measured and drawn ----------------------------------------------------------------------------
run "$farside" multiply -n 2 --spgemm $graph --json --repeats 3 --verify -a c,summa --heat-map heat.svg --roofline roof.svg
check "JSON" 0 '"kind": "spgemm"' '"algorithm": "summa"' '"verified": true' '"members": \['
if have python3; then
  python3 - "$work/out" <<'END' >"$work/said" 2>&1 && pass "it is JSON that adds up" || fail "JSON: $(cat "$work/said")"
import json, sys
all = json.load(open(sys.argv[1]))
assert all["ranks"] == 2 and len(all["products"]) == 2
for one in all["products"]:
    assert len(one["seconds"]) == 3 and one["median_seconds"] in one["seconds"]
    assert abs(one["bytes_moved"] - one["model_bytes"]) <= 0.05 * one["model_bytes"]
    assert sum(m["pieces"] for m in one["members"]) == one["tiles"][0] * one["tiles"][1] * one["tiles"][2]
END
fi
for drawing in heat roof; do
  if [ "$(grep -c '<' $drawing.svg)" -gt 20 ] && tail -n 1 $drawing.svg | grep -q '^</svg>$'; then pass "drawn: $drawing"; else fail "drawn: $drawing"; fi
done
run "$farside" multiply -n 2 --spmm $graph --columns 1,4 --slow 1:3; check "several numbers of columns" 0 "128 x 1, 128 entries$" "128 x 4, 512 entries$"
run "$farside" multiply -n 2 --spgemm random:n=9,entries=0 --verify --heat-map heat.svg --roofline roof.svg; check "nothing at all" 0 "^C +0 entries, 0 products$" "verified: 0 entries"

# --- what is refused ----------------------------------------------------------------------------------------
refuses "no kind" "no kind of product is given: --gemm, --spmm or --spgemm" multiply $graph
refuses "two kinds" "--gemm: one kind of product is made at a time; --spmm is given, too" multiply --spmm --gemm $graph
refuses "no factor" "0 factors are given; it takes one or two" multiply --gemm
refuses "no such option" "there is no option --algoritm; did you mean --algorithm\?" multiply --spgemm --algoritm c $graph
refuses "no such algorithm" "--algorithm d: it is one of automatic, c, a, b, layers, summa, slices" multiply --spgemm --algorithm d $graph
refuses "nothing to steal" "--stealing goes with the algorithms c and a" multiply --spgemm -a summa --stealing near $graph
refuses "no grid" "--grid 2: that is no grid of ranks, such as 2x3" multiply --spgemm --grid 2 $graph
refuses "a grid that is too large" "--grid 2x2: there are 3 ranks; -n gives more" multiply --spgemm --grid 2x2 $graph
refuses "no tiles" "--tiles 0x3: that is no numbers of tiles" multiply --spgemm --tiles 0x3 $graph
refuses "no generator" "rmst:scale=3: there is no such kind of matrix; did you mean rmat\?" multiply --spgemm rmst:scale=3
refuses "no such option of a generator" "rmat:sale=3: there is no option sale; did you mean scale\?" multiply --spgemm rmat:sale=3
refuses "an option of another generator" "er:n=4,scale=3: --scale says nothing about such a matrix" multiply --spgemm er:n=4,scale=3
refuses "factors that do not fit" "A of 5 x 4 and B of 5 x 4 have no product" multiply --gemm dense:rows=5,columns=4 dense:rows=5,columns=4
refuses "not square" "dense:rows=5,columns=4 is 5 x 4: with one factor C = A A, which must be square" multiply --gemm dense:rows=5,columns=4
refuses "columns of a given B" "--columns is for --spmm with one factor" multiply --spmm --columns 4 $graph $graph
refuses "no file" "cannot open none.mtx: No such file or directory" multiply --spgemm none.mtx
refuses "no format" "a.xyz: the name says no format" multiply --spgemm a.xyz
refuses "no slow rank" "--slow 3:2: ranks are 0 to 2" multiply --spgemm --slow 3:2 $graph
refuses "no factor of slowness" "--slow 1: that is no rank and factor, such as 1:4" multiply --spgemm --slow 1 $graph
refuses "no such folder" "cannot write none/out.mtx: No such file or directory" multiply --spgemm -o none/out.mtx $graph
refuses "no folder for a drawing" "none/out.svg: .*No such file or directory" multiply --spgemm --heat-map none/out.svg $graph
refuses "a segment that is too small" "no room|has no room|does not fit" multiply --segment 1M --gemm dense:n=600
run "$farside" multiply --help; check "help" 0 "^usage: farside multiply"
if awk 'length > 120' "$work/out" | grep .; then fail "help: lines of more than 120 characters"; fi

# --- other back ends ------------------------------------------------------------------------------------
for backend in $(other_backends multiply); do
  limit=120
  run "$farside" multiply --backend "$backend" -n 2 --spgemm -a a,summa --verify $graph; check "on $backend" 0 "^  verified"
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
