#!/usr/bin/env bash
# armci.sh BUILD [MPI] [PROCESSES]
#
# The same program (armci.c) with Debian's ARMCI-MPI and with libfarside_armci, in turns, on this machine: medians of
# five runs in microseconds, and how many times as fast Farside is. BUILD is a build folder; MPI is openmpi
# (the default) or mpich. Settings of Farside, such as FARSIDE_MPI, may be given in the environment. `armci.sh BUILD
# MPI busy` shows the worst wait for a task whose counter is on a process that computes.
#
# PEER_OPTIONS are options of the launcher for ARMCI-MPI. By itself Open MPI 4.1 takes its windows of `osc rdma`; with
# `--mca osc ^rdma` it takes those in shared memory.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) mpi=${2:-openmpi} what=${3:-2}
runs=${RUNS:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe=1
config=$build/bin/farside-armci-config

case $mpi in
  openmpi) launcher=mpirun.openmpi wrapper=mpicc.openmpi peer=(${PEER_OPTIONS:-}) ;;
  mpich) launcher=mpiexec.mpich wrapper=mpicc.mpich peer=(${PEER_OPTIONS:-}) ;;
  *) echo "armci.sh: $mpi is no MPI it knows: openmpi or mpich" >&2; exit 2 ;;
esac
for library in "/usr/lib/$(uname -m)-linux-gnu/libarmci-$mpi.a" "$build/lib/libfarside_armci-$mpi.a"; do
  [ -e "$library" ] || { echo "armci.sh: $library is missing" >&2; exit 1; }
done
"$wrapper" -O2 "$here/armci.c" -o "$folder/peer" "-larmci-$mpi" -lm -lpthread
# The headers say the same: each program is compiled with those of its library.
"$wrapper" -O2 $("$config" --cflags) "$here/armci.c" -o "$folder/farside" $("$config" --mpi "$mpi" --static --libs)

if [ "$what" = busy ]; then
  for ((i = 0; i < runs; ++i)); do
    echo "ARMCI-MPI: $(timeout 60 "$launcher" "${peer[@]}" -n 2 "$folder/peer" busy)"
    for strategy in ${STRATEGIES:-progress_thread progress_rank}; do
      n=2
      [ $strategy = progress_rank ] && n=3
      echo "$strategy: $(FARSIDE_MPI=$strategy FARSIDE_MPI_SHARED=0 timeout 60 "$launcher" -n $n "$folder/farside" busy)"
    done
  done
  exit
fi
for ((i = 0; i < runs; ++i)); do
  timeout 300 "$launcher" "${peer[@]}" -n "$what" "$folder/peer" >> "$folder/peer.txt"
  timeout 300 "$launcher" -n "$what" "$folder/farside" >> "$folder/farside.txt"
done
# median FILE: one line a name, in the order in which they came
median() {
  awk '{ if (!($1 in count)) order[++names] = $1; all[$1, ++count[$1]] = $2 }
    END {
      for (i = 1; i <= names; ++i) {
        n = count[order[i]]
        for (a = 1; a <= n; ++a)
          for (b = a + 1; b <= n; ++b)
            if (all[order[i], b] < all[order[i], a]) {
              t = all[order[i], a]; all[order[i], a] = all[order[i], b]; all[order[i], b] = t
            }
        print order[i], all[order[i], int((n + 1) / 2)]
      }
    }' "$1"
}
printf '%-24s %12s %12s %8s\n' "$mpi" ARMCI-MPI Farside times
paste -d ' ' <(median "$folder/peer.txt") <(median "$folder/farside.txt") |
  awk '{ printf "%-24s %12.3f %12.3f %8.2f%s\n", $1, $2, $4, $2 / $4, $2 < $4 ? "  slower" : "" }'
