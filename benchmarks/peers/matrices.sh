#!/bin/bash
# `farside multiply` beside PETSc, CombBLAS, ScaLAPACK and OpenBLAS, in one run on this machine, in turns: sparse by
# sparse, sparse by dense and dense products on two ranks of the same Open MPI, and on one.
#
#   matrices.sh FARSIDE [SCRATCH]        e.g. benchmarks/peers/matrices.sh build/release/bin/farside
#
# Needs the Debian packages libopenmpi-dev openmpi-bin petsc-dev libcombblas-dev libscalapack-openmpi-dev
# libopenblas-openmp-dev python3, and farside built with a BLAS (the CMake option FARSIDE_WITH_BLAS) for the dense row.
# ROUNDS (5), SCALE (14) of the R-MAT graph, GRID (96) of the 3-D Laplacian, COLUMNS (128) and N (4096) of dense
# matrices can be set. In each round each program multiplies twice, and the second product counts; of the rounds the
# median. All that print how many entries the result has must agree.
#
# CombBLAS wants a square number of ranks, so two threads of one rank stand for two ranks. PETSc's sparse products
# are made with -matmatmult_via seqmpi, the fastest of its ways here.
#
# Debian's OpenBLAS may be older than the processor, and then takes its slowest kernels. Where OPENBLAS_CORETYPE is not
# set, and the processor has AVX-512, all programs here are told to take those of SkylakeX.
set -eu
farside=$(realpath "$1")
drivers=$(realpath "$(dirname "$0")")/matrices
scratch=${2:-$(mktemp -d)}
ROUNDS=${ROUNDS:-5} SCALE=${SCALE:-14} GRID=${GRID:-96} COLUMNS=${COLUMNS:-128} N=${N:-4096}
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

if [ -z "${OPENBLAS_CORETYPE:-}" ] && grep -qs avx512bw /proc/cpuinfo; then export OPENBLAS_CORETYPE=SkylakeX; fi

for program in mpicxx.openmpi mpirun.openmpi python3 pkg-config; do
  command -v "$program" >/dev/null || { echo "matrices.sh: $program is missing; see the packages named in this script" >&2; exit 1; }
