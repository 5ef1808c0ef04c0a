#!/bin/bash
# Tests `farside sort` against perl's sort, what it refuses, and what is left when it is killed.
#   sort_test.sh FARSIDE SCRATCH
# On smp; and on each other back end for which the program lies beside FARSIDE.
set -u
. "$(dirname "$0")/programs.sh"

one_line() { # NAME: the last run said one thing only, and left nothing behind
  local n
  n=$(wc -l <"$work/err")
  if [ "$n" != 1 ]; then fail "$1: $n lines on stderr"; fi
  if compgen -G '.farside-*' >/dev/null; then fail "$1: left behind: $(echo .farside-*)"; fi
}
refuses() { # NAME PATTERN ARGUMENTS...
  local name=$1 pattern=$2
  shift 2
  run "$farside" sort -n 3 "$@"
  check "$name" 1 "^farside sort: .*$pattern"
  one_line "$name"
}

# --- numbers: what perl makes of them is right ---------------------------------------------------
# generate TYPE DISTRIBUTION COUNT: TYPE-DISTRIBUTION, and the same .sorted
generate() {
  perl -e '
    my ($type, $how, $n) = @ARGV;
    my $code = {u32 => "L<", i32 => "l<", u64 => "Q<", i64 => "q<", f32 => "f<", f64 => "d<"}->{$type};
    my $top = $type =~ /64/ ? 2**52 : 2**31;
    srand(7);
    my @x = map {
      my $v = $how eq "equal" ? 5 : $how eq "skewed" ? int(20 / (rand() + 1e-3)) : int(rand($top));
      $v = $v / 1024 - 300 if $type =~ /^f/;
      $v = -$v if $type =~ /^[if]/ && rand() < 0.4;
      unpack($code, pack($code, $v))
    } 1 .. $n;
    my @s = sort { $a <=> $b } @x;
    @x = @s if $how eq "presorted";
    @x = reverse @s if $how eq "reversed";
    open my $f, ">:raw", "$type-$how" or die; print $f pack("$code*", @x); close $f;
    open $f, ">:raw", "$type-$how.sorted" or die; print $f pack("$code*", @s); close $f;
  ' "$1" "$2" "$3"
}
sorts() { # NAME INPUT EXPECTED OPTIONS...: on 1, 2, 3 and 4 ranks
  local name=$1 input=$2 expected=$3 n
  shift 3
  for n in 1 2 3 4; do
    run "$farside" sort -n "$n" "$@" "$input" -o out
    check "$name on $n ranks" 0
    same "$name on $n ranks, bytes" out "$expected"
    rm -f out
  done
}
for type in u32 i32 u64 i64 f32 f64; do
  generate $type uniform 5000
  sorts "$type" $type-uniform $type-uniform.sorted --type $type
done
for how in skewed equal presorted reversed; do
  generate u32 $how 5000
  sorts "u32, $how" u32-$how u32-$how.sorted --type u32
done
generate u64 skewed 300000 # more than a block of the local sort
sorts "u64, many" u64-skewed u64-skewed.sorted --type u64
: >empty
sorts "empty" empty empty --type f64
generate i32 uniform 1
sorts "one number" i32-uniform i32-uniform.sorted --type i32

# -0 before +0, NaN behind everything, whatever its sign; the bytes stay.
perl -e 'print pack("L<*", 0x7fc00001, 0x00000000, 0xffc00000, 0x80000000, 0x7f800000, 0xff800000, 0x3f800000)' >odd
perl -e 'print pack("L<*", 0xff800000, 0x80000000, 0x00000000, 0x3f800000, 0x7f800000, 0x7fc00001, 0xffc00000)' >odd.sorted
sorts "order of floats" odd odd.sorted --type f32

# To standard output; options with their values attached; files whose names look like options.
for n in 1 3; do
  run bash -c '"$1" sort -n"$2" -tf32 odd -o - >out' stdout "$farside" $n; check "to standard output, $n ranks" 0
  same "to standard output, $n ranks" out odd.sorted
done
cp odd ./-odd
run "$farside" sort -np 2 -t=f32 -oout -- -odd; check "a file called -odd" 0
same "a file called -odd" out odd.sorted
rm -f out ./-odd
[ -e ./- ] && fail "there is a file called -"

# --- records: stable -----------------------------------------------------------------------------
perl -e '
  srand(3);
  my @r = map { pack("L<l<L<x", $_, int(rand(20)) - 10, int(rand(2**32))) } 0 .. 4999;
  open my $f, ">:raw", "records" or die; print $f @r; close $f;
  my @s = map { $_->[1] } sort { $a->[0] <=> $b->[0] || $a->[2] <=> $b->[2] }
          map { [unpack("x4 l<", $r[$_]), $r[$_], $_] } 0 .. $#r;
  open $f, ">:raw", "records.sorted" or die; print $f @s; close $f;
  @s[0, 1] = @s[1, 0];
  open $f, ">:raw", "records.unstable" or die; print $f @s; close $f;
  @s[0, 4999] = @s[4999, 0];
  open $f, ">:raw", "records.unsorted" or die; print $f @s; close $f;
  substr($r[7], 12, 1) = "x";
  open $f, ">:raw", "records.other" or die; print $f @r; close $f;'
