#!/usr/bin/env bash
# same_types_test.sh FOLDER
#
# A program for GPUs has units of nvcc and units of g++, which share inline functions: the linker takes one of the two.
# nvcc gives g++ a source of its own making, in which lambdas may capture in another order, so that the closure which one
# unit makes is not the one which the other unit's function reads. Compiles one unit in both ways, and compares the
# sizes of all classes and what all closures hold, in order. Skipped, with the reason, where there is no nvcc.
set -uo pipefail
folder=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc) || {
  echo "skipped: there is no nvcc on this machine. Install CUDA 12.4 or later to compare its types with those of g++."
  exit 77
}
mkdir -p "$folder/nvcc" "$folder/g++"
unit=$here/gpu/every_type.cpp
use=(-std=c++20 -DFARSIDE_USE_SMP=1 -DFARSIDE_USE_CUDA=1 "-I$root/include" "-I$root/programs" "-I$root")
cuda=$(cd "$(dirname "$(readlink -f "$nvcc")")/../include" && pwd)
dump() { # FOLDER ARGUMENTS...
  local to=$1
  shift
  (cd "$to" && rm -f ./*.class ./*.cfg &&
    g++ -S -O0 -w -fkeep-inline-functions -fdump-lang-class=types.class -fdump-tree-cfg=functions.cfg "$@" -o unit.s)
}
"$nvcc" "${use[@]}" -x cu --cuda --generate-code=arch=compute_90,code=[sm_90] --expt-relaxed-constexpr \
  --extended-lambda -w "$unit" -o "$folder/nvcc/unit.ii" || exit 1
dump "$folder/nvcc" -std=c++20 -x c++ -fpreprocessed unit.ii || exit 1
dump "$folder/g++" "${use[@]}" -isystem "$cuda" "$unit" || exit 1
rm -f "$folder"/*/unit.s
python3 "$here/same_types.py" "$folder/nvcc" "$folder/g++"
