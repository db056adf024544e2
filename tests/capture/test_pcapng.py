"""Compares the reading of pcapng files with tshark's (sections, byte orders, interfaces, resolutions,
blocks), and tests damaged files.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
from pathlib import Path

import polars as pl
import pytest
from frames import START_NS, Frame, ethernet, ipv4, tcp, udp, write
from oracle import assert_agree, need, reduced
from test_reducer_random import mixed

from capture.errors import CaptureError
from capture.pcap import reduce_pcap

DATA = ethernet(ipv4(udp(b"hello"), 17))


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark", "editcap", "mergecap")


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<", major: int = 1) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, major, 0, -1))


def interface(
    order: str = "<",
    link: int = 1,
    snaplen: int = 0,
    resolution: int | None = None,
    offset: int | None = None,
) -> bytes:
    options = option(order, 2, b"eth0")
    options += b"" if resolution is None else option(order, 9, bytes([resolution]))
    options += b"" if offset is None else option(order, 14, struct.pack(order + "q", offset))
    return block(order, 1, struct.pack(order + "HHI", link, 0, snaplen) + options + bytes(4))


def enhanced(
    order: str = "<", data: bytes = DATA, number: int = 0, units: int = 5, wire: int | None = None
) -> bytes:
    lengths = (len(data), len(data) if wire is None else wire)
    head = struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, *lengths)
    comment = option(order, 1, b"a remark")
    return block(order, 6, head + data + bytes(-len(data) % 4) + comment + bytes(4))


def obsolete(order: str, data: bytes, number: int, units: int) -> bytes:
    head = struct.pack(order + "HHIIII", number, 0, units >> 32, units & 0xFFFFFFFF, len(data), len(data))
    return block(order, 2, head + data)


def simple(order: str, data: bytes, wire: int) -> bytes:
    return block(order, 3, struct.pack(order + "I", wire) + data)


def names(order: str) -> bytes:
    """Returns blocks that hold no packets: names, statistics, secrets, and a block of an unknown type."""
    sizes = {4: 4, 5: 12, 10: 8, 0x7777: 20}
    return b"".join(block(order, kind, bytes(size)) for kind, size in sizes.items())


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolution", [None, 0, 3, 6, 7, 9, 10, 0x80 | 10, 0x80 | 20, 0x80 | 30])
def test_timestamp_resolutions(tmp_path: Path, order: str, resolution: int | None) -> None:
    exponent = 6 if resolution is None else resolution & 0x7F
    unit = (2 if (resolution or 0) & 0x80 else 10) ** exponent
    data = section(order) + interface(order, resolution=resolution)
    data += b"".join(enhanced(order, units=1_700_000_000 * unit + n * (unit // 3 + 1)) for n in range(4))
    (tmp_path / "a.pcapng").write_bytes(data)
    _, counts = assert_agree(tmp_path / "a.pcapng", tmp_path / "a.parquet")
    assert counts.packets == 4 and counts.nanosecond is (unit > 10**6) and not counts.truncated


@pytest.mark.parametrize("offset", [0, 3600, -86_400, 1_000_000_000])
@pytest.mark.parametrize("order", ["<", ">"])
def test_timestamp_offsets(tmp_path: Path, order: str, offset: int) -> None:
    data = section(order) + interface(order, resolution=9, offset=offset) + enhanced(order, units=10**15 + 7)
    (tmp_path / "a.pcapng").write_bytes(data)
    rows, _ = reduced(tmp_path / "a.pcapng", tmp_path / "a.parquet")
    assert rows[0]["t_ns"] == 10**15 + 7 + offset * 10**9
    assert_agree(tmp_path / "a.pcapng", tmp_path / "a.parquet")


def test_interfaces_sections_and_every_kind_of_block(tmp_path: Path) -> None:
    raw, now = DATA[14:], 1_700_000_000_000_000
    data = b""
    for order in "<>":
        data += section(order) + interface(order) + names(order)
        data += interface(order, 101, resolution=9) + interface(order, 147)
        data += enhanced(order, units=now) + enhanced(order, raw, 1, now * 1000) + names(order)
        data += obsolete(order, DATA, 0, now) + enhanced(order, b"?" * 9, 2, now)
        data += enhanced(order, DATA[:36], 0, now, len(DATA))
    (tmp_path / "a.pcapng").write_bytes(data)
    rows, counts = assert_agree(tmp_path / "a.pcapng", tmp_path / "a.parquet")
    assert len(rows) == 10 and counts.unknown_links == {"147": 2} and counts.link_type == 1
    assert [row["src"] for row in rows] == (["10.0.0.1"] * 3 + [None, "10.0.0.1"]) * 2
    assert not counts.nanosecond and counts.cut is None


@pytest.mark.parametrize("order", ["<", ">"])
def test_simple_packets_have_no_time_and_are_cut_by_the_snaplen(tmp_path: Path, order: str) -> None:
    data = section(order) + interface(order, snaplen=44) + simple(order, DATA[:44], len(DATA))
    (tmp_path / "a.pcapng").write_bytes(data + simple(order, DATA[:40], 40))
    table = tmp_path / "a.parquet"
    rows, counts = reduced(tmp_path / "a.pcapng", table)
    assert [(row["t_ns"], row["captured_bytes"], row["wire_bytes"]) for row in rows] == [
        (0, 44, 47),
        (0, 40, 40),
    ]
    assert counts.snaplen == 44 and rows[0]["src"] == "10.0.0.1"


@pytest.mark.parametrize(("size", "text"), [(24, "24 bytes"), (20, "byte order"), (40, "pcapng version 2")])
def test_damaged_beginnings(tmp_path: Path, size: int, text: str) -> None:
    """Shows that a file that is too short is refused, and that one with later damage keeps the packets before
    it.
    """
    whole = section(major=2) + interface()
    data = {24: whole[:23], 20: whole[:8] + bytes(4) + whole[12:], 40: whole}[size]
    (tmp_path / "a.pcapng").write_bytes(data)
    if size == 24:
        with pytest.raises(CaptureError, match="23 bytes"):
            reduce_pcap(tmp_path / "a.pcapng", tmp_path / "a.parquet")
        return
    counts = reduce_pcap(tmp_path / "a.pcapng", tmp_path / "a.parquet")
    assert counts.packets == 0 and text in str(counts.cut)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (enhanced()[:7], "ends inside a block's header"),
        (enhanced()[:-1], "ends inside a block"),
        (enhanced()[:-4] + bytes(4), "ends as one of 0"),
        (struct.pack("<II", 6, 0xFFFFFF0), "claims 268435440 bytes in one block"),
        (struct.pack("<II", 6, 13) + bytes(9), "claims 13 bytes"),
        (struct.pack("<II", 6, 0) + bytes(9), "claims 0 bytes"),
        (enhanced(number=1), "interface 1 where 1 are declared"),
        (
            block("<", 6, struct.pack("<IIIII", 0, 0, 5, 99, 99) + bytes(8)),
            "a packet of 99 bytes in a block of 40",
        ),
        (block("<", 6, bytes(8)), "block of type 6 of 20 bytes"),
        (block("<", 1, bytes(8) + struct.pack("<HH", 9, 700)), "whose options exceed it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "bytes",
)
def test_damage_ends_the_table_there(tmp_path: Path, bad: bytes, text: str) -> None:
    good = section() + interface() + enhanced() + enhanced()
    (tmp_path / "a.pcapng").write_bytes(good + bad + b"\0" * 12)
    if text.startswith("ends"):
        (tmp_path / "a.pcapng").write_bytes(good + bad)
    counts = reduce_pcap(tmp_path / "a.pcapng", tmp_path / "a.parquet")
    assert counts.packets == 2 and counts.truncated and text in str(counts.cut)
    assert f"record 3 at byte {len(good)}" in str(counts.cut)


def test_files_that_wireshark_wrote(tmp_path: Path) -> None:
    frames = mixed(200)
    source = write(tmp_path / "source.pcap", frames)
    raw = write(
        tmp_path / "raw.pcap",
        [Frame(f.data[14:], f.t_ns) for f in frames if f.data[12:14] == b"\x08\0"],
        link=101,
    )
    merged = tmp_path / "merged.pcapng"
    subprocess.run(["mergecap", "-w", merged, source, raw], check=True)
    for options in ([], ["-s", "60"], ["-t", "0.5"]):
        subprocess.run(["editcap", *options, merged, tmp_path / "b.pcapng"], check=True)
        assert_agree(tmp_path / "b.pcapng", tmp_path / "a.parquet")
    subprocess.run(["editcap", "-F", "pcapng", source, tmp_path / "c.pcapng"], check=True)
    reduce_pcap(source, tmp_path / "source.parquet")
    reduce_pcap(tmp_path / "c.pcapng", tmp_path / "c.parquet")
    assert pl.read_parquet(tmp_path / "c.parquet").equals(pl.read_parquet(tmp_path / "source.parquet"))


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_never_ends_in_a_panic(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    order = rng.choice("<>")
    data = section(order) + interface(order, resolution=rng.choice([None, 9, 0xFF, 127])) + names(order)
    data += b"".join(enhanced(order, frame.data, units=frame.t_ns) for frame in mixed(30))
    data += simple(order, DATA, len(DATA)) + section(order) + interface(order) + enhanced(order)
    damaged = bytearray(data)
    for _ in range(rng.randrange(1, 9)):
        damaged[rng.randrange(12, len(damaged))] = rng.randrange(256)
    (tmp_path / "a.pcapng").write_bytes(damaged)
    counts = reduce_pcap(tmp_path / "a.pcapng", tmp_path / "a.parquet")  # CaptureError would fail the test
    assert pl.read_parquet(tmp_path / "a.parquet").height == counts.packets


def test_vnet_reduce_takes_it_and_says_what_it_cannot_look_into(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from orchestrator.cli.reduce import reduce_command

    known = ethernet(ipv4(tcp(ports=(1, 2))))
    data = section() + interface() + interface(link=147) + enhanced(data=known, units=START_NS // 1000)
    (tmp_path / "a.pcapng").write_bytes(data + enhanced(number=1) + enhanced(number=1))
    said = CliRunner().invoke(reduce_command, [str(tmp_path / "a.pcapng")])
    assert said.exit_code == 0 and "warning: 2 packets of link type 147" in said.output
    assert pl.read_parquet(tmp_path / "a.parquet")["src"].to_list() == ["10.0.0.1", None, None]
    found = CliRunner().invoke(reduce_command, [str(tmp_path / "a.pcapng"), "--json", "--app", "http=1,2"])
    assert json.loads(found.stdout)["unknown_links"] == {"147": 2}
    wrong = CliRunner().invoke(reduce_command, [str(tmp_path / "a.pcapng"), "--app", "http"])
    assert wrong.exit_code != 0 and "NAME=PORT" in str(wrong.exception)