form=(--type record --record-size 13 --key i32 --key-offset 4)
sorts "records" records records.sorted "${form[@]}"
run "$farside" sort -n 7 "${form[@]}" records -o out; check "records on 7 ranks" 0; same "the same bytes" out records.sorted
run "$farside" sort -n 3 --threads "${form[@]}" records -o out; check "records on threads" 0; same "the same bytes" out records.sorted
run "$farside" sort -n 3 "${form[@]}" out -o out; check "onto itself" 0; same "the same bytes" out records.sorted
run "$farside" sort -n 3 --times "${form[@]}" records -o out; check "--times" 0 "exchange +[0-9.]+" "5000 records"
rm out

run "$farside" sort -n 3 "${form[@]}" --check records.sorted; check "--check" 0 "5000 records, sorted; sum [0-9a-f]{16}$"
run "$farside" sort -n 3 "${form[@]}" --check records.sorted --against records
check "--check --against" 0 "5000 records, sorted, and those of records in their order; sum"
refuses "times in the output" "--times prints on standard output, which -o - takes" --type f32 odd -o - --times
run bash -c '"$1" sort -n 2 -t f32 odd -o - >/dev/full' full "$farside"
check "standard output that is full" 1 "^farside sort: standard output: cannot be written: No space left"
refuses "not sorted" "records.unsorted: not sorted: record [0-9]+ is smaller" "${form[@]}" --check records.unsorted
refuses "not stable" "not stable: record [01] " "${form[@]}" --check records.unstable --against records
refuses "other records" "not those of records.other" "${form[@]}" --check records.sorted --against records.other
refuses "fewer records" "has 65000 bytes, and empty has 0" "${form[@]}" --check records.sorted --against empty

# --- what is refused: one line, and nothing under the name of the output ------------------------
printf 12345 >odd_size
mkdir a_folder
refuses "no whole number of records" "odd_size: its 5 bytes .* 1 are left over behind record 1" --type u32 odd_size -o out
refuses "no such file" "not_there: cannot be read: No such file" --type u32 not_there -o out
refuses "a directory" "a_folder: is a directory" --type u32 a_folder -o out
refuses "output is a directory" "a_folder: is a directory" --type u32 empty -o a_folder
refuses "output is a device" "/dev/null: is no regular file" --type u32 empty -o /dev/null
refuses "no such folder" "no_folder/out: cannot be written: No such file" --type u32 empty -o no_folder/out
refuses "no type" "--type is missing" empty -o out
refuses "no such type" "--type u16: there is no such type" --type u16 empty -o out
refuses "no output" "-o is missing" --type u32 empty
refuses "nothing to do" "nothing to sort" --type u32
refuses "two files" "one file is sorted at a time" --type u32 empty empty -o out
refuses "key behind its record" "--key-offset 10: a key of 4 bytes" --type record --record-size 13 --key u32 --key-offset 10 records -o out
refuses "no key" "needs --key" --type record --record-size 13 records -o out
refuses "unknown option" "unknown option --frob" --frob
refuses "no number" "--keys many: that is not a whole number" --isx --keys many
# A file system of its own, where this user may make one.
full() {
  unshare -m bash -c 'mount -t tmpfs -o size=256k none a_folder && "$@"; status=$?
    ls -A a_folder | sed "s/^/left: /" >&2; exit $status' full "$@"
}
if full true 2>/dev/null; then
  full timeout "$limit" "$farside" sort -n 3 --type u64 u64-skewed -o a_folder/out >"$work/out" 2>"$work/err"
  status=$?
  check "disk full" 1 "^farside sort: .*a_folder/out: there is no room for its 2400000 bytes: No space left"
  one_line "disk full"
fi
if [ -e out ]; then fail "a refusal left an output"; else pass "no refusal left an output"; fi
cp u32-uniform kept
refuses "the old file stays" "not_there: cannot be read" --type u32 not_there -o kept
same "the old file stays" kept u32-uniform
run "$farside" sort --help; check "help" 0 "^usage: farside sort"

# --- a rank is killed: no half of a file under the final name --------------------------------------
perl -e 'srand(5); print pack("Q<*", map { rand(2**52) } 1 .. 65536) x 64' >large
leaves_nothing sort --type u64 large -o killed

# --- the benchmark ----------------------------------------------------------------------------------
for how in weak strong isobucket; do
  run "$farside" sort -n 3 --isx --scaling $how --keys 20000 --runs 1
  check "ISx, $how" 0 "^verified each time" "bucket \+ exchange"
done
run "$farside" sort -n 1 --isx --keys 2^10 --range 1000 --beside-std-sort; check "ISx, alone" 0 "whole / std::sort"
run "$farside" sort -n 4 --isx --keys 0 --runs 1; check "ISx of nothing" 0 "^verified each time"

# --- other back ends --------------------------------------------------------------------------------
for backend in openmpi mpich shmem; do
  [ -e "$(dirname "$farside")/farside_$backend.so" ] && [ -x "$(dirname "$farside")/sort_any" ] || continue
  for n in 2 3; do
    run "$farside" sort -n $n --backend $backend "${form[@]}" records -o out; check "$backend: records" 0
    same "$backend: the same bytes" out records.sorted
    rm -f out
  done
  run "$farside" sort -n 2 --backend $backend --isx --keys 20000 --runs 1; check "$backend: ISx" 0 "^verified"
  refuses "$backend: no such file" "not_there: cannot be read" --backend $backend --type u32 not_there -o out
  refuses "$backend: odd size" "5 bytes are no whole number" --backend $backend --type u32 odd_size -o out
done

[ "$failures" = 0 ] && echo "all good" || { echo "$failures failed" && exit 1; }
