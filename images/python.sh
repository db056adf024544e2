#!/usr/bin/env bash
# Prints the interpreter for the virtual environment: Python 3.11 or newer, Debian's own first (every user can read it).
set -euo pipefail
for python in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
  command -v "$python" >/dev/null || continue
  if "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "$python"
    exit 0
  fi
done
echo "setup: no Python 3.11 or newer with venv; install python3 and python3-venv" >&2
exit 1
