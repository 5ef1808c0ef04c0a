#!/bin/bash
# Tests `farside contigs`: unitigs against those of BCALM 2, the same bytes from any number of ranks and
# from reads and k-mers, circles, contigs from UFX files, and what is refused.
#   contigs_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the programs lie beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

# unitigs FILE K: one a line, sorted; of both strands the lesser; circles (their ends overlap by
# k - 1 bases) without where they begin.
unitigs() {
  perl -e '
    my ($k, %seen) = shift @ARGV;
    sub reverse_complement { my $s = reverse shift; $s =~ tr/ACGT/TGCA/; $s }
    sub lesser { my ($s, $r) = ($_[0], reverse_complement($_[0])); $s lt $r ? $s : $r }
    my ($name, $sequence);
    my @all;
    while (<STDIN>) { chomp; if (/^>/) { push @all, "" } else { $all[-1] .= $_ } }
    for my $s (@all) {
      if ($k > 1 && length($s) > $k && substr($s, 0, $k - 1) eq substr($s, 1 - $k)) {
        my $circle = substr($s, 0, length($s) - $k + 1);
        my @turned = map { substr($circle, $_) . substr($circle, 0, $_) } 0 .. length($circle) - 1;
        $s = "circle " . (sort map { ($_, reverse_complement($_)) } @turned)[0];
      } else { $s = lesser($s) }
    }
    print map { "$_\n" } sort @all;' "$2" <"$1"
}

run "$farside" simulate -n 2 --length 4000 --repeats 6 --repeat-length 200 --coverage 25 --read-length 100 --error 0.01 --seed 3 s
check "simulate" 0
# A circle: reads run over its end; long enough not to meet itself.
run "$farside" simulate -n 1 --length 600 --repeats 0 --coverage 40 --read-length 80 --error 0 --circular --seed 5 ring
check "simulate a ring" 0

for n in 1 2 3 4; do
  run "$farside" contigs -n $n -k 25 --output out$n s.reads.fq ring.reads.fq
  check "contigs on $n ranks" 0 "^circular +1$" "^N50 +[0-9]+$" "^longest +[0-9]+$"
  same "contigs of $n ranks" out1 out$n
done
# --- the graph in a far::store ------------------------------------------------------------------------
for n in 1 2 3 4; do
  run "$farside" contigs -n $n -k 25 --table store --collisions --output other s.reads.fq ring.reads.fq
  check "in a store on $n ranks" 0 "^circular +1$" "^home is another's +[0-9]+\.[0-9]+ %$" "^further gets a key +0\.[0-9]+$" \
    "^equal hashes +0$"
  same "in a store on $n ranks" out1 other
done
for k in 32 64 66; do  # even, and of several words
  for table in map store; do
    run "$farside" contigs -n 3 -k $k --table $table --output $table s.reads.fq ring.reads.fq; check "k $k in a $table" 0
  done
  same "k $k in a store" map store
done
run "$farside" contigs -n 2 -k 25 --collisions -o other s.reads.fq ring.reads.fq
check "collisions in a map" 0 "^home is another's +[1-9][0-9]*\.[0-9]+ %$" "^equal hashes +0$"
grep -q '^>[0-9]* LN:i:624 .* circular$' out1 && pass "the ring" || fail "no ring of 600 bases"

if have bcalm; then
  # Inverted repeats: k-mers that are their own reverse complements, if k is even, and next to it, if not
  head -n 8 s.genome.fa >inverted.fa
  tail -n +2 inverted.fa | tr -d '\n' | rev | tr ACGT TGCA >>inverted.fa
  echo >>inverted.fa
  for k in 10 11 12 20 31 32 64 66; do
    run bcalm -in inverted.fa -kmer-size $k -minimizer-size 7 -abundance-min 1 -nb-cores 1 -out peer
    check "bcalm of inverted repeats, k $k" 0
    unitigs peer.unitigs.fa $k >expected
    for n in 1 3; do
      run "$farside" contigs -n $n -k $k --min-count 1 --output mine inverted.fa; check "inverted repeats, k $k" 0
      unitigs mine $k >found
      same "inverted repeats, k $k, $n ranks: the unitigs of BCALM" expected found
    done
  done
  for k in 11 12 14 15 16 21 25 31 32 41 63 64 65 99; do
    run bcalm -in s.reads.fq -kmer-size $k -minimizer-size 7 -abundance-min 2 -nb-cores 1 -out peer
    check "bcalm of k $k" 0
    unitigs peer.unitigs.fa $k >expected
    run "$farside" contigs -n 3 -k $k --output mine s.reads.fq; check "k $k" 0
    unitigs mine $k >found
    same "k $k: the unitigs of BCALM" expected found
  done
  cat s.reads.fq ring.reads.fq >both.fq
  run bcalm -in both.fq -kmer-size 25 -abundance-min 2 -nb-cores 1 -out peer
  unitigs peer.unitigs.fa 25 >expected
  unitigs out1 25 >found
  same "with a ring: the unitigs of BCALM" expected found
fi

# --- from k-mers --------------------------------------------------------------------------------------
run "$farside" kmers -n 2 -k 25 --min-count 2 --output counted s.reads.fq ring.reads.fq; check "kmers" 0
run "$farside" kmers -n 3 -k 25 --min-count 2 --extensions --output extended --ufx ufx s.reads.fq ring.reads.fq
check "kmers with neighbours" 0
for n in 1 3; do
  for file in counted extended; do
    run "$farside" contigs -n $n --from kmers --output other $file; check "from $file on $n ranks" 0
    same "from $file on $n ranks" out1 other
  done
