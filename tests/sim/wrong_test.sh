#!/bin/bash
# Every mistake of wrong.cpp is found within some seeds, and its right form passes in all of them.
#   wrong_test.sh FARSIDE FOLDER
set -u
farside=$1
program=$2/wrong_sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
printf '%-34s %s\n' 'mistake' 'found in, of 80 runs'
for name in $("$program" --list); do
  for form in right wrong; do
    for ranks in 2 3; do
      "$farside" sim -n "$ranks" --seeds 1..40 --keep-going --steps 300000 "$program" "$name" "$form" \
        >"$work/$ranks" 2>&1
    done
    found=$(sed -nE 's/.* steps; ([0-9]+) failed .*/\1/p' "$work"/* | awk '{ n += $1 } END { print n + 0 }')
    if [ "$form" = right ] && [ "$found" != 0 ]; then
      echo "FAILED: the right form of $name fails in $found of 80 runs:"
      tail -n 15 "$work/2"
      status=1
    elif [ "$form" = wrong ]; then
      says=$("$program" "$name" says)
      if ! grep -qE -- "$says" "$work"/*; then
        echo "FAILED: the reports of $name do not say '$says':"
        grep -h -A 3 '^seed' "$work/3" | head -n 12
        status=1
      fi
      printf '%-34s %s\n' "$name" "$found"
      if [ "$found" = 0 ]; then
        echo "FAILED: $name is never found"
        status=1
      fi
    fi
  done
done

# A forgotten flush is named: the put, the read that did not see it, and where both are called.
put=$(grep -n "far::put(data\[next()\], 1);" "${0%/*}/wrong.cpp" | head -1 | cut -d: -f1)
"$farside" sim -n 2 --seeds 1..40 "$program" flag_without_flush wrong >"$work/flush" 2>&1
if ! grep -qE "put #[0-9]+ of rank [01] at .*wrong.cpp:$put \(8 B to rank [01] \+0x[0-9a-f]+, step [0-9]+\) had not landed when rank [01] read it at .*wrong.cpp:[0-9]+" "$work/flush" ||
  ! grep -qE "rank [01] failed with status 1" "$work/flush"; then
  echo "FAILED: a forgotten flush is not named:"
  cat "$work/flush"
  status=1
fi
"$farside" sim -n 2 --seeds 1..40 "$program" two_puts_to_one_place wrong >"$work/none" 2>&1
if grep -q "had not landed" "$work/none"; then
  echo "FAILED: a put is named that nobody read too early:"
  cat "$work/none"
  status=1
fi
exit $status
