#!/bin/bash
# Tests `farside kmers` and `farside simulate`: counts against Jellyfish and KMC, the same bytes from
# any number of ranks, all forms of input, and what is refused.
#   kmers_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the programs lie beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

# --- a genome with repeats, reads with errors ------------------------------------------------------
for n in 1 3; do
  run "$farside" simulate -n $n --length 5000 --coverage 12 --read-length 100 --error 0.02 --seed 7 g$n
  check "simulate on $n ranks" 0 "^genome +5000$" "^reads +600$"
done
same "the same genome from 1 and 3 ranks" g1.genome.fa g3.genome.fa
same "the same reads from 1 and 3 ranks" g1.reads.fq g3.reads.fq
run "$farside" simulate -n 2 --length 5000 --coverage 12 --read-length 100 --error 0.02 --seed 8 other
if cmp -s other.reads.fq g1.reads.fq; then fail "another seed, the same reads"; else pass "another seed, other reads"; fi
mv g1.reads.fq reads.fq
mv g1.genome.fa genome.fa
# What breaks k-mers, lower case, reads shorter than k, none at all.
awk 'NR % 4 == 2 && NR % 28 == 2 { $0 = substr($0, 1, 40) "N" substr($0, 42) }
     NR % 4 == 2 && NR % 20 == 2 { $0 = tolower($0) }
     NR % 4 != 3 && NR % 4 != 1 && NR % 84 > 80 { $0 = substr($0, 1, 15) } 1' reads.fq |
  awk 'NR % 4 == 2 { n = length($0) } NR % 4 == 0 { $0 = substr($0, 1, n) } 1' >odd.fq
printf '@nothing\n\n+\n\n' >>odd.fq

# --- any number of ranks, any form of input: the same bytes -----------------------------------------
gzip -c odd.fq >odd.fq.gz
{ head -n 1000 odd.fq | gzip -c; tail -n +1001 odd.fq | gzip -c; } >members.gz
sed 's/$/\r/' odd.fq >crlf.fq
head -n 1200 odd.fq >part1.fq
tail -n +1201 odd.fq | gzip -c >part2.fq.gz
truncate -s -1 odd.fq  # no end of the last line
for n in 1 2 3 4; do
  run "$farside" kmers -n $n -k 21 --output out$n --tsv text$n --histogram histogram$n odd.fq
  check "kmers on $n ranks" 0 "^sequences +601$"
  for what in out text histogram; do same "$what of $n ranks" ${what}1 $what$n; done
  for file in odd.fq.gz members.gz crlf.fq "part1.fq part2.fq.gz"; do
    run "$farside" kmers -n $n -k 21 --output other $file
    check "$file on $n ranks" 0
    same "$file on $n ranks" out1 other
  done
  run bash -c '"$1" kmers -n "$2" -k 21 --output other - <odd.fq.gz' stdin "$farside" $n
  check "standard input on $n ranks" 0
  same "standard input on $n ranks" out1 other
done
# In device memory, by the stand-in for GPUs.
export FARSIDE_DEVICE=stand-in
for n in 1 3; do
  run "$farside" kmers -n $n -k 21 --device --histogram other odd.fq; check "kmers --device on $n ranks" 0 "^sequences +601$"
  same "kmers --device on $n ranks" histogram1 other
done
run "$farside" kmers -n 2 -k 21 --device --histogram other part1.fq part2.fq.gz; check "kmers --device, two files" 0
same "kmers --device, two files" histogram1 other
unset FARSIDE_DEVICE
# Options in all their forms; files that are standard output
for form in "-n3 -k21 -oother" "-np 3 -k=21 -o=other" "--ranks=3 --k=21 --output=other" "-n=3 -k 21 -o other"; do
  run "$farside" kmers $form odd.fq; check "$form" 0
  same "$form" out1 other
done
for what in output text histogram; do
  option=--${what/text/tsv} expected=${what/output/out}1
  run bash -c '"$1" kmers -n 3 -k 21 "$2" - odd.fq >other' stdout "$farside" $option; check "$option -" 0
  same "$option -" $expected other
