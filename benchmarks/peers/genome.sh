#!/bin/bash
# Counts k-mers and makes unitigs of E. coli reads with `farside` and with what people use now
# (Jellyfish, KMC, BCALM), compares what comes out, and prints wall time and peak memory of each.
#
#   genome.sh FARSIDE [SCRATCH]        e.g. benchmarks/peers/genome.sh build/release/bin/farside
#
# Needs the Debian packages jellyfish kmc bcalm bowtie-examples time. GENOME (a FASTA file, by gzip),
# COVERAGE (30), K (31), MIN_COUNT (2), RANKS (2) and RUNS (3) can be set; of several runs the fastest
# counts. About 1 GB of disk, and some minutes for BCALM.
set -eu
farside=$(realpath "$1")
scratch=${2:-$(mktemp -d)}
K=${K:-31} COVERAGE=${COVERAGE:-30} MIN_COUNT=${MIN_COUNT:-2} RANKS=${RANKS:-2} RUNS=${RUNS:-3}
genome=${GENOME:-/usr/share/doc/bowtie/examples/genomes/NC_008253.fna.gz}
for program in jellyfish kmc bcalm /usr/bin/time; do
  command -v "$program" >/dev/null || { echo "genome.sh: $program is missing; apt install jellyfish kmc bcalm time" >&2; exit 1; }
done
[ -r "$genome" ] || { echo "genome.sh: no $genome; apt install bowtie-examples" >&2; exit 1; }
mkdir -p "$scratch/temporary"
cd "$scratch"

if [ ! -s "ecoli$COVERAGE.reads.fq" ]; then
  gunzip -c "$genome" >ecoli.fa
  "$farside" simulate -n "$RANKS" --genome ecoli.fa --coverage "$COVERAGE" --read-length 150 --error 0.01 --seed 1 "ecoli$COVERAGE"
fi
reads=ecoli$COVERAGE.reads.fq
cat "$reads" >/dev/null # all read from memory, the first one too

# measure NAME COMMAND...: the fastest of some runs, and the largest process of it (all ranks: the sum).
measure() {
  local name=$1 best="" run seconds memory
  shift
  for run in $(seq "$RUNS"); do
    /usr/bin/time -o time -f '%e %M' "$@" >log 2>&1 || { cat log; exit 1; }
    read -r seconds memory <time
    if [ -z "$best" ] || awk -v a="$seconds" -v b="${best% *}" 'BEGIN { exit !(a < b) }'; then best="$seconds $memory"; fi
  done
  case $name in farside*) memory=$((${best#* } * RANKS)) ;; *) memory=${best#* } ;; esac
  printf '%-24s %8.2f s %8d MiB\n' "$name" "${best% *}" $((memory / 1024))
}

echo "k $K, $(du -h "$reads" | cut -f 1) of reads, $RANKS cores"
measure "farside kmers" "$farside" kmers -n "$RANKS" -k "$K" --output ours.kmers --histogram ours.histogram "$reads"
measure "jellyfish" jellyfish count -m "$K" -C -s 100M -t "$RANKS" -o theirs.jf "$reads"
measure "kmc" kmc "-k$K" -ci1 -cs10000 "-t$RANKS" -m4 -hp "$reads" theirs temporary
measure "farside contigs" "$farside" contigs -n "$RANKS" -k "$K" --min-count "$MIN_COUNT" --output ours.fa "$reads"
RUNS=1 measure "bcalm" bcalm -in "$reads" -kmer-size "$K" -abundance-min "$MIN_COUNT" -nb-cores "$RANKS" -out theirs

unitigs() { # FILE: one a line, of both strands the lesser; circles begin with their least k-mer
  perl -e '
    my $k = shift @ARGV;
    sub reverse_complement { my $s = reverse shift; $s =~ tr/ACGT/TGCA/; $s }
    while (<STDIN>) {
      next if /^>/;
      chomp(my $s = $_);
      if (length($s) > $k && substr($s, 0, $k - 1) eq substr($s, 1 - $k)) {
        my $circle = substr($s, 0, length($s) - $k + 1);
        my @turned = map { substr($circle, $_) . substr($circle, 0, $_) } 0 .. length($circle) - 1;
        $s = "circle " . (sort map { ($_, reverse_complement($_)) } @turned)[0];
      } else { my $r = reverse_complement($s); $s = $r if $r lt $s }
      print "$s\n";
    }' "$K" <"$1" | LC_ALL=C sort
}
agree() { # NAME FILE FILE
  if cmp -s "$2" "$3"; then echo "the same  $1"; else echo "DIFFERENT $1"; status=1; fi
}
status=0
jellyfish histo theirs.jf >theirs.histogram
agree "histogram of Jellyfish" ours.histogram theirs.histogram
kmc_tools -hp transform theirs histogram kmc.histogram -ci1 -cx10000 >/dev/null
awk '$2 > 0 { print $1, $2 }' kmc.histogram >theirs.histogram
awk '$1 <= 10000' ours.histogram >lines
agree "histogram of KMC" lines theirs.histogram
unitigs ours.fa >ours.sorted
unitigs theirs.unitigs.fa >theirs.sorted
agree "unitigs of BCALM ($(wc -l <ours.sorted) of them)" ours.sorted theirs.sorted
exit $status
