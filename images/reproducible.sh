#!/usr/bin/env bash
# reproducible.sh [wheel] [deb]: builds each twice, the second time under another umask, time zone, language and directory for temporary
# files, and compares the bytes; both use the same agent and reducer. Status 1 if they differ.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/one" "$work/two" "$work/tmp"
build() { # DIST WHAT
  images/wheel.sh "$1"
  [ "$2" = wheel ] || images/deb.sh "$1"
}
status=0
for what in "${@:-deb}"; do
  (umask 022; TZ=UTC LC_ALL=C build "$work/one" "$what")
  sleep 2 # zip files count time in steps of two seconds
  (umask 077; TZ=Asia/Tokyo LC_ALL=C.UTF-8 TMPDIR=$work/tmp build "$work/two" "$what")
done
for file in "$work"/one/*; do
  name=$(basename "$file")
  if cmp -s "$file" "$work/two/$name"; then
    echo "reproducible: $name: both builds are $(sha256sum "$file" | cut -d ' ' -f 1)"
  else
    echo "reproducible: $name: two builds differ; diffoscope shows where" >&2
    [ -z "${KEEP:-}" ] || cp -r "$work/one" "$work/two" "$KEEP"
    status=1
  fi
done
exit $status
