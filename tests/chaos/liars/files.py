"""Changes the files of a run directory for liars: lines, columns, packets, documents."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Fields = list[str]
MESSAGES, NODES, LINKS = "raw/messages.csv", "raw/nodes.csv", "raw/links.csv"
MS, SECOND = 1_000_000, 1_000_000_000
# Columns, as docs/contracts/run-directory.md and records.md have them.
NODE_CSV = "t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes"
LINK_CSV = "t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets"
HOST_CSV = "t_ns,user,nice,system,idle,iowait,irq,softirq,steal,load,memory,cores"


def _places(header: str) -> dict[str, int]:
    return {name: at for at, name in enumerate(header.split(","))}


NODE, LINK, HOST = _places(NODE_CSV), _places(LINK_CSV), _places(HOST_CSV)
SENT = _places("kind,flow,seq,bytes,scheduled,sent,settled,attempts,outcome")
CAME = _places("kind,flow,seq,receiver,leg,at,copy")
MOVED = _places("kind,flow,endpoint,leg,t_ns,bytes,packets,lost,retransmits,rtt")


def lines(run: Path, name: str, change: Callable[[list[str]], Iterable[str]]) -> None:
    """Replaces the lines of a file by those that `change` returns."""
    path = run / name
    path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))


def rows(run: Path, name: str, change: Callable[[Fields], Fields | None]) -> None:
    """Replaces the fields of each line by those that `change` returns, or drops the line (None); a header
    stays.
    """

    def changed(all_of: list[str]) -> Iterator[str]:
        for line in all_of:
            new = (
                line.split(",")
                if line.startswith("t_ns,") or line == "node,counter,value"
                else change(line.split(","))
            )
            if new is not None:
                yield ",".join(new)

    lines(run, name, changed)


def counted(every: int) -> Callable[[], bool]:
    """Returns a function that returns True at each `every`th call."""
    at = iter(range(1, 1 << 40))
    return lambda: next(at) % every == 0


def flow(run: Path, sender: str) -> str:
    """Returns the number of the only flow that `sender` sends, as text."""
    flows = json.loads((run / "plan.json").read_text())["flows"]
    (number,) = (str(n) for n, one in enumerate(flows) if one["sender"] == sender)
    return number


def document(run: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Changes a JSON document in place."""
    path = run / name
    whole = json.loads(path.read_text())
    change(whole)
    path.write_text(json.dumps(whole, indent=1) + "\n")


@dataclass(frozen=True)
class Packet:
    """A packet of a pcap file: its time, its size on the wire, and its captured bytes."""

    seconds: int
    parts: int
    wire: int
    data: bytes

    def later(self, by_ns: int) -> Packet:
        whole = self.seconds * SECOND + self.parts + by_ns
        return replace(self, seconds=whole // SECOND, parts=whole % SECOND)


def pcap(run: Path, point: str, change: Callable[[list[Packet]], Iterable[Packet]]) -> None:
    """Replaces the packets of a capture by those that `change` returns; keeps the file's byte order."""
    path = run / "pcap" / f"{point}.pcap"
    whole = path.read_bytes()
    order = "<" if whole[:4] in (b"\x4d\x3c\xb2\xa1", b"\xd4\xc3\xb2\xa1") else ">"
    head = struct.Struct(f"{order}IIII")
    found, at = [], 24
    while at + 16 <= len(whole):
        seconds, parts, size, wire = head.unpack_from(whole, at)
        found.append(Packet(seconds, parts, wire, whole[at + 16 : at + 16 + size]))
        at += 16 + size
    out = [whole[:24]]
    for one in change(found):
        out += [head.pack(one.seconds, one.parts, len(one.data), one.wire), one.data]
    path.write_bytes(b"".join(out))
