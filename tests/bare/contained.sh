#!/usr/bin/env bash
# contained.sh ARCHIVE: the image file of images/container.sh, unpacked and used as a container runtime's defaults have it: its own user, no
# capability, no network, a filter of system calls, /dev/shm small and noexec (tests/vnet/container.py). Needs root, for namespaces and chroot.
set -euo pipefail
archive=$(realpath "${1:?file of images/container.sh}")
tree=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d /var/tmp/vnet-contained.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

XDG_CACHE_HOME=$work "$tree/.venv/bin/python" - "$archive" "$work" <<'PYTHON'
import json, sys
from pathlib import Path
from orchestrator.images.oci import read, unpacked
image = read(Path(sys.argv[1]))
assert image.settings.argv == ("vnet", "doctor"), image.settings
assert image.settings.user == "vnet", image.settings
unpacked(image).rename(Path(sys.argv[2]) / "root")
Path(sys.argv[2], "env").write_text("".join(f"{key}={value}\n" for key, value in image.settings.env.items()))
PYTHON
mapfile -t environment <"$work/env"

contained() { # COMMAND...
  unshare --mount --pid --net --ipc --uts --fork --kill-child "$tree/.venv/bin/python" "$tree/tests/vnet/container.py" --root "$work/root" \
    env -i HOME=/home/vnet PATH=/usr/sbin:/usr/bin:/sbin:/bin "${environment[@]}" "$@"
}

contained vnet --version
contained vnet doctor | tee "$work/doctor" || [ $? -eq 4 ]
grep -q '✔ virtual time' "$work/doctor"
contained bash -euc '
  test "$(id -un)" = vnet && grep -q "^CapBnd:.*0000000000000000$" /proc/self/status && ! unshare -U true 2>/dev/null
  cd && vnet new --name field --traffic request --clients 3 --network lte
  vnet run field.yaml --time virtual && vnet run field.yaml --kernel uml -p hold=3s --lab live
  test -s results/field/*/report/index.html && test -s results/live/*/report/index.html'
echo "contained: doctor, a run in virtual time and one in real time, with their reports"
