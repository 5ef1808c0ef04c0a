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
exit $status
