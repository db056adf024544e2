"""Writes a run directory by hand whose counts agree: ten datagrams a second from a to b over a link."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frames import Frame, ethernet, ipv4, udp, write
from rundirs import T0, S, flow, guarantee, node, plan, received, run_dir, sent

from capture.reduce import reduce_run
from contract import manifest

SIZE, HEADERS, SECONDS, RATE = 100, 42, 5, 10
FRAME = SIZE + HEADERS
ZERO = {"impairment": {}, "shared": None}


@dataclass
class Counts:
    """The counts of a run, which a test changes before `written` writes them: samples of nodes and links as
    (name, time in s) -> counters, captured packets, and message records.
    """

    nodes: dict[tuple[str, int], list[int]]  # cpu_ns, rx_bytes, rx_packets, tx_bytes, tx_packets, memory
    # (name, second) -> the link's bytes, packets, dropped, overlimits, backlog bytes, packets
    links: dict[tuple[str, int], list[int]]
    arrived: list[int] = field(default_factory=list)  # numbers of the messages that arrived
    captured: list[int] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)
    received: int = RATE * SECONDS  # packets that the kernel's filter passed to the capture
    processes_ns: dict[str, int] = field(default_factory=lambda: {"a": 40_000, "b": 90_000})
    forwarded: int = 0
    # message number -> the seconds by which it was captured too late
    captured_late: dict[int, float] = field(default_factory=dict)


def agreeing() -> Counts:
    nodes, links = {}, {}
    for second in range(SECONDS + 1):
        n = RATE * second
        nodes["a", second] = [n * 1000, 0, 0, n * FRAME, n, 1 << 20]
        nodes["b", second] = [n * 2000, n * FRAME, n, 0, 0, 1 << 20]
        links["forward", second] = [n * FRAME, n, 0, 0, 0, 0]
        links["reverse", second] = [0, 0, 0, 0, 0, 0]
    every = list(range(RATE * SECONDS))
    return Counts(nodes, links, every, list(every), {"scheduled": len(every), "received": len(every)})


def of_plan(wanted: str = "") -> dict[str, Any]:
    """Returns a plan: a and b on segment lan, a's link to lan, and a capture at b's port with the filter
    `wanted`.
    """
    ends = {name: node(name, listens=name == "b") for name in ("a", "b")}
    for name, end in ends.items():
        card = {"name": "eth0", "port": name, "segment": "lan", "mac": "", "address": ""}
        end |= {"kind": "light", "netns": f"lab.{name}", "interfaces": [card]}
    way = {"forward": ("lab.a", "eth0", "lab", "a"), "reverse": ("lab", "a", "lab.a", "eth0")}
    names = ("netns", "device", "far_netns", "far_device")
    link = {name: ZERO | dict(zip(names, of, strict=True)) for name, of in way.items()}
    capture = {"name": "b", "at": "node b", "filter": wanted, "keep": True}
    datagrams = flow("a", ("b", guarantee(lossless=False, single=False)), pattern="push")
    made = plan(list(ends.values()), [datagrams], {"b": ["b"]}, [capture])
    made["links"] = [{"name": "access", "kind": "access", "a": "a", "b": "lan", **link}]
    return made | {"segments": [{"name": "lan"}], "events": []}


def written(path: Path, counts: Counts, time: str = "virtual", wanted: str = "", **manifest: Any) -> Path:
    """Writes the run directory as it is before its reduction, and returns its path."""
    run = run_dir(path / "run", of_plan(wanted))
    raw = run / "raw"
    lines = [sent(0, n, at(n), "sent") for n in range(RATE * SECONDS)]
    lines += [received(0, n, "b", at(n) + 0.001) for n in counts.arrived]
    (raw / "messages.csv").write_text("".join(lines))
    of = lambda values: ",".join(map(str, values))  # noqa: E731
    (raw / "nodes.csv").write_text(
        "".join(f"{T0 + second * S},{name},{of(row)}\n" for (name, second), row in counts.nodes.items())
    )
    (raw / "links.csv").write_text(
        "".join(f"{T0 + second * S},access,{way},{of(row)}\n" for (way, second), row in counts.links.items())
    )
    ends = {name: counts.nodes[name, SECONDS][0] for name in ("a", "b")}
    (raw / "cpu.csv").write_text(
        "".join(f"{T0 + SECONDS * S},{n},{ns},{counts.processes_ns[n]}\n" for n, ns in ends.items())
    )
    (raw / "stacks.csv").write_text(f"a,IpForwDatagrams,{counts.forwarded}\n")
    # Two cores, which idle.
    rows = [f"{T0 + at * S},0,0,0,{2 * at * S},0,0,0,0,0.1,1000000,2\n" for at in range(SECONDS + 1)]
    (raw / "host.csv").write_text("".join(rows))
    write(run / "pcap" / "b.pcap", [frame(n, counts.captured_late.get(n, 0.0)) for n in counts.captured])
    said = {"packets": len(counts.captured), "received": counts.received}
    said |= {"dropped_kernel": 0, "dropped_interface": 0}
    phases = {"hold": [T0, T0 + SECONDS * S], "drain": [T0 + SECONDS * S, T0 + SECONDS * S]}
    whole = {"state": "complete", "warnings": [], "time": time, "phases": phases, "t0_ns": T0}
    whole |= {"captures": {"b": said}, "totals": counts.totals} | manifest
    (run / "manifest.json").write_text(json.dumps(whole))
    return run


def frame(number: int, late: float) -> Frame:
    """Returns the frame of a message, with the header of the agent's payload; it is captured `late` seconds
    after the message was due.
    """
    due = T0 + round(at(number) * S)
    header = b"vNET" + struct.pack(">BxxxIIqI", 2, 0, number, due, 0)
    return Frame(ethernet(ipv4(udp(header.ljust(SIZE, b"\0")), 17)), due + round(late * S))


def at(number: int) -> float:
    """Returns the time in s at which a message is sent and its frame captured, halfway between two
    samples.
    """
    return (number + 0.5) / RATE


def checked(run: Path) -> dict[str, dict[str, Any]]:
    """Returns the checks of the run's manifest by name, after a reduction."""
    reduce_run(run)
    return {check["name"]: check for check in json.loads((run / "manifest.json").read_text())["checks"]}


def absent(run: Path) -> dict[str, str]:
    """Returns the reasons of the checks that do not apply, by name."""
    return {one["name"]: one["text"] for one in manifest.read(run)["inapplicable"]}
