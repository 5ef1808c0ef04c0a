#!/usr/bin/env bash
# nvcc_test.sh FOLDER [quick]
#
# Compiles what needs CUDA, by nvcc, for which no GPU is needed, and runs programs of units of nvcc and of g++ on CPUs.
# Skipped, with the reason, where there is no nvcc. quick: one small program, without optimisation, compiled and linked.
set -uo pipefail
folder=$1 type=RelWithDebInfo
[[ ${2:-} != quick ]] || type=Debug
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc) || {
  echo "skipped: there is no nvcc on this machine. Install CUDA 12.4 or later to compile the programs for GPUs."
  exit 77
}
"$nvcc" --version | tail -n 2
cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=$type \
  -DFARSIDE_NVCC="$nvcc" -DFARSIDE_GPU=ON -DFARSIDE_BACKENDS=smp -DFARSIDE_BUILD_TESTS=OFF -DFARSIDE_BUILD_BENCHMARKS=OFF >"$folder.log" 2>&1 ||
  { cat "$folder.log"; exit 1; }
grep 'farside:' "$folder.log"
if [[ $type == Debug ]]; then
  cmake --build "$folder" -j 1 --target device_quick_smp || exit 1
  ls "$folder/bin/device_quick_smp"
  exit
fi
cmake --build "$folder" -j 1 --target farside gpu || exit 1
echo "compiled: $(cd "$folder/bin" && ls | tr '\n' ' ')"

# Programs that count and multiply on CPUs, when nobody asks for a device.
programs=$(cmake --build "$folder" --target help | grep -oE '^(kmers|simulate|multiply)_smp(:|$)' | tr -d :)
[[ $(wc -w <<<"$programs") == 3 ]] || { echo "without zlib there is no farside kmers"; exit 0; }
# shellcheck disable=SC2086  # words
cmake --build "$folder" -j 1 --target $programs || exit 1
cd "$folder" || exit 1
farside=bin/farside
$farside simulate -n 2 --length 20000 --coverage 10 --seed 3 mixed &&
  $farside kmers -n 2 --histogram mixed.histogram --tsv mixed.kmers mixed.reads.fq || exit 1
# A line of the histogram for each number of times: it says of k-mers what the list of them says.
cut -f 2 mixed.kmers | sort -n | uniq -c | awk '{ print $2, $1 }' | cmp - mixed.histogram || exit 1
$farside multiply -n 2 --spgemm --verify -a a rmat:scale=6 || exit 1
if FARSIDE_DEVICE_SEGMENT=1M $farside multiply -n 2 --device --spgemm rmat:scale=6 2>refusal; then
  echo "there is a GPU here"
else
  cat refusal
  grep -qE "no device memory: .*(no GPU|no NVSHMEM|does not start)" refusal || exit 1
fi
