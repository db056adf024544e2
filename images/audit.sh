#!/usr/bin/env bash
# audit.sh: looks up known vulnerabilities of the packages that requirements.lock and Cargo.lock pin. Each lock holds (none is known),
# fails (they are named), or cannot be told (the tool or its data are unavailable). Status 1 for a lock that fails; AUDIT=strict
# makes "cannot tell" an error, too.
set -uo pipefail
cd "$(dirname "$0")/.."
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/vnet/audit
PIP_AUDIT=2.10.1 CARGO_AUDIT=0.21.2
status=0
mkdir -p "$CACHE"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
say() { echo "audit: $1: $2"; }
cannot() { # LOCK WHY
  say "$1" "cannot tell: $2"
  [ "${AUDIT:-}" != strict ] || status=1
}

# The registry's answer for each package holds the data.
[ -x "$CACHE/pip/bin/pip-audit" ] || { ${PYTHON:-python3} -m venv "$CACHE/pip" && "$CACHE/pip/bin/pip" install --quiet "pip-audit==$PIP_AUDIT"; } >"$out" 2>&1
if [ ! -x "$CACHE/pip/bin/pip-audit" ]; then
  cannot requirements.lock "pip-audit cannot be installed: $(tail -n 1 "$out")"
elif "$CACHE/pip/bin/pip-audit" --requirement requirements.lock --disable-pip --require-hashes --progress-spinner off >"$out" 2>&1; then
  say requirements.lock "holds: $(tail -n 1 "$out")"
elif grep -q '^Name .*ID' "$out"; then
  say requirements.lock fails
  cat "$out"
  status=1
else
  cannot requirements.lock "pip-audit got no data: $(tail -n 1 "$out" | cut -c 1-200)"
fi

# The data are a Git repository (github.com/rustsec/advisory-db); ADVISORIES names a copy of it.
DATA=https://github.com/rustsec/advisory-db
if [ -z "${ADVISORIES:-}" ] && ! GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote -q "$DATA" HEAD >"$out" 2>&1; then
  cannot Cargo.lock "$DATA cannot be reached; ADVISORIES names a copy"
elif command -v cargo-audit >/dev/null || cargo install --quiet --locked "cargo-audit@$CARGO_AUDIT" >"$out" 2>&1; ! command -v cargo-audit >/dev/null; then
  cannot Cargo.lock "cargo-audit cannot be installed: $(tail -n 1 "$out")"
else
  timeout 300 cargo audit ${ADVISORIES:+--db "$ADVISORIES" --no-fetch} >"$out" 2>&1
  case $? in
    0) say Cargo.lock "holds: none is known in $(grep -c "^name" Cargo.lock) packages" ;;
    *) if grep -q '^ID: *RUSTSEC' "$out"; then say Cargo.lock fails; cat "$out"; status=1
       else cannot Cargo.lock "no advisories: $(grep -i error "$out" | head -n 1 | cut -c 1-200)"; fi ;;
  esac
fi
exit $status
