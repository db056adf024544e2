"""Runs commands inside machines: makes the bridges of bridge VMs, and sets, reads back and samples their
qdiscs with their own `tc`.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contract.plan import Link, Step
from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Exec
from orchestrator.lab.vm.guest import Guest

# Uses iproute2's tc: busybox has one without netem, which may come first in the PATH.
TOOLS = {"tc": "/sbin/tc", "ip": "/sbin/ip"}
PATIENCE_NS = 30 * SECOND
LINKS_HEADER = "t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets\n"
# The bridge only forwards, and passes the link proof's frames (01:80:C2:00:00:0E, bit 14).
BRIDGE = """
set -e
for device in eth0 eth1; do
    echo 1 > /proc/sys/net/ipv6/conf/$device/disable_ipv6 2>/dev/null || true
done
/sbin/ip link add name br0 type bridge stp_state 0 mcast_snooping 0 forward_delay 0 group_fwd_mask 16384
echo 1 > /proc/sys/net/ipv6/conf/br0/disable_ipv6 2>/dev/null || true
/sbin/ip link set dev eth0 master br0
/sbin/ip link set dev eth1 master br0
/sbin/ip link set dev br0 up
"""


def run(loop: Loop, guest: Guest, argv: Sequence[str]) -> tuple[int, str, str]:
    """Runs a command on a machine and waits for its end; returns its status, output and errors. Raises
    LabError if it cannot be run or the machine ends, TimedOut after 30 s.
    """
    answers: list[tuple[Message, str, str]] = []
    if not guest.ready:
        raise LabError(guest.unfit(argv[0]))
    submit(guest, argv, lambda *ended: answers.append(ended))
    subject = f"nodes.{guest.name}: {' '.join(argv)[:60]}"
    loop.until(loop.clock.now_ns() + PATIENCE_NS, subject, lambda: bool(answers) or not guest.ready)
    if not answers:
        raise LabError(guest.unfit(argv[0]))
    answer, out, errors = answers[0]
    if not answer.get("ok"):
        raise LabError(f"{subject}: {answer.get('error')}")
    return int(answer["status"]), out, errors


def submit(guest: Guest, argv: Sequence[str], on_end: Callable[[Message, str, str], None]) -> None:
    """Sends a command to a machine without waiting; `on_end` receives the answer, the output and the errors.
    Raises LabError if the machine does not run.
    """
    said: dict[str, list[bytes]] = {"stdout": [], "stderr": []}

    def event(message: Message) -> None:
        if message.get("event") == "output":
            said.setdefault(str(message.get("stream")), []).append(base64.b64decode(message["data"]))

    def ended(answer: Message) -> None:
        on_end(answer, *(b"".join(said[s]).decode(errors="replace") for s in ("stdout", "stderr")))

    if guest.channel is None:
        raise LabError(f"nodes.{guest.name}: {argv[0]}: it is not running")
    guest.channel.submit(Exec(guest.name, list(argv), {}, None), ended, event)


def step(loop: Loop, guest: Guest, wanted: Step) -> None:
    """Runs a step's tool in batch mode inside the machine with the step's text; raises LabError if the tool
    fails or prints an error.
    """
    shell = f'printf %s "$0" | {TOOLS[wanted.tool]} -batch -'
    status, _, errors = run(loop, guest, ["/bin/sh", "-c", shell, wanted.text])
    if status != 0 or errors.strip():
        raise LabError(f"{wanted.tool} in nodes.{guest.name}: {wanted.reason}: {errors.strip() or status}")


def entries(loop: Loop, guest: Guest, tool: str, *arguments: str) -> list[dict[str, Any]]:
    """Returns the entries of `TOOL -j ARGUMENTS` inside the machine, without empty ones; raises LabError if
    the tool fails.
    """
    status, out, errors = run(loop, guest, [TOOLS[tool], "-j", *arguments])
    if status != 0:
        raise LabError(f"{tool} {' '.join(arguments)} in nodes.{guest.name}: {errors.strip()}")
    return [entry for entry in json.loads(out or "[]") if entry]


def bridge(loop: Loop, guest: Guest) -> None:
    """Joins the two interfaces of a bridge VM with a bridge that also forwards link-proof frames and sends
    nothing itself; raises LabError if that fails.
    """
    status, _, errors = run(loop, guest, ["/bin/sh", "-c", BRIDGE])
    if status != 0:
        raise LabError(f"nodes.{guest.name}: its bridge: {errors.strip()}")


def link_rows(now_ns: int, links: Sequence[Link], netns: str, said: str) -> str:
    """Returns rows of raw/links.vm.csv for the directions that the bridge VM of namespace `netns` carries,
    made from its `tc -s -j qdisc show`; directions without a root qdisc are left out.
    """
    roots = {q["dev"]: q for q in json.loads(said or "[]") if q.get("root")}
    rows = []
    for link in links:
        for name, way in (("forward", link.forward), ("reverse", link.reverse)):
            q = roots.get(way.device, {}) if way.netns == netns else {}
            if q:
                counts = ",".join(
                    str(q.get(k, 0)) for k in ("bytes", "packets", "drops", "overlimits", "backlog", "qlen")
                )
                rows.append(f"{now_ns},{link.name},{name},{counts}\n")
    return "".join(rows)


class LinkSampler:
    """Reads the qdiscs' counters of every ready bridge VM once a second into the file `path`, until
    `stop`.
    """

    def __init__(
        self, loop: Loop, path: Path, guests: Callable[[], list[Guest]], links: Callable[[], Sequence[Link]]
    ) -> None:
        self._loop, self._path, self._guests, self._links = loop, path, guests, links
        if not path.exists():
            path.write_text(LINKS_HEADER)
        self._timer = loop.every(SECOND, self._ask)

    def stop(self) -> None:
        self._timer.cancelled = True

    def _ask(self) -> None:
        for guest in self._guests():
            if guest.ready:
                with contextlib.suppress(LabError):  # the machine has just ended, which its channel reports
                    submit(guest, [TOOLS["tc"], "-s", "-j", "qdisc", "show"], self._taker(guest))

    def _taker(self, guest: Guest) -> Callable[[Message, str, str], None]:
        def take(answer: Message, out: str, _: str) -> None:
            if answer.get("ok") and answer.get("status") == 0:
                with self._path.open("a") as file:
                    file.write(link_rows(self._loop.clock.now_ns(), self._links(), guest.node.netns, out))

        return take
