"""Dissects single packets by pyshark, with every field that tshark knows, and selects the packets that carry
one message of the agent.
"""

from __future__ import annotations

import asyncio
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from capture.errors import CaptureError
from capture.keys import key_file, keys
from capture.packets import ROOT, pcap_of
from contract import rundir

Deep = dict[str, Any]  # {number, time, layers: {layer: {field: value}}}


def dissected(pcap: Path, display_filter: str = "") -> Iterator[Any]:
    """Yields each packet that a Wireshark display filter accepts, as a pyshark object, in order; without a
    filter, all packets. It takes some 3 ms a packet. If the run of this pcap (RUN/pcap/POINT.pcap) has kept
    keys of TLS connections, they decrypt the packets.

    CaptureError if tshark is not installed, refuses the filter, or cannot read the pcap to its end, and if
    keys cannot be read.
    """
    insist(display_filter)
    keys(pcap.parent.parent)
    return _decrypted(pcap, display_filter)


def _decrypted(pcap: Path, display_filter: str) -> Iterator[Any]:
    with key_file(pcap.parent.parent) as file:
        yield from _packets(pcap, display_filter, {"tls.keylog_file": str(file)} if file else {})


def deep(run_dir: Path, point: str, display_filter: str = "", count: int = 0) -> Iterator[Deep]:
    """Yields number, time (as Unix seconds in text) and all fields by layer of the packets of a capture point
    that the filter accepts, `count` at most (0: all). Fields have tshark's names; one that occurs several
    times in a layer is a list.

    Raises the same errors as `dissected`, and CaptureError if the point or its pcap is absent.
    """
    for packet in islice(dissected(pcap_of(run_dir, point), display_filter), count or None):
        yield {
            "number": int(packet.number),
            "time": str(packet.sniff_timestamp),
            "layers": {layer.layer_name: _fields(layer) for layer in packet.layers},
        }


def _fields(layer: Any) -> dict[str, str | list[str]]:
    """Returns the fields of a layer by name. If a packet has several layers of one name, pyshark gives only
    the first.
    """
    found: dict[str, str | list[str]] = {}
    for name in layer.field_names:
        values = [str(field.get_default_value()) for field in layer.get(name).all_fields]
        found[f"{layer.layer_name}.{name}"] = values[0] if len(values) == 1 else values
    return found


def carrying(run_dir: Path, message: str) -> str:
    """Returns the display filter for the packets that carry the header of a message, FLOW:SEQ as in
    messages.parquet: the first sending, retransmissions, copies from a broker, and the reply.

    The header (images/agent/src/payload/bytes.rs) is in packets that TLS does not encrypt, of flows with the
    payload `bytes`. CaptureError for a text of another form, an unknown flow, or another payload.
    """
    name, _, number = message.rpartition(":")
    if not number.isascii() or not number.isdigit() or int(number) >= 1 << 32:
        raise CaptureError(f"--message {message!r}: has no number; write FLOW:SEQ, such as client1.meter:12")
    try:
        flows = rundir.read_plan(run_dir).flows
    except rundir.UnreadableError as error:
        raise CaptureError(f"{run_dir}: {error}; it has to be a run directory with its plan.json") from error
    place = next((n for n, flow in enumerate(flows) if flow.name == name), None)
    if place is None:
        some = ", ".join(flow.name for flow in flows[:5])
        raise CaptureError(f"--message {message!r}: the plan has no flow {name!r}; it has {some or 'none'}")
    if (kind := flows[place].payload.kind) != "bytes":
        raise CaptureError(
            f"--message {message!r}: payloads of kind {kind} have no header with flow and number; select by "
            "--filter 'frame.time_epoch >= T', with the times in messages.parquet"
        )
    header = bytes(3) + struct.pack(">II", place, int(number))
    return f'frame contains "vNET" && frame contains {header.hex(":")}'


def insist(display_filter: str) -> None:
    """Raises CaptureError if tshark refuses the filter, tested with an empty capture, or is not installed.

    pyshark may lose tshark's error, so the filter is tested without pyshark.
    """
    with tempfile.NamedTemporaryFile(suffix=".pcap") as empty:
        empty.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        empty.flush()
        argv = ["tshark", "-n", "-r", empty.name, "-Y", display_filter]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise CaptureError("tshark is not installed; `apt-get install tshark`") from None
    if done.returncode != 0:
        said = [line for line in done.stderr.strip().splitlines() if not line.startswith(ROOT)]
        why = said[0].removeprefix("tshark: ") if said else "it printed no reason"
        raise CaptureError(f"display filter {display_filter!r}: tshark refuses it: {why}")


def _packets(pcap: Path, display_filter: str, preferences: dict[str, str]) -> Iterator[Any]:
    """Yields pyshark's packets from another thread, because pyshark runs an event loop of its own and a
    notebook's thread already has one.

    CaptureError at the end if tshark could not read all of the pcap.
    """
    import pyshark  # type: ignore[import-untyped]  # slow to load, and needed here only

    def begin() -> tuple[Any, Iterator[Any]]:
        asyncio.set_event_loop(asyncio.new_event_loop())
        capture = pyshark.FileCapture(
            str(pcap),
            display_filter=display_filter or None,
            keep_packets=False,
            override_prefs=preferences,
        )
        return capture, iter(capture)

    with ThreadPoolExecutor(1) as worker:
        capture, packets = worker.submit(begin).result()
        ended = False
        try:
            while (packet := worker.submit(next, packets, None).result()) is not None:
                yield packet
            ended = True
        finally:
            failure = worker.submit(_let_go, capture).result()
        if ended and failure:
            raise CaptureError(f"{pcap}: tshark could not read all of it: {failure}")


def _let_go(capture: Any) -> str | None:
    """Closes the capture; returns pyshark's error if tshark failed, else None, also if tshark's exit status
    is lost.
    """
    from pyshark.capture.capture import TSharkCrashException  # type: ignore[import-untyped]

    try:
        capture.close()
    except TSharkCrashException as error:
        # asyncio gives 255 if another waiter (pyshark's transport) reaped the process and its status is lost
        return None if "(retcode: 255)" in str(error) else str(error)
    finally:
        # Without this, pyshark closes the capture again at garbage collection, with a warning.
        capture._running_processes.clear()
        asyncio.get_event_loop().close()
    return None
