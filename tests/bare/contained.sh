#!/usr/bin/env bash
# contained.sh ARCHIVE: tests the image file of images/container.sh in podman with fewer rights than the runtime's defaults: no capability,
# no new privileges, no network. Writes a first topology, runs it in real and virtual time, and tests the pytest plugin. Needs root (podman's store).
set -euo pipefail
archive=$(realpath "${1:?file of images/container.sh}")
tree=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d /var/tmp/vnet-contained.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

podman=(podman --storage-driver vfs --root "$work/store" --runroot "$work/run" --cgroup-manager cgroupfs --runtime runc)
limits=(--ulimit nofile=1024:4096 --ulimit nproc=1024:1024) # podman's own would raise this machine's, which needs leave
contained() { "${podman[@]}" run --rm --network none --cap-drop all --security-opt no-new-privileges "${limits[@]}" "$@"; }

image=$("${podman[@]}" load --quiet --input "$archive" | sed 's/^Loaded image: *//')
contained "$image" --version
contained "$image" | tee "$work/doctor" || [ $? -eq 4 ]
grep -q '✔ virtual time' "$work/doctor"
contained --entrypoint bash "$image" -euc '
  test "$(id -un)" = vnet && grep -q "^CapBnd:.*0000000000000000$" /proc/self/status && grep -q "^Seccomp:.*2$" /proc/self/status
  vnet new --name field --traffic request --clients 3 --network lte
  vnet run field.yaml --time virtual && vnet run field.yaml --kernel uml -p hold=3s --lab live
  test -s results/field/*/report/index.html && test -s results/live/*/report/index.html'
mkdir "$work/here" && cp "$tree/topologies/pair.yaml" "$work/here/"
contained --user root --volume "$work/here:/w" --workdir /w "$image" run pair.yaml --time virtual
test -s "$work"/here/results/pair/*/report/index.html
contained --volume "$tree:$tree:ro" --env "PYTHONPATH=$tree" --entrypoint "$tree/.venv/bin/python" "$image" \
  -m pytest -p no:cacheprovider --rootdir /tmp -c /dev/null -k "not more_is_allowed" "$tree/tests/vnet/labs_in_a_container.py"
echo "contained: doctor, runs in virtual and in real time with their reports, the pytest plugin"