done
[ -e ./- ] && fail "there is a file called -"
run "$farside" kmers -n 3 -k 21 --passes 3 --output other odd.fq; check "three passes" 0
same "three passes" out1 other
run "$farside" kmers -n 2 -k 21 --min-count 3 --tsv three odd.fq; check "--min-count" 0
awk '$2 >= 3' text1 >expected; same "--min-count 3" expected three
run "$farside" kmers -n 2 -k 21 --bloom --tsv two odd.fq; check "--bloom" 0
awk '$2 >= 2' text1 >expected; same "--bloom: all but those seen once" expected two

# FASTQ records of several lines: all of them; the last ones only, after others of four lines
wrap() { # K: sequences and qualities in lines of so many characters
  awk -v w="$1" '{ if (NR % 4 == 1 || NR % 4 == 3) print
    else { for (i = 1; i <= length($0); i += w) print substr($0, i, w); if ($0 == "") print "" } }'
}
# Qualities that begin like names and separators
awk 'NR % 4 == 0 && NR % 8 == 0 { sub(/^../, "@+") } NR % 12 == 0 { sub(/^./, "+") } 1' odd.fq >tricky.fq
wrap 7 <tricky.fq >wrapped.fq
{ head -n 2000 tricky.fq; tail -n +2001 tricky.fq | wrap 30; } >late.fq
gzip -kf wrapped.fq
for n in 1 2 3 4 7; do
  for file in tricky.fq wrapped.fq late.fq wrapped.fq.gz; do
    run "$farside" kmers -n $n -k 21 --output other $file; check "$file on $n ranks" 0 "^sequences +601$"
    same "$file on $n ranks" out1 other
  done
done
run "$farside" kmers -n 3 -k 21 --passes 3 --output other late.fq genome.fa; check "several lines, three passes" 0
run "$farside" kmers -n 1 -k 21 --output expected odd.fq genome.fa; same "several lines, three passes" expected other

# FASTA: lines of any length, several sequences; cut within a name, and within a sequence
tr -d '\n' <genome.fa | sed 's/>genome/>one line\n/' >one_line.fa
{ cat genome.fa; echo '>short'; echo ACGT; echo '>a rather long name, so that a range may begin in it'; echo; cat genome.fa; } >several.fa
sed 's/$/\r/' genome.fa >crlf.fa
run "$farside" kmers -n 1 -k 21 --output genome1 genome.fa; check "FASTA" 0
run "$farside" kmers -n 1 -k 21 --output several1 several.fa; check "FASTA, several" 0 "^sequences +4$"
for n in 2 3 4 7; do
  for file in genome.fa one_line.fa crlf.fa; do
    run "$farside" kmers -n $n -k 21 --output other $file; check "$file on $n ranks" 0
    same "$file on $n ranks" genome1 other
  done
  run "$farside" kmers -n $n -k 21 --output other several.fa; check "several.fa on $n ranks" 0 "^sequences +4$"
  same "several.fa on $n ranks" several1 other
done

# --- Jellyfish and KMC ----------------------------------------------------------------------------------
if have jellyfish; then
  for k in 1 2 5 11 21 31 32 33 63 64 65 95; do
    jellyfish count -m $k -C -s 1M -o counts.jf odd.fq genome.fa 2>/dev/null || fail "jellyfish -m $k"
    jellyfish histo counts.jf >expected
    run "$farside" kmers -n 3 -k $k --histogram histogram --tsv text odd.fq genome.fa; check "k $k" 0
    same "k $k: the histogram of Jellyfish" expected histogram
    jellyfish dump -c -t counts.jf | LC_ALL=C sort >expected
    LC_ALL=C sort text >sorted
    same "k $k: the counts of Jellyfish" expected sorted
  done
fi
if have kmc; then
  mkdir -p temporary
  for k in 15 31 47 127; do
    if kmc -k$k -ci1 -cs1000000 -m2 -t1 -hp genome.fa counts temporary >/dev/null 2>&1 ||
      kmc -k$k -fm -ci1 -cs1000000 -m2 -t1 -hp genome.fa counts temporary >/dev/null 2>&1; then
      kmc_tools -hp transform counts dump dumped >/dev/null 2>&1
      run "$farside" kmers -n 2 -k $k --tsv text genome.fa; check "k $k for KMC" 0
      LC_ALL=C sort text >sorted
      LC_ALL=C sort dumped >expected
      same "k $k: the counts of KMC" expected sorted
    else
      fail "kmc -k$k"
    fi
  done
