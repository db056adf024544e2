#!/usr/bin/env bash
# Runs pytest, then once more what failed, each test alone: `tests/run.sh PYTHON ARGUMENTS`.
#
# Hundreds of tests run whole labs in real time on machines that other programs use, too, and sometimes one fails because
# of them. A test of wrong code also fails alone. So all failed tests run again alone, up to MOST of them, and the end names
# each failure. The status is 0 only if every one of them passed alone TIMES times.
set -uo pipefail
MOST=6     # of more than so many at once something else is the matter
TIMES=2    # in a row, alone

python=$1
shift
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT

status=0
"$python" -m pytest -o cache_dir="$cache" "$@" || status=$?
[ "$status" -eq 1 ] || exit "$status" # 0: passed; all others: not tests that failed

mapfile -t failed < <("$python" -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' \
  "$cache/v/cache/lastfailed")
if [ "${#failed[@]}" -gt "$MOST" ]; then
  echo "tests: ${#failed[@]} failed; up to $MOST would have been run once more, alone"
  exit 1
fi
passed=() wrong=()
for test in "${failed[@]}"; do
  for ((time = 1; time <= TIMES; time++)); do
    echo "tests: $test failed; alone, $time of $TIMES:"
    "$python" -m pytest -p no:cacheprovider -m "" "$test" || { wrong+=("$test"); continue 2; }
  done
  passed+=("$test")
done
if [ "${#passed[@]}" -gt 0 ]; then
  echo "tests: failed among others and passed alone $TIMES times:"
  printf '  %s\n' "${passed[@]}"
fi
if [ "${#wrong[@]}" -gt 0 ]; then
  echo "tests: failed among others and alone:"
  printf '  %s\n' "${wrong[@]}"
  exit 1
fi
