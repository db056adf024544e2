#!/usr/bin/env bash
# Runs this project's orchestrator in the nested machine and checks the results; exit status 0 if everything passes.
#
# run.sh OUT [TEST...]: boots the machine, runs all or the named tests, plays playbooks/host.yml against it, ends it, and checks
# its results. To try something repeatedly without booting: machine.sh up, check, down.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$here/../../.venv/bin/python tests=$here/../../tests/hil
out=$(realpath -m "${1:?where the results go}")
shift
began=$SECONDS
stamped() { while IFS= read -r line; do printf '[%4d s] %s\n' $((SECONDS - began)) "$line"; done; }

[ ! -e "$out/machine" ] || { echo "test-hil: $out/machine: a machine is or was there; $here/machine.sh down $out ends it" >&2; exit 1; }
trap '"$here/machine.sh" down "$out"' EXIT
"$here/machine.sh" up "$out"
status=0
"$here/machine.sh" check "$out" "$@" 2>&1 | tee "$out/checks.log" | stamped || status=1
if [ $# -eq 0 ]; then
  "$python" "$tests/play.py" "$out" 2>&1 | stamped || status=1
fi
"$here/machine.sh" down "$out"
trap - EXIT
if [ $# -eq 0 ]; then
  "$python" "$tests/verify.py" "$out" || status=1
fi
[ $status -eq 0 ] || echo "test-hil: failed; $out holds what the machine wrote" >&2
echo "test-hil: $((SECONDS - began)) s in all"
exit $status
