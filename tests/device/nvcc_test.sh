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
# Atomics are one instruction each, without a load before it.
"$nvcc" -std=c++20 -arch=sm_90 --expt-relaxed-constexpr -w -DFARSIDE_USE_SMP=1 "-I$root/include" -ptx \
  "$root/tests/device/gpu/atomics.cu" -o "$folder/atomics.ptx" || exit 1
for atomic in add exch and or xor min max; do
  found=$(grep -c "atom\.relaxed\.sys\.global\.$atomic\." "$folder/atomics.ptx")
  [[ $found == 4 ]] || { echo "atomics.cu: $found instructions of $atomic for 4 types of words"; exit 1; }
done
if grep -E 'ld\.relaxed|\.cas\.' "$folder/atomics.ptx"; then
  echo "atomics.cu: an atomic loads, or tries, where there is an instruction for it"
  exit 1
fi
# Libraries in NVSHMEM's place: an old one, one that is none.
cuda=$(cd "$(dirname "$(readlink -f "$nvcc")")/../include" && pwd)
g++ -std=c++20 -DFARSIDE_USE_SMP=1 -DFARSIDE_USE_CUDA=1 "-I$root/include" -isystem "$cuda" \
  "$root/tests/device/gpu/open_nvshmem.cpp" -o "$folder/open_nvshmem" -ldl &&
  gcc -shared -fPIC "$root/tests/device/gpu/old_nvshmem.c" -o "$folder/old_nvshmem.so" || exit 1
echo "no library" >"$folder/broken_nvshmem.so"
opens() { # LIBRARY PATTERN
  FARSIDE_NVSHMEM=$folder/$1 "$folder/open_nvshmem" | grep -E "$2" || { echo "$1: it does not say: $2"; exit 1; }
}
opens old_nvshmem.so "NVSHMEM is too old: version 2.11.0, and 3.0 or later is needed"
opens broken_nvshmem.so "no NVSHMEM library found \(tried .*broken_nvshmem.so: (file too short|invalid ELF header)"
opens missing.so "no NVSHMEM library found \(tried .*missing.so: cannot open shared object file"
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
