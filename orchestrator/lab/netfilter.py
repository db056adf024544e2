"""Makes bridged frames bypass netfilter: br_netfilter, if loaded, passes every frame of a bridge to iptables,
in each network namespace unless disabled (net.bridge.bridge-nf-call-*, one set per namespace).
"""

from __future__ import annotations

import subprocess

from orchestrator.lab.errors import LabError
from orchestrator.lab.readback import Difference, insist

# /proc/sys/net shows the namespace of the process that opens it, so a shell in the namespace opens it.
_SCRIPT = """
for name in iptables ip6tables arptables; do
    file=/proc/sys/net/bridge/bridge-nf-call-$name
    [ ! -e $file ] || { echo 0 >$file && echo $name $(cat $file); } || exit 1
done
"""


def bypass(netns: str) -> dict[str, int]:
    """Disables netfilter for the namespace's bridges; returns the values read back, {} without br_netfilter.
    Raises LabError if the kernel refuses or the read-back differs, since a firewall could drop the lab's
    frames.
    """
    done = subprocess.run(
        ["nsenter", f"--net=/run/netns/{netns}", "sh", "-c", _SCRIPT],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise LabError(
            f"{netns}: net.bridge.bridge-nf-call-*: cannot be set to 0 ({done.stderr.strip()}); unload "
            "br_netfilter, or mount /proc/sys so that it can be written"
        )
    read = {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}
    place = f"{netns}.net.bridge.bridge-nf-call"
    insist([Difference(f"{place}-{name}", 0, value) for name, value in read.items() if value])
    return read
