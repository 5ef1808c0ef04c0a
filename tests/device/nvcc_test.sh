#!/usr/bin/env bash
# nvcc_test.sh FOLDER
#
# Compiles what needs CUDA, by nvcc, for which no GPU is needed. Skipped, with the reason, where there is no nvcc.
set -uo pipefail
folder=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc) || {
  echo "skipped: there is no nvcc on this machine. Install CUDA 12.4 or later to compile the programs for GPUs."
  exit 77
}
"$nvcc" --version | tail -n 2
cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER=g++ -DFARSIDE_NVCC="$nvcc" -DFARSIDE_GPU=ON \
  -DFARSIDE_BACKENDS=smp -DFARSIDE_BUILD_TESTS=OFF -DFARSIDE_BUILD_BENCHMARKS=OFF >"$folder.log" 2>&1 ||
  { cat "$folder.log"; exit 1; }
grep 'farside:' "$folder.log"
cmake --build "$folder" -j 1 --target gpu || exit 1
echo "compiled: $(cd "$folder/bin" && ls | tr '\n' ' ')"
