#!/usr/bin/env bash
# Runs pytest, and what failed once more, each test alone: `tests/run.sh PYTHON ARGUMENTS`.
#
# Hundreds of tests run whole labs in real time, on machines that are shared: now and then one fails for what somebody
# else computed. A test that is wrong fails alone, too, and so does the run. What passed alone is said by name.
set -euo pipefail
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
  echo "tests: ${#failed[@]} failed; up to $MOST would have been run once more, alone" >&2
  exit 1
fi
for test in "${failed[@]}"; do
  for ((time = 1; time <= TIMES; time++)); do
    echo "tests: $test failed; alone, $time of $TIMES:"
    "$python" -m pytest -p no:cacheprovider "$test"
  done
done
echo "tests: failed among others and passed alone $TIMES times:"
printf '  %s\n' "${failed[@]}"