done
petsc=$(echo /usr/lib/petscdir/petsc*/*-real/lib/pkgconfig | tr ' ' ':')
mkdir -p "$scratch"
cd "$scratch"

build() { # NAME OPTIONS...
  local name=$1
  shift
  [ "$name" -nt "$drivers/$name.cpp" ] || mpicxx.openmpi -O3 -w "$drivers/$name.cpp" "$@" -o "$name" ||
    { echo "matrices.sh: $name does not build; see the packages named in this script" >&2; exit 1; }
}
# shellcheck disable=SC2046
build petsc_product $(PKG_CONFIG_PATH=$petsc pkg-config --cflags --libs PETSc)
build combblas_product -fopenmp -DTHREADED -lCombBLAS
build scalapack_product -lscalapack-openmpi -lopenblas
build openblas_product -lopenblas

[ -s rmat.mtx ] || "$farside" matrix make rmat --scale "$SCALE" --edge-factor 16 --a 0.57 --b 0.19 --c 0.19 -o rmat.mtx
[ -s laplacian.mtx ] || "$farside" matrix make laplacian3d --n "$GRID" -o laplacian.mtx

# Each prints "seconds entries" of its second product.
ours() { # RANKS ARGUMENTS...
  local ranks=$1
  shift
  "$farside" multiply -n "$ranks" --backend openmpi --json --repeats 2 "$@" |
    python3 -c 'import json, sys; p = json.load(sys.stdin)["products"][0]; print(p["seconds"][-1], p["c_entries"])'
}
theirs() { # RANKS PROGRAM ARGUMENTS...
  local ranks=$1
  shift
  mpirun.openmpi --oversubscribe --bind-to none -n "$ranks" "$@" | awk 'NF == 3 && $1 + 0 > 0 { s = $1; n = $2 } END { print s, n }'
}

rows=(
  "R-MAT $SCALE squared|farside 2|ours 2 --spgemm rmat.mtx"
  "R-MAT $SCALE squared|farside 1|ours 1 --spgemm rmat.mtx"
  "R-MAT $SCALE squared|PETSc 2|theirs 2 ./petsc_product rmat.mtx 0 2 -matmatmult_via seqmpi"
  "R-MAT $SCALE squared|CombBLAS 1x2|OMP_NUM_THREADS=2 theirs 1 ./combblas_product rmat.mtx 2"
  "Laplacian $GRID^3 squared|farside 2|ours 2 --spgemm laplacian.mtx"
  "Laplacian $GRID^3 squared|farside 1|ours 1 --spgemm laplacian.mtx"
  "Laplacian $GRID^3 squared|PETSc 2|theirs 2 ./petsc_product laplacian.mtx 0 2 -matmatmult_via seqmpi"
  "Laplacian $GRID^3 squared|CombBLAS 1x2|OMP_NUM_THREADS=2 theirs 1 ./combblas_product laplacian.mtx 2"
  "R-MAT $SCALE by $COLUMNS columns|farside 2|ours 2 --spmm rmat.mtx --columns $COLUMNS"
  "R-MAT $SCALE by $COLUMNS columns|farside 1|ours 1 --spmm rmat.mtx --columns $COLUMNS"
  "R-MAT $SCALE by $COLUMNS columns|PETSc 2|theirs 2 ./petsc_product rmat.mtx $COLUMNS 2"
  "Laplacian $GRID^3 by $COLUMNS columns|farside 2|ours 2 --spmm laplacian.mtx --columns $COLUMNS"
  "Laplacian $GRID^3 by $COLUMNS columns|farside 1|ours 1 --spmm laplacian.mtx --columns $COLUMNS"
  "Laplacian $GRID^3 by $COLUMNS columns|PETSc 2|theirs 2 ./petsc_product laplacian.mtx $COLUMNS 2"
  "dense $N|farside 2|ours 2 --gemm dense:n=$N,values=uniform"
  "dense $N|farside 1|ours 1 --gemm dense:n=$N,values=uniform"
  "dense $N|OpenBLAS 1x2|OMP_NUM_THREADS=2 theirs 1 ./openblas_product $N 2"
  "dense $N|ScaLAPACK 2|theirs 2 ./scalapack_product $N 128 2"
)
: >times
for ((round = 1; round <= ROUNDS; round++)); do
  for row in "${rows[@]}"; do
    IFS='|' read -r problem who command <<<"$row"
    [ -z "${ONLY:-}" ] || [[ $problem == *$ONLY* ]] || continue
    result=$(eval "$command")
    printf '%s|%s|%s\n' "$problem" "$who" "$result" >>times
  done
  echo "round $round of $ROUNDS" >&2
done

python3 - times <<'PYTHON'
import collections, statistics, sys
times = collections.OrderedDict()
entries = {}
wrong = False
for line in open(sys.argv[1]):
    problem, who, result = line.rstrip("\n").split("|")
    words = result.split()
    if len(words) != 2:
        print(f"{problem}: {who} printed no time")
        wrong = True
        continue
    times.setdefault(problem, collections.OrderedDict()).setdefault(who, []).append(float(words[0]))
    if entries.setdefault(problem, int(words[1])) != int(words[1]):
        print(f"{problem}: {who} has {words[1]} entries, not {entries[problem]}")
        wrong = True
print(f"{'':30} {'who':14} {'median s':>9} {'least':>9} {'most':>9}  of farside's on 2 ranks")
for problem, by in times.items():
    ours = statistics.median(by.get("farside 2", [float("nan")]))
    for who, all in by.items():
        median = statistics.median(all)
        print(f"{problem:30} {who:14} {median:9.4f} {min(all):9.4f} {max(all):9.4f}  {median / ours:6.2f}")
sys.exit(1 if wrong else 0)
PYTHON
