"""Tests synchrophasors in captures: frames against tshark's, checksums against published ones."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import polars as pl
import pytest
from frames import Frame, ethernet, ipv4, udp, write
from messages import CONFIGURATION, HEADER, PHASORS, SENDING_ON, synphasor
from oracle import need
from test_reducer_apps import ours, segments, types
from test_reducer_crafted import stream

from capture.pcap import reduce_pcap

NAMES = ("DATA", "HEADER", "CFG-1", "CFG-2", "COMMAND", "CFG-3")
CFG_1 = synphasor(2, CONFIGURATION[14:-2])
FRAMES = (CONFIGURATION, PHASORS, SENDING_ON, HEADER, CFG_1, PHASORS)
TYPES = ["CFG-2", "DATA", "COMMAND", "HEADER", "CFG-1", "DATA"]
UDP, TCP = 4713, 4712
MEASURED = 36  # number of data bytes in the example


def changed(frame: bytes, place: int = -5) -> bytes:
    """Returns the frame with one bit flipped."""
    other = bytearray(frame)
    other[place] ^= 4
    return bytes(other)


def tshark(pcap: Path) -> list[list[str]]:
    """Returns the synchrophasor frames that end in each packet, as tshark finds them."""
    need("tshark")
    fields = ("synphasor.frtype", "synphasor.checksum.status")
    argv = [
        "tshark",
        "-n",
        "-r",
        str(pcap),
        "-T",
        "fields",
        *(part for name in fields for part in ("-e", name)),
    ]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [_named(*line.split("\t")) for line in said.splitlines()]


def _named(kinds: str, states: str) -> list[str]:
    pairs = zip(kinds.split(","), states.split(","), strict=True)
    return [NAMES[int(kind, 0)] if int(state, 0) else "BAD_CHECKSUM" for kind, state in pairs if kind]


def datagrams(*payloads: bytes) -> list[Frame]:
    return [Frame(ethernet(ipv4(udp(one, (5000, UDP)), 17))) for one in payloads]


def test_the_frames_are_the_published_ones() -> None:
    """Shows that the test frames have the sizes and checksums that annex D prints, or a program that quotes
    annex D.
    """
    found = [(len(one), one[-2:].hex()) for one in (PHASORS, CONFIGURATION, SENDING_ON, HEADER)]
    assert found == [(52, "d43f"), (454, "d5d1"), (18, "ce00"), (39, "17cc")]


def test_datagrams_agree_with_tshark(tmp_path: Path) -> None:
    pcap = write(tmp_path / "a.pcap", datagrams(*FRAMES, changed(PHASORS), changed(CONFIGURATION, -1)))
    table = ours(pcap, "synphasor")
    assert table["app_types"].to_list() == tshark(pcap)
    assert types(table) == [*TYPES, "BAD_CHECKSUM", "BAD_CHECKSUM"]
    assert table["data_bytes"].sum() == 3 * MEASURED


@pytest.mark.parametrize("most", [2, 7, 90, 1400])
def test_streams_agree_with_tshark(tmp_path: Path, most: int) -> None:
    down = b"".join((CONFIGURATION, PHASORS, changed(PHASORS), PHASORS * 3, CFG_1, changed(HEADER)))
    steps = [(True, SENDING_ON), (False, down), (True, changed(SENDING_ON)), (True, SENDING_ON)]
    pcap = write(tmp_path / "a.pcap", stream(segments(steps, random.Random(most), most), port=TCP))
    table = ours(pcap, "synphasor")
    assert [row or [] for row in table["app_types"].to_list()] == tshark(pcap)
    assert types(table).count("BAD_CHECKSUM") == 3 and table["data_bytes"].sum() == 5 * MEASURED


def test_what_was_not_captured_is_not_checked(tmp_path: Path) -> None:
    frames = datagrams(PHASORS, changed(PHASORS))
    table = ours(write(tmp_path / "a.pcap", [one.cut(80) for one in frames]), "synphasor")
    assert types(table) == ["DATA", "DATA"] and table["app_bytes"].to_list() == [16, 16]


def test_a_size_that_does_not_fit_and_other_protocols(tmp_path: Path) -> None:
    short = PHASORS[:3] + b"\x09" + PHASORS[4:]
    pcap = write(tmp_path / "a.pcap", datagrams(PHASORS[:-1], short, b"\xaa\x71" + PHASORS[2:], b"hello"))
    table = ours(pcap, "synphasor")
    assert table["app_types"].to_list() == [["MALFORMED"], ["MALFORMED"], None, None]


def test_padding_is_data_and_other_ports_are_named(tmp_path: Path) -> None:
    frames = [Frame(ethernet(ipv4(udp(SENDING_ON + bytes(7), (5000, 9000)), 17)))]
    pcap = write(tmp_path / "a.pcap", frames)
    reduce_pcap(pcap, tmp_path / "a.parquet", {"synphasor": (9000,)})
    found = pl.read_parquet(tmp_path / "a.parquet").select("app_bytes", "data_bytes")
    assert found.rows() == [(18, 7)]
