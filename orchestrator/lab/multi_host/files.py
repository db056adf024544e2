"""Copies a part's files into the lab's run directory and converts their times to the lab's clock."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from orchestrator.lab.clock import SECOND
from orchestrator.lab.vm.records import Fetched, appender

CHUNK_BYTES = 1 << 20
# The files of raw/ whose first column is t_ns.
SAMPLES = ("nodes.csv", "links.csv", "classes.csv", "nodes.vm.csv", "links.vm.csv")
MESSAGES = "raw/messages.csv"
HOST = "raw/host.csv"
PCAP_HEAD, RECORD_HEAD = 24, 16
NANOSECONDS, MICROSECONDS = 0xA1B23C4D, 0xA1B2C3D4  # magic numbers of pcap
ToLab = Callable[[int], int]


class Rows:
    """Appends complete rows of a table whose first column is a time, on the lab's clock; writes the header
    only into an empty file.
    """

    def __init__(self, path: Path, to_lab: ToLab) -> None:
        self._path, self._to_lab = path, to_lab
        self._partial = b""
        self._begun = False

    def take(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        text = "".join(self._row(line.decode()) for line in lines if line)
        if text:
            with self._path.open("a") as out:
                out.write(text)

    def _row(self, line: str) -> str:
        if not self._begun:
            self._begun = True
            return "" if self._path.exists() and self._path.stat().st_size else f"{line}\n"
        time, _, rest = line.partition(",")
        return f"{self._to_lab(int(time))},{rest}\n"


class Packets:
    """Writes a pcap file with each packet's time on the lab's clock; `take` raises ValueError if the data
    is no pcap. Format: pcap-savefile(5).
    """

    def __init__(self, path: Path, to_lab: ToLab) -> None:
        self._to_lab = to_lab
        self._rest = b""
        self._order, self._unit_ns = "", 1
        self._out = path.open("wb")

    def take(self, data: bytes) -> None:
        self._rest += data
        if not self._order:
            if len(self._rest) < PCAP_HEAD:
                return
            self._begin()
        place, done = 0, list[bytes]()
        while len(self._rest) - place >= RECORD_HEAD:
            seconds, part, kept, whole = struct.unpack_from(f"{self._order}IIII", self._rest, place)
            end = place + RECORD_HEAD + kept
            if end > len(self._rest):
                break
            seconds, ns = divmod(self._to_lab(seconds * SECOND + part * self._unit_ns), SECOND)
            done.append(struct.pack(f"{self._order}IIII", seconds, ns // self._unit_ns, kept, whole))
            done.append(self._rest[place + RECORD_HEAD : end])
            place = end
        self._rest = self._rest[place:]
        self._out.write(b"".join(done))

    def close(self) -> None:
        """Closes the file; writes an incomplete last record as it is, which the reader of the
        file reports.
        """
        self._out.write(self._rest)
        self._out.close()

    def _begin(self) -> None:
        for order in "<>":
            magic = struct.unpack_from(f"{order}I", self._rest)[0]
            if magic in (NANOSECONDS, MICROSECONDS):
                self._order, self._unit_ns = order, 1 if magic == NANOSECONDS else 1000
                self._out.write(self._rest[:PCAP_HEAD])
                self._rest = self._rest[PCAP_HEAD:]
                return
        raise ValueError(f"not a pcap: {self._rest[:4].hex()}")


def fetched(path: str, take: Callable[[bytes], None]) -> Fetched:
    """Returns a function that fetches a remote file in parts of CHUNK_BYTES, a size for networks."""
    return Fetched(path, take, CHUNK_BYTES)


def taker(run_dir: Path, name: str, host: str, to_lab: ToLab) -> Callable[[bytes], None]:
    """Returns the function that stores a file of a host's run directory. Rows of samples are appended to the
    lab's file of that name, and the machine's samples to raw/host.HOST.csv, both with times on the lab's
    clock. Logs are appended to the file of the same name, and any other file to raw/hosts/HOST.
    """
    top, _, last = name.rpartition("/")
    if top == "raw" and last in SAMPLES:
        return Rows(run_dir / name, to_lab).take
    if name == HOST:
        return Rows(run_dir / "raw" / f"host.{host}.csv", to_lab).take
    if top == "raw/logs":
        return appender(run_dir / name)
    place = run_dir / "raw" / "hosts" / host / last
    return appender(place)
