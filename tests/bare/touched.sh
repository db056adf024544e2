#!/usr/bin/env bash
# touched.sh [SEEN]: tells whether the last commits changed anything that the lived-in root (lived_in.sh) tests.
#
# The file SEEN holds the commit that was tested last; without it, or if that is no ancestor of HEAD, HEAD is compared with its first
# parent. Prints the changed paths and ends with 0, or prints the reason: 1 if none of them changed, 3 if the history does not tell.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
judged=(tests/goldens tests/ansible tests/doctor tests/bare playbooks inventory orchestrator/doctor orchestrator/kernel/virtual
  images/packages.sh images/kernel)
git() { command git -c safe.directory='*' "$@"; }

since=$(cat "${1:-/dev/null}" 2>/dev/null || true)
if [ -z "$since" ] || ! git merge-base --is-ancestor "$since" HEAD 2>/dev/null; then
  since=$(git rev-parse --verify --quiet 'HEAD^1^{commit}' 2>/dev/null) ||
    { echo "the history does not tell what HEAD changed: a clone without its parent"; exit 3; }
fi
changed=$(git diff --name-only "$since" HEAD -- "${judged[@]}")
if [ -z "$changed" ]; then
  echo "nothing of ${judged[*]} changed since ${since:0:12}"
  exit 1
fi
echo "changed since ${since:0:12}: $(head -n 5 <<<"$changed" | paste -sd ' ')$([ "$(wc -l <<<"$changed")" -le 5 ] || echo ' ...')"