fi

# --- what is refused -------------------------------------------------------------------------------------
rm -rf out*
mkdir a_folder tiny
head -c 5000 odd.fq.gz >truncated.gz
{ head -n 400 reads.fq; echo garbage; tail -n +401 reads.fq; } >garbage.fq
awk 'NR == 404 { $0 = $0 "I" } 1' reads.fq >quality.fq
head -n 1002 reads.fq >ends.fq
echo hello >hello
FARSIDE_DEVICE=stand-in FARSIDE_DEVICE_SEGMENT=1M refuses "device memory that is too small" "(no room for|.*do not fit into device memory)" kmers -k 21 --device odd.fq
refuses "k-mers that are too long for devices" "--device counts k-mers of at most 31 bases, and -k is 33" kmers -k 33 --device odd.fq
refuses "files of a device" "--device goes with -k, --min-count, --max-count, --histogram" kmers -k 21 --device --tsv out.tsv odd.fq
refuses "no device" "was not built with CUDA" kmers -k 21 --device odd.fq
refuses "k 0" "-k: '0' is not a whole number from 1 to 127" kmers -k 0 --output out odd.fq
refuses "k 500" "-k: '500' is not" kmers -k 500 --output out odd.fq
refuses "no such file" "not_there.fq: No such file" kmers --output out not_there.fq
refuses "a directory" "a_folder: is a directory" kmers --output out a_folder
refuses "truncated gz" "truncated.gz: record [0-9]+: the compressed data ends too early" kmers --output out truncated.gz
refuses "neither format" "hello: record 1: begins with neither" kmers --output out hello
refuses "not FASTQ" "garbage.fq: record 101: a FASTQ record begins with" kmers --output out garbage.fq
gzip -kf garbage.fq
refuses "not FASTQ, compressed" "garbage.fq.gz: record 101: a FASTQ record begins with" kmers --output out garbage.fq.gz
refuses "quality of another length" "quality.fq: record 101: the quality has 101 characters, the sequence 100" kmers --output out quality.fq
refuses "ends in a record" "ends.fq: record 251: the file ends after the sequence" kmers --output out ends.fq
{ head -n 1204 reads.fq; printf '@long\nACGTACGTAC\nACGTACGTAC\n+\nIIIIIIIIII\nIIIIIIII\nIIIII\n'; tail -n +1205 reads.fq; } >several.fq
refuses "too much quality in several lines" "several.fq: record 302: the quality has more characters than the sequence, which has 20" kmers --output out several.fq
{ head -n 1204 reads.fq; printf '@long\nACGTACGTAC\nACGTACGTAC\n'; tail -n +1205 reads.fq; } >several.fq
refuses "several lines, no separator" "several.fq: record 302: no line that begins with '\+' follows the sequence" kmers --output out several.fq
refuses "output is a directory" "cannot write a_folder: " kmers --output a_folder odd.fq
refuses "no such folder" "cannot write nowhere/out: No such file" kmers --output nowhere/out odd.fq
refuses "disk full" "cannot write /dev/full: No space left" kmers --output /dev/full odd.fq
run bash -c '"$1" kmers --histogram - odd.fq >/dev/full' full "$farside"
check "disk full at standard output" 1 "^farside kmers: cannot write standard output: No space left"
refuses "two files to standard output" "only one of --output, --tsv, " kmers --tsv - --output - odd.fq
run bash -c '"$1" kmers -n 2 --tsv - odd.fq >&-' closed "$farside"
check "standard output that is closed" 1 "^farside kmers: cannot write standard output: Bad file descriptor"
for n in 1 3; do
  run bash -c '"$1" kmers -n "$2" --output out - <&-' closed "$farside" $n
  check "standard input that is closed, $n ranks" 1 "^farside kmers: standard input: cannot be read: Bad file descriptor"
