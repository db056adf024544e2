#!/usr/bin/env bash
# in_bare.sh REASON: makes the goldens again in the bare Debian that CI uses (tests/bare/root.sh), from the files of the last commit.
# A golden is compared only where all packages have the versions that made it, and CI has Debian's newest. Needs root.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../bare/root.sh"

update() { # DIR REASON
  root=$1
  furnish
  in_root make --no-print-directory -C "$project" kernel
  in_root sh -c 'cd "$1" && .venv/bin/python tests/goldens/update.py "$2"' sh "$project" "$2"
}

if [ "${1:-}" = --inside ]; then update "$2" "$3"
else
  [ -n "${1:-}" ] || fail 'usage: in_bare.sh "why they change"'
  export CACHED=yes
  require
  temporary
  prepare
  enter "$here/../goldens/in_bare.sh" --inside "$root" "$1"
  rm -rf "$here/../goldens/reference"
  cp -r "$root$project/tests/goldens/goldens.json" "$root$project/tests/goldens/reference" "$here/../goldens/"
fi