done
run "$farside" contigs -n2 --from kmers -k25 --min-count 2 -oother counted; check "what the file says, said again" 0
same "what the file says, said again" out1 other
run bash -c '"$1" contigs -n 3 --from kmers -o - counted >other' stdout "$farside"; check "-o -" 0
same "-o -" out1 other
# UFX: k-mers with one base on each side, walked as long as neighbours agree.
meraculous() {
  perl -e '
    my %base;
    while (<STDIN>) { chomp; my ($kmer, $around) = split /\t/; $base{$kmer} = $around if $around =~ /^[ACGT]{2}$/ }
    sub reverse_complement { my $s = reverse shift; $s =~ tr/ACGT/TGCA/; $s }
    sub look { my $x = shift; return $base{$x} if exists $base{$x};
      my $r = reverse_complement($x); return exists $base{$r} ? reverse_complement($base{$r}) : undef }
    sub name { my $x = shift; my $r = reverse_complement($x); $x lt $r ? $x : $r }
    sub next_of { my $x = shift; my $y = substr($x, 1) . substr(look($x), 1, 1); my $around = look($y);
      return defined $around && substr($around, 0, 1) eq substr($x, 0, 1) && name($x) ne name($y) ? $y : undef }
    my (%done, @all);
    for my $x (sort keys %base) {
      next if $done{name($x)};
      my ($first, $y, $ring) = ($x);
      while (defined($y = next_of(reverse_complement($first)))) { $first = reverse_complement($y); $ring = 1, last if name($first) eq name($x) }
      $first = $x if $ring;
      my $s = $first; $done{name($first)} = 1; my $at = $first;
      while (defined($y = next_of($at)) && !$done{name($y)}) { $s .= substr($y, -1); $done{name($y)} = 1; $at = $y }
      push @all, $s;
    }
    print map { ">x\n$_\n" } @all;'
}
meraculous <ufx >expected.fa
unitigs expected.fa 25 >expected
# The same in binary: words of 32 bases, count, bases, padding, four numbers.
perl -e '
  while (<STDIN>) { chomp; my ($kmer, $around) = split /\t/; (my $digits = $kmer) =~ tr/ACGT/0123/;
    my $word = 0; $word = $word * 4 + $_ for split //, $digits; $word <<= 2 * (32 - length $kmer);
    print pack("Q< l< a a x2 l<4", $word, 7, split(//, $around), 0, 0, 0, 0) }' <ufx >ufx.bin
for n in 1 2 3; do
  run "$farside" contigs -n $n --from ufx --output ufx_contigs$n ufx; check "from UFX on $n ranks" 0
  same "from UFX on $n ranks" ufx_contigs1 ufx_contigs$n
  run "$farside" contigs -n $n -k 25 --from ufx-binary --output other ufx.bin; check "from binary UFX on $n ranks" 0
  sed 's/ KC.*//' other >a; sed 's/ circular//' ufx_contigs1 >b; sed -i 's/ circular//' a
  same "from binary UFX on $n ranks" a b
done
unitigs ufx_contigs1 25 >found
same "from UFX: Meraculous' rule" expected found

# --- what is refused ------------------------------------------------------------------------------------
rm -rf out[2-9] && mv out1 first
head -c 9000 counted >damaged
sed 's/^A\(.*\)\t../A\1\t??/' ufx >bad_ufx
refuses "no output" "-o FILE is needed" contigs s.reads.fq
refuses "no such file" "not_there: No such file" contigs --output out not_there
refuses "no such k-mers" "not_there: No such file" contigs --from kmers --output out not_there
refuses "a directory" "is a directory" contigs --from kmers --output out .
refuses "no k-mers" "s.reads.fq: is no file that 'farside kmers --output' writes" contigs --from kmers --output out s.reads.fq
refuses "damaged k-mers" "damaged: is truncated or damaged" contigs --from kmers --output out damaged
refuses "bad UFX" "bad_ufx: record [0-9]+: is not 'KMER tab two of ACGTFX'" contigs --from ufx --output out bad_ufx
refuses "odd binary UFX" "no whole records of 32 for k 25" contigs -k 25 --from ufx-binary --output out ufx
refuses "another k" "-k 31: counted holds k-mers of length 25; " contigs -k 31 --from kmers --output out counted
refuses "k-mers that are lost" "--min-count 1: counted holds only k-mers that were seen 2 times or more; " \
  contigs --min-count 1 --from kmers --output out counted
refuses "no counts" "--min-count: of --from ufx it is not known how often" contigs --min-count 2 --from ufx --output out ufx
refuses "k 128" "-k: '128' is not" contigs -k 128 --output out s.reads.fq
refuses "unknown table" "--table: 'heap' is neither map nor store" contigs --table heap --output out s.reads.fq
refuses "unknown origin" "--from: 'dust' is none of" contigs --from dust --output out s.reads.fq
refuses "disk full" "cannot write /dev/full: No space left" contigs --output /dev/full s.reads.fq
run "$farside" simulate -n 2 --length 200000 --coverage 30 large; check "simulate more" 0
leaves_nothing contigs --output killed large.reads.fq
run "$farside" contigs --help; check "help" 0 "^usage: farside contigs"

# --- other back ends ------------------------------------------------------------------------------------
for backend in $(other_backends contigs); do
  for n in 1 2 3 4; do
    run "$farside" contigs -n $n --backend $backend -k 25 --output other s.reads.fq ring.reads.fq
    check "$backend on $n ranks" 0
    same "$backend on $n ranks" first other
  done
  run "$farside" contigs -n 3 --backend $backend -k 25 --table store --output other s.reads.fq ring.reads.fq
  check "in a store on $backend" 0
  same "in a store on $backend" first other
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