done
# shrinks FILE BYTES: it becomes so short when it has been looked at, and before it is read. In between ranks open
# their outputs: one file, then a pipe, which waits for a reader.
shrinks() {
  rm -f shrinking pipe && cp "$1" shrinking && mkfifo pipe
  "$farside" kmers -n 3 --timeout $limit -k 21 --histogram out --tsv pipe shrinking >"$work/out" 2>"$work/err" &
  local job=$!
  until writing $job || ! kill -0 $job 2>/dev/null; do sleep 0.01; done
  truncate -s "$2" shrinking
  timeout $limit cat pipe >/dev/null
  wait $job
  status=$?
  check "$1 becomes shorter" 1 \
    "^farside kmers: shrinking: (record [0-9]+: )?the file ended at byte $2 of $(stat -c %s "$1"): it became shorter"
  [ -e out ] && fail "$1 becomes shorter: left behind: out"
}
for bytes in 0 1000 4321; do shrinks several.fa $bytes; done
shrinks odd.fq 50000
shrinks wrapped.fq 50000
shrinks members.gz "$(head -n 1000 odd.fq | gzip -c | wc -c)"
refuses "too little memory" "--memory allows; give more, or --passes 2" kmers --memory 1M --output out reads.fq reads.fq reads.fq reads.fq
refuses "no file" "no file is given" kmers --output out
refuses "unknown option" "there is no option --frob" kmers --frob odd.fq
refuses "reads longer than the genome" "longer than the genome" simulate --length 50 out
if with_tiny_disk true 2>/dev/null; then
  with_tiny_disk timeout $limit "$farside" kmers -n 2 --output tiny/out reads.fq >"$work/out" 2>"$work/err"
  status=$?
  check "disk full" 1 "^farside kmers: cannot write tiny/out: No space left"
  if grep -q "^left:" "$work/err"; then fail "disk full: something is left"; else pass "disk full: nothing is left"; fi
fi
if unshare -m mount --bind a_folder a_folder 2>/dev/null; then
  unshare -m bash -c 'mount --bind a_folder a_folder && mount -o remount,ro,bind a_folder && "$@"' read_only \
    timeout $limit "$farside" kmers -n 2 --output a_folder/out odd.fq >"$work/out" 2>"$work/err"
  status=$?
  check "read-only file system" 1 "^farside kmers: cannot write a_folder/out: Read-only file system"
fi
if [ "$(id -u)" != 0 ]; then
  chmod a-w a_folder
  refuses "read-only folder" "cannot write a_folder/out: Permission denied" kmers --output a_folder/out odd.fq
fi
echo kept >kept
refuses "the old file stays" "not_there.fq" kmers --output kept not_there.fq
echo kept | same "the old file stays" - kept
run "$farside" kmers --help; check "help" 0 "^usage: farside kmers"
run "$farside" simulate --help; check "help of simulate" 0 "^usage: farside simulate"

# --- a rank is killed: nothing under the final name, and nothing else is left -------------------------------
run "$farside" simulate -n 2 --length 200000 --coverage 30 large; check "simulate more" 0
leaves_nothing kmers --output killed --tsv killed.tsv large.reads.fq
leaves_nothing simulate --length 1000000 --coverage 30 killed
# Where files cannot be without a name, as there is no /proc to give them one; without a launcher, which needs it
program=$(dirname "$farside")/kmers_any
[ -x "$program" ] || program=$(dirname "$farside")/kmers_smp
without_proc() {
  unshare -m bash -c 'cp /proc/meminfo meminfo && mount -t tmpfs none /proc && mv meminfo /proc && "$@"' sh \
    timeout $limit "$program" "$@" >"$work/out" 2>"$work/err"
}
if without_proc --help; then
  run "$farside" kmers -n 1 -k 21 --output expected odd.fq
  without_proc -k 21 --output other odd.fq
  status=$?
  check "with a name from the beginning" 0 "^sequences +601$"
  same "with a name from the beginning" expected other
  without_proc --output out --tsv out.tsv garbage.fq
  status=$?
  check "with a name, refused" 1 "garbage.fq: record 101"
  if compgen -G '.farside*' >/dev/null || compgen -G 'out*' >/dev/null; then fail "left behind: $(ls -A)"; fi
else
  echo "skip no mounting here: files with a name from the beginning are not tested"
fi

# --- other back ends -----------------------------------------------------------------------------------------
run "$farside" kmers -n 1 -k 21 --output out1 odd.fq
for backend in $(other_backends kmers); do
  for n in 1 2 3 4; do
    for file in odd.fq odd.fq.gz; do
      run "$farside" kmers -n $n --backend $backend -k 21 --output other $file; check "$backend: $file on $n ranks" 0
      same "$backend: $file on $n ranks" out1 other
    done
  done
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
