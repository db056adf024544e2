"""Measures frames a second over a veth pair by size: vNET's generator against trafgen (netsniff-ng), in
turns.

Both send the same frames as fast as they can, from one process each, to vNET's receiver.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from commands import ROOT, as_root, reads, tool

sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agent")]

from agent_launcher import Launcher  # noqa: E402

from orchestrator.lab import namespaces  # noqa: E402

SIZES = (64, 512, 1518)
COUNT, TURNS = 200_000, 5
FCS = 4
SECOND = 10**9


def listen(launcher: Launcher, trial: int) -> str:
    answer = launcher.do("frames", node="b", action="listen", iface="eth0", trial=trial, count=COUNT)
    return str(answer["mac"])


def collect(launcher: Launcher, sent: int) -> dict[str, Any]:
    return launcher.do("frames", node="b", action="collect", sent=sent, wait_ns=SECOND // 2)


def ours(launcher: Launcher, trial: int, size: int) -> tuple[float, float]:
    """Returns vNET's frames a second while it sends, and the share of them for which the receiver had
    room.
    """
    sent = launcher.do(
        "frames", node="a", action="send", iface="eth0", to=listen(launcher, trial), trial=trial, count=COUNT,
        size=size, rate_fps=0.0, longest_ns=60 * SECOND,
    )  # fmt: skip
    got = collect(launcher, sent["sent"])
    return (sent["sent"] - 1) * SECOND / (sent["last_ns"] - sent["first_ns"]), got["received"] / sent["sent"]


def trafgen(launcher: Launcher, trial: int, size: int, directory: Path) -> tuple[float, float]:
    """Returns trafgen's frames a second and the received share; its frames have no stamp, so the receiver
    counts them as corrupted.
    """
    mac = ", ".join(f"0x{byte}" for byte in listen(launcher, trial).split(":"))
    ip = size - FCS - 14
    frame = (
        f"{{ {mac}, 0x02,0,0,0,0,0, c16(0x0800), 0x45,0,c16({ip}),0,0,0,0,10,17,csumip(14, 33), 198,18,0,1, "
        f"198,19,0,1, c16(0xC020), c16(7), c16({ip - 20}), c16(0), fill(0x2a,{size - FCS - 42}) }}\n"
    )
    (directory / "trafgen.cfg").write_text(frame)
    argv = ["ip", "netns", "exec", launcher.netns("a"), tool("trafgen"), "--dev", "eth0", "-Q", "-P", "1"]
    argv += ["-n", str(COUNT), "--conf", str(directory / "trafgen.cfg")]
    said = reads(*argv)
    seconds, micros, packets = map(int, re.findall(r"(\d+) sec, (\d+) usec on CPU\d+ \((\d+)", said)[0])
    return packets / (seconds + micros / 1e6), collect(launcher, 0)["corrupted"] / packets


def rows(launcher: Launcher, directory: Path) -> list[dict[str, Any]]:
    found = []
    for size in SIZES:
        turns = range(1, TURNS + 1)
        pairs = [(ours(launcher, n, size), trafgen(launcher, n, size, directory)) for n in turns]
        mine, peer = (statistics.median(p[i][0] for p in pairs) for i in (0, 1))
        kept, theirs = (statistics.median(p[i][1] for p in pairs) for i in (0, 1))
        against = f"trafgen, {peer:,.0f} frames/s (booked: {kept:.1%} of ours, {theirs:.1%} of its)"
        name = f"frames of {size} B, back to back"
        found.append({"name": name, "value": mine, "unit": "frames/s", "peer": against, "ratio": mine / peer})
    return found


def main() -> None:
    as_root()
    tool("trafgen")
    with tempfile.TemporaryDirectory() as directory:
        launcher = Launcher(Path(directory), f"bench{os.getpid()}")
        try:
            launcher.lab_up(["a", "b"])
            namespaces.bypass_netfilter(launcher.core)  # every lab does this
            json.dump(rows(launcher, Path(directory)), sys.stdout)
        finally:
            launcher.close()


main()
