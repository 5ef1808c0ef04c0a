#!/bin/bash
# Tests `farside triangles`: the number of triangles for any number of ranks and of any file, and what is refused.
#   triangles_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the program lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

# --- the same count on any number of ranks; a serial one finds as many -----------------------------------------
for n in 1 2 3 4 7; do
  run "$farside" triangles -n $n --scale 9 --edge-factor 8 --seed 3 --verify
  check "R-MAT on $n ranks" 0 "^512 vertices, 2,783 edges: 9,657 triangles$" "^entries left out: 19, from a vertex to itself$" \
    "^entries counted once: [0-9,]+ given again, [0-9,]+ in the other direction$" "^verified: a serial count finds as many$"
done

# --- files: two triangles that share an edge, a vertex of its own, loops and edges that come again ------------------
printf '# comment\n0 1\n1 2\n2 0\n2 2\n0 1\n1 0\n2 3\n3 1\n' >two.el
printf '1 2\n2 3\n3 1\n3 4\n4 2\n' >one.tsv
printf '%%%%MatrixMarket matrix coordinate real symmetric\n5 5 6\n2 1 .5\n3 1 1\n3 2 1\n4 3 2\n4 2 1\n4 4 1\n' >two.mtx
for n in 1 3 7; do
  run "$farside" triangles -n $n --verify two.el
  check "an edge list on $n ranks" 0 "^4 vertices, 5 edges: 2 triangles$" "^entries left out: 1, " "^entries counted once: 1 given again, 1 in " "^verified"
  run "$farside" triangles -n $n --verify --one-based one.tsv; check "vertices from 1 on" 0 "^4 vertices, 5 edges: 2 triangles$" "^verified"
  run "$farside" triangles -n $n --verify two.mtx; check "Matrix Market" 0 "^5 vertices, 5 edges: 2 triangles$" "^verified"
done
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 3 0\n' >none.mtx
run "$farside" triangles -n 3 --verify none.mtx; check "no edges" 0 "^3 vertices, 0 edges: 0 triangles$" "^verified"
printf '%%%%MatrixMarket matrix coordinate pattern general\n0 0 0\n' >empty.mtx
run "$farside" triangles -n 3 --verify empty.mtx; check "no vertices" 0 "^0 vertices, 0 edges: 0 triangles$"
run "$farside" triangles -n 2 --json --verify two.el
check "JSON" 0 '"vertices": 4, "edges": 5, .*"triangles": 2, "serial": 2'
if have python3; then
  if python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"; then pass "it is JSON"; else fail "it is no JSON"; fi
fi

# --- what is refused ----------------------------------------------------------------------------------------
head -n 5 two.mtx >cut.mtx; refuses "cut off" "cut.mtx: line 5 is the last one" triangles cut.mtx
printf '0 1\n1 x\n' >bad.el; refuses "no number" "bad.el: line 2 has 'x'" triangles bad.el
printf '%%%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1\n' >wide.mtx
refuses "not square" "wide.mtx is a matrix of 2 x 3: only a square one is a graph" triangles wide.mtx
refuses "no file" "cannot open nothing.mtx: No such file" triangles nothing.mtx
refuses "no format" "graph: the name says no format" triangles graph
refuses "two files" "two files, a.el and b.el" triangles a.el b.el
refuses "a file and R-MAT" "two.el is a graph already" triangles --scale 4 two.el
refuses "no such option" "there is no option --verfy; did you mean --verify\?" triangles --verfy
refuses "a scale that is too large" "option --scale: '99' is not a whole number from 0 to 30" triangles --scale 99
refuses "a segment that is too small" "no room|has no room|not enough|does not fit" triangles --segment 300K --scale 14

for backend in $(other_backends triangles); do
  run "$farside" triangles --backend "$backend" -n 3 --scale 8 --edge-factor 8 --verify
  check "on $backend" 0 "^256 vertices, " "^verified: a serial count"
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
