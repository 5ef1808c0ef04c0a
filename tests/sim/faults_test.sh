#!/bin/bash
# A rank stops, an allocation fails: the others notice or finish, and see nothing that is wrong.
#   faults_test.sh FARSIDE FOLDER
set -u
farside=$1
status=0

# campaign ARGUMENTS...: all its runs are good.
campaign() {
  echo "farside sim $*"
  "$farside" sim --keep-going "$@" || {
    echo "FAILED"
    status=1
  }
}

for ranks in 2 3 5; do
  campaign -n $ranks --seeds 1..60 "$2/faults_sim"
  campaign -n $ranks --seeds 1..100 --stop random "$2/faults_sim"
  campaign -n $ranks --seeds 1..60 --fail-allocation random "$2/faults_sim"
done
campaign -n 3 --seeds 1..6 --stop random "$2/conformance_any"
campaign -n 3 --seeds 1..6 --fail-allocation random "$2/conformance_any"
exit $status
