"""Tests that a packet is recognised at two capture points by its bytes: delays, losses, and packets with
equal bytes.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from capture.errors import CaptureError
from capture.hops import hops


def frame(number: int, source: int = 1, ethertype: bytes = b"\x08\x00") -> bytes:
    header = (
        bytes([0x45, 0])
        + struct.pack(">HHH", 60, number, 0)
        + bytes(4)
        + bytes([10, 0, 0, source, 10, 0, 0, 9])
    )
    return bytes(12) + ethertype + header + bytes(26)


def pcap(path: Path, frames: list[tuple[int, bytes]], magic: int = 0xA1B23C4D, unit: int = 1) -> Path:
    whole = struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 160, 1)
    for at_ns, content in frames:
        seconds, part = divmod(at_ns, 10**9)
        whole += struct.pack("<IIII", seconds, part // unit, len(content), len(content)) + content
    path.write_bytes(whole)
    return path


def test_a_packet_is_found_again_whatever_overtakes_it(tmp_path: Path) -> None:
    one = pcap(tmp_path / "one", [(1000, frame(1)), (2000, frame(2)), (3000, frame(3, source=2))])
    two = pcap(tmp_path / "two", [(2500, frame(2)), (9000, frame(1))])
    found = hops(one, two)
    assert found["t_ns"].to_list() == [1000, 2000, 3000]
    assert found["delay_ns"].to_list() == [8000, 500, None]
    assert found["source"].to_list() == ["10.0.0.1", "10.0.0.1", "10.0.0.2"]
    assert found["wire_bytes"].to_list() == [60, 60, 60]


def test_what_is_sent_twice_or_is_no_ip_is_left_out(tmp_path: Path) -> None:
    arp = frame(5, ethertype=b"\x08\x06")
    one = pcap(tmp_path / "one", [(0, frame(1)), (1, frame(1)), (2, frame(2)), (3, arp)])
    two = pcap(tmp_path / "two", [(7, frame(2)), (9, frame(1))])
    found = hops(one, two)
    assert found["t_ns"].to_list() == [2] and found["delay_ns"].to_list() == [5]


def test_of_a_frame_that_a_link_duplicates_the_first_arrival_counts(tmp_path: Path) -> None:
    one = pcap(tmp_path / "one", [(1, frame(1)), (2, frame(2))])
    two = pcap(tmp_path / "two", [(8, frame(1)), (7, frame(1))])
    assert hops(one, two)["delay_ns"].to_list() == [6, None]


def test_microseconds_and_a_file_that_was_cut_off_are_read(tmp_path: Path) -> None:
    one = pcap(tmp_path / "one", [(5000, frame(1)), (6000, frame(2))], magic=0xA1B2C3D4, unit=1000)
    one.write_bytes(one.read_bytes()[:-10])
    assert hops(one, one)["t_ns"].to_list() == [5000]


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no").write_bytes(b"no capture at all")
    with pytest.raises(CaptureError, match="is no pcap file"):
        hops(tmp_path / "no", tmp_path / "no")
