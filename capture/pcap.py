"""Runs the pcap reducer and reads the counts that it prints."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from capture.errors import CaptureError

PROJECT = Path(__file__).resolve().parent.parent
REDUCER = "target/release/vnet-reduce"


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a reduction of one pcap.

    Times are Unix nanoseconds. `cut` states where and why the file ended early; None if it did not. snapped:
    frames captured in part. unknown: frames without a decoded network header. evicted: TCP connections that
    left the full table of connections. app_messages: completed messages of application protocols.
    app_unknown: frames in which an application's stream could not be followed. link_type and snaplen: for a
    pcapng file those of its first interface. unknown_links: the number of frames of each link type (as text)
    that the reducer cannot decode.
    """

    packets: int
    wire_bytes: int
    captured_bytes: int
    snapped: int
    unknown: int
    streams: int
    evicted: int
    retransmissions: int
    app_messages: int
    app_unknown: int
    link_type: int
    snaplen: int
    first_ns: int | None
    last_ns: int | None
    nanosecond: bool
    truncated: bool
    cut: str | None
    unknown_links: dict[str, int]

    def doubts(self) -> list[str]:
        """Returns a sentence for each link type that the reducer cannot decode, with its packet count."""
        return [
            f"{count} packets of link type {kind} have rows without addresses: that link is not known here."
            for kind, count in self.unknown_links.items()
        ]


def reducer() -> Path:
    """Returns the path of vnet-reduce: $VNET_REDUCE, else the one installed with the package, else the
    project's release build, else the one on the PATH. CaptureError if no such program exists, or if
    $VNET_REDUCE does not name a program.
    """
    chosen = os.environ.get("VNET_REDUCE")
    if chosen:
        if not (Path(chosen).is_file() and os.access(chosen, os.X_OK)):
            raise CaptureError(
                f"VNET_REDUCE={chosen}: vnet-reduce is not there; unset it, or run `make setup` in {PROJECT}"
            )
        return Path(chosen)
    built = PROJECT / REDUCER
    # the reducer of an installed package, or that of a checkout
    for place in (PROJECT / "vnet" / "_carried" / REDUCER, built):
        if place.exists():
            return place
    found = shutil.which("vnet-reduce")
    if found is None:
        raise CaptureError(
            f"vnet-reduce: {built} does not exist; run `make setup`, or `cargo build --release -p "
            f"vnet-reduce`, in {PROJECT}"
        )
    return Path(found)


NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_APPS: Mapping[str, tuple[int, ...]] = {}


def reduce_pcap(
    pcap: Path,
    table: Path,
    apps: Mapping[str, tuple[int, ...]] = NO_APPS,
    connections: Path | None = None,
) -> Counts:
    """Reduces `pcap` (or pcapng) to the Parquet file `table` (docs/contracts/packets.md names the columns).

    apps: ports by application protocol, in place of the protocol's usual ones. connections: path for a
    table of TCP connections, or None. CaptureError if the capture is unreadable, a protocol is unknown or
    a table cannot be written; then no table is left. OSError that names the table if its disk is full,
    since the capture is then not at fault.
    """
    named = (f"{name}={','.join(map(str, ports))}" for name, ports in apps.items() if ports)
    options = [part for one in named for part in ("--app", one)]
    options += [] if connections is None else ["--connections", str(connections)]
    done = subprocess.run(
        [reducer(), str(pcap), str(table), *options], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (
            done.stderr.strip().removeprefix("vnet-reduce: ")
            or f"{pcap}: vnet-reduce ended with {done.returncode}"
        )
        if (number := re.search(r"\(os error (\d+)\)", said)) and int(number[1]) in NO_ROOM:
            place = said.partition(": ")[0]
            place = place if place.startswith("/") else str(table)
            raise OSError(int(number[1]), os.strerror(int(number[1])), place)
        raise CaptureError(said)
    told = json.loads(done.stdout)
    return Counts(**{field.name: told[field.name] for field in fields(Counts)})
