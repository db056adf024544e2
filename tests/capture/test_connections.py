"""Compares the table of TCP connections with tshark: conversations, handshakes, round-trip samples."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from frames import ACK, CONNECT, FIN, PSH, RST, START_NS, SYN, Frame, ethernet, ipv4, ipv6, tcp, write
from oracle import need, tshark
from test_reducer_random import confused, transfer

from capture.pcap import reduce_pcap, reducer

MS = 1_000_000
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark")


def summed(pcap: Path) -> list[Row]:
    table = pcap.with_suffix(".connections.parquet")
    counts = reduce_pcap(pcap, pcap.with_suffix(".parquet"), connections=table)
    rows = pl.read_parquet(table).sort("stream").to_dicts()
    assert counts.streams == len(rows)
    return rows


def fields(pcap: Path, *names: str) -> list[list[str]]:
    argv = ["tshark", "-n", "-r", str(pcap), "-T", "fields", "-E", "separator=|"]
    argv += [part for name in names for part in ("-e", name)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [line.split("|") for line in said.splitlines()]


def smoothed(samples: list[int]) -> int | None:
    """Returns the smoothed round-trip time by RFC 6298 in whole ns, with quotients rounded towards zero; None
    without samples.
    """
    value = samples[0] if samples else None
    for sample in samples[1:]:
        assert value is not None
        step = sample - value
        value += step // 8 if step >= 0 else -(-step // 8)
    return value


def samples(pcap: Path) -> dict[tuple[int, str], list[int]]:
    """Returns tshark's ack_rtt by connection and source of the acknowledged segment, except for segments
    retransmitted since.
    """
    names = ("tcp.stream", "ip.src", "ip.dst", "tcp.analysis.acks_frame", "tcp.analysis.ack_rtt")
    again = "tcp.analysis.retransmission"
    found: dict[tuple[int, str], list[int]] = {}
    last_again: dict[tuple[int, str], int] = {}
    for number, row in enumerate(fields(pcap, *names, again), 1):
        stream, src, dst, acked, rtt, repeated = row
        if acked and int(acked) > last_again.get((int(stream), dst), 0):
            seconds, _, fraction = rtt.partition(".")
            sample = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
            found.setdefault((int(stream), dst), []).append(sample)
        if repeated:
            last_again[int(stream), src] = number
    return found


def talk(ends: list[tuple[bool, int, int, int, bytes]], client: int = 40_000) -> list[Frame]:
    """Returns the frames of a connection, from (upwards, flags, seq, ack, data), 10, 11, 12, ... ms apart."""
    frames, now = [], START_NS
    for number, (up, flags, seq, ack, data) in enumerate(ends):
        now += (10 + number) * MS
        ports = (client, 1883) if up else (1883, client)
        sides = ("10.0.0.1", "10.0.0.2") if up else ("10.0.0.2", "10.0.0.1")
        frames.append(Frame(ethernet(ipv4(tcp(data, flags, seq, ack, ports), 6, *sides)), now))
    return frames


OPENED = [(True, SYN, 99, 0, b""), (False, SYN | ACK, 499, 100, b""), (True, ACK, 100, 500, b"")]
SPOKEN = [(True, ACK | PSH, 100, 500, CONNECT), (False, ACK | PSH, 500, 100 + len(CONNECT), b" \2\0\0")]
CLOSED = [(True, FIN | ACK, 115, 504, b""), (False, FIN | ACK, 504, 116, b""), (True, ACK, 116, 505, b"")]


def test_a_connection_from_beginning_to_end(tmp_path: Path) -> None:
    assert len(CONNECT) == 15
    pcap = write(tmp_path / "a.pcap", talk([*OPENED, *SPOKEN, *CLOSED]))
    (row,) = summed(pcap)
    ends = {"src": "10.0.0.1", "src_port": 40000, "dst": "10.0.0.2", "dst_port": 1883}
    assert row.items() >= (ends | {"app": "mqtt", "end": "fin", "stream": 0}).items()
    assert (row["syn_synack_ns"], row["synack_ack_ns"]) == (11 * MS, 12 * MS)
    assert (row["first_ns"], row["last_ns"]) == (START_NS + 10 * MS, START_NS + 108 * MS)
    assert (row["forward_packets"], row["forward_wire_bytes"], row["forward_payload_bytes"]) == (5, 285, 15)
    assert (row["reverse_packets"], row["reverse_wire_bytes"], row["reverse_payload_bytes"]) == (3, 166, 4)
    (initial,) = {line[0] for line in fields(pcap, "tcp.analysis.initial_rtt") if line[0]}
    assert round(float(initial) * 1e9) == 23 * MS
    assert samples(pcap) == {
        (0, "10.0.0.1"): [11 * MS, 14 * MS, 16 * MS],
        (0, "10.0.0.2"): [12 * MS, 15 * MS, 17 * MS],
    }
    assert (row["forward_srtt_ns"], row["forward_rtt_samples"]) == (smoothed([11 * MS, 14 * MS, 16 * MS]), 3)
    assert (row["reverse_srtt_ns"], row["reverse_rtt_samples"]) == (smoothed([12 * MS, 15 * MS, 17 * MS]), 3)


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        (OPENED + SPOKEN, "open"),
        ([*OPENED, *SPOKEN, CLOSED[0]], "open"),
        ([*OPENED, (False, RST | ACK, 500, 100, b"")], "rst"),
        ([*OPENED, CLOSED[0], (False, RST, 500, 0, b"")], "rst"),
        ([*OPENED, *SPOKEN, *CLOSED, (False, RST, 505, 0, b"")], "fin"),
        ([OPENED[0], (False, RST | ACK, 0, 100, b"")], "rst"),
    ],
)
def test_ends(tmp_path: Path, steps: list, end: str) -> None:
    (row,) = summed(write(tmp_path / "a.pcap", talk(steps)))
    assert row["end"] == end and row["src"] == "10.0.0.1"


def test_who_opened_is_the_source_even_if_the_answer_comes_first(tmp_path: Path) -> None:
    for steps in (OPENED[1:], [OPENED[1], OPENED[0], OPENED[2]]):
        assert summed(write(tmp_path / "a.pcap", talk(steps)))[0]["src"] == "10.0.0.1"
    (row,) = summed(write(tmp_path / "a.pcap", talk(SPOKEN[1:])))
    assert row["src"] == "10.0.0.2" and row["syn_synack_ns"] is None


def test_a_syn_sent_again_counts_from_the_last(tmp_path: Path) -> None:
    (row,) = summed(write(tmp_path / "a.pcap", talk([OPENED[0], OPENED[0], *OPENED[1:]])))
    assert (row["syn_synack_ns"], row["synack_ack_ns"]) == (12 * MS, 13 * MS)
    assert (
        row["forward_retransmissions"] == 1 and row["forward_rtt_samples"] == 0
    )  # which of the two SYNs was answered is unknown


def test_what_was_in_flight_when_something_was_sent_again_is_no_sample(tmp_path: Path) -> None:
    one, two, three = ((True, ACK | PSH, 100 + 10 * n, 500, b"x" * 10) for n in range(3))
    answers = [(False, ACK, 500, ack, b"") for ack in (110, 120, 130)]
    (row,) = summed(
        write(tmp_path / "a.pcap", talk([*OPENED, one, answers[0], two, two, three, *answers[1:]]))
    )
    assert row["forward_retransmissions"] == 1
    assert row["forward_rtt_samples"] == 3  # samples: of the SYN, of one segment and of three segments


@pytest.mark.parametrize("seed", range(4))
def test_a_lossy_transfer_agrees_with_tshark(tmp_path: Path, seed: int) -> None:
    pcap = write(tmp_path / "a.pcap", transfer(seed))
    (row,) = summed(pcap)
    found = tshark(pcap)
    up = [one for one in found if one["src"] == "10.0.0.1"]
    assert row["forward_retransmissions"] == sum(one["retransmission"] for one in up) > 0
    assert row["forward_wire_bytes"] == sum(one["wire_bytes"] for one in up)
    assert row["forward_payload_bytes"] == sum(one["payload_bytes"] for one in up)


def test_conversations_are_tsharks(tmp_path: Path) -> None:
    """Shows that the frames and bytes of each direction agree, for overlapping connections and IPv6."""
    six = [Frame(ethernet(ipv6(tcp(b"x" * n, ports=(7, 8))), 0x86DD), START_NS + n) for n in range(50)]
    pcap = write(tmp_path / "a.pcap", confused(3) + six)
    argv = ["tshark", "-n", "-r", str(pcap), "-q", "-z", "conv,tcp"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    theirs = set()
    for line in said.splitlines():
        if "<->" in line:
            one, _, other, *counts = line.split()
            back, there = counts[0:2], counts[3:5]
            theirs |= {(one, other, *there[:1]), (other, one, *back[:1])}
    ours = set()
    for row in summed(pcap):
        src, dst = (f"{row[end]}:{row[end + '_port']}" for end in ("src", "dst"))
        ours |= {(src, dst, str(row["forward_packets"])), (dst, src, str(row["reverse_packets"]))}
    assert ours == theirs
    ends = ("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport")
    sizes: Counter[tuple[str, str, str]] = Counter()
    for stream, four, six_, port, *to, size in fields(pcap, "tcp.stream", *ends, "frame.len"):
        sizes[stream, f"{four or six_}:{port}", f"{to[0] or to[1]}:{to[2]}"] += int(size)
    counted: Counter[tuple[str, str, str]] = Counter()
    for row in summed(pcap):
        src, dst = (f"{row[end]}:{row[end + '_port']}" for end in ("src", "dst"))
        counted[str(row["stream"]), src, dst] += row["forward_wire_bytes"]
        counted[str(row["stream"]), dst, src] += row["reverse_wire_bytes"]
    assert +counted == +sizes


@pytest.mark.parametrize("apart_ns", [1, 3 * MS])
def test_samples_are_tsharks(tmp_path: Path, apart_ns: int) -> None:
    """Shows that round-trip samples agree for a window of segments without loss, acknowledged one by one or
    two at a time.
    """
    frames = talk(OPENED)
    now = frames[-1].t_ns
    for turn in range(40):
        sent = [100 + 300 * turn + 100 * n for n in range(4)][:3]
        for n, seq in enumerate(sent):
            segment = tcp(b"y" * 100, ACK | PSH, seq, 500, (40000, 1883))
            frames.append(Frame(ethernet(ipv4(segment)), now + 10 * MS + n * apart_ns))
        for n, ack in enumerate((sent[0] + 100, sent[2] + 100)):
            answer = ipv4(tcp(b"", ACK, 500, ack, (1883, 40000)), 6, "10.0.0.2", "10.0.0.1")
            frames.append(Frame(ethernet(answer), now + (20 + turn % 7 + n) * MS))
        now += 40 * MS
    pcap = write(tmp_path / "a.pcap", frames)
    (row,) = summed(pcap)
    expected = samples(pcap)[0, "10.0.0.1"]
    assert len(expected) == row["forward_rtt_samples"] == 81 and row["forward_srtt_ns"] == smoothed(expected)


def test_connections_that_are_forgotten_are_written_too(tmp_path: Path) -> None:
    frames = [Frame(ethernet(ipv4(tcp(ports=(9000 + n % 50, 80)))), START_NS + n) for n in range(500)]
    pcap, table = write(tmp_path / "a.pcap", frames), tmp_path / "c.parquet"
    argv = [reducer(), pcap, tmp_path / "a.parquet", "--connections", table, "--max-flows", "10"]
    subprocess.run(argv, check=True, capture_output=True)
    found = pl.read_parquet(table)
    assert found["stream"].to_list() == list(range(500)) and found["forward_packets"].sum() == 500


def test_an_empty_capture_gives_an_empty_table(tmp_path: Path) -> None:
    assert summed(write(tmp_path / "a.pcap", [])) == []
