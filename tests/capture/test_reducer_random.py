"""Compares vnet-reduce with tshark on random traffic and on files of real tools, and tests damaged files."""

from __future__ import annotations

import os
import random
import resource
import signal
import struct
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from frames import (
    ACK,
    CONNECT,
    FIN,
    PSH,
    RST,
    START_NS,
    SYN,
    Frame,
    arp,
    ethernet,
    ipv4,
    ipv6,
    mqtt,
    publish,
    tcp,
    udp,
    write,
)  # fmt: skip
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import assert_agree, need, reduced, tshark

from capture.errors import CaptureError
from capture.pcap import reduce_pcap, reducer

MS = 1_000_000


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark", "editcap", "text2pcap", "tcpdump")


def confused(seed: int, count: int = 1500) -> list[Frame]:
    """Returns segments of a few connections whose numbers, flags and times are random in a narrow range."""
    rng = random.Random(seed)
    frames, now = [], START_NS
    base = rng.choice([5000, 2**32 - 4000])
    for _ in range(count):
        now += int(rng.choice([0.01, 0.5, 2, 4, 15, 30, 250]) * MS * rng.random())
        up, client = rng.random() < 0.5, rng.randrange(3)
        flags = rng.choices(
            [ACK, ACK | PSH, SYN, SYN | ACK, FIN | ACK, RST, 0, ACK | 0xC0], [60, 20, 1, 1, 2, 1, 1, 1]
        )[0]
        seq = (base + rng.choice([0, 1, 10, 100]) * rng.randrange(30)) % 2**32
        ack = (base + rng.choice([0, 1, 10, 100]) * rng.randrange(30)) % 2**32 if flags & ACK else 0
        data = bytes(rng.choice([0, 0, 0, 1, 1, 10, 100, 1000]))
        ends, ports = (
            (("10.0.0.1", "10.0.0.2"), (9000 + client, 81))
            if up
            else (("10.0.0.2", "10.0.0.1"), (81, 9000 + client))
        )
        segment = tcp(data, flags, seq, ack, ports, window=rng.choice([501, 501, 501, 0, 300]))
        frames.append(Frame(ethernet(ipv4(segment, 6, *ends)), now))
    return frames


@pytest.mark.parametrize("seed", range(8))
def test_the_tcp_analysis_agrees_on_random_segments(tmp_path: Path, seed: int) -> None:
    ours, _ = assert_agree(write(tmp_path / "a.pcap", confused(seed)), tmp_path / "a.parquet")
    found = {row["analysis"] for row in ours}
    assert {"retransmission", "spurious-retransmission", "out-of-order"} <= found


def transfer(seed: int, frames_wanted: int = 800) -> list[Frame]:
    """Returns the frames of a sender over a path that delays and repeats segments, with the receiver's
    acknowledgements.
    """
    rng = random.Random(seed)
    data = b"".join(
        [CONNECT, *(publish(rng.randrange(1200), qos=rng.randrange(3)) for _ in range(frames_wanted // 2))]
    )
    up = {"ends": ("10.0.0.1", "10.0.0.2"), "ports": (40000, 1883)}
    down = {"ends": ("10.0.0.2", "10.0.0.1"), "ports": (1883, 40000)}
    events: list[tuple[int, int, dict, bytes]] = []

    def put(at: int, way: dict, flags: int, seq: int, ack: int, payload: bytes = b"") -> None:
        segment = tcp(payload, flags, seq, ack, way["ports"])
        events.append((at, len(events), way, ethernet(ipv4(segment, 6, *way["ends"]))))

    now = START_NS
    put(now, up, SYN, 999, 0)
    put(now + 5 * MS, down, SYN | ACK, 4999, 1000)
    put(now + 6 * MS, up, ACK, 1000, 5000)
    at, arrived, have = 0, set(), 0
    now += 10 * MS
    while at < len(data):
        size = rng.randrange(1, 1449)
        piece, place = data[at : at + size], at
        at += len(piece)
        delay = rng.choice([0, 0, 0, 0, 3, 9]) * MS
        for again in range(rng.choice([1, 1, 1, 1, 1, 2])):
            put(now + delay + again * rng.choice([4, 60]) * MS, up, ACK | PSH, 1000 + place, 5000, piece)
        arrived.add((place, place + len(piece)))
        while (nxt := next((e for s, e in arrived if s == have), None)) is not None:
            have = nxt
        put(now + delay + 12 * MS, down, ACK, 5000, 1000 + place + len(piece) if delay == 0 else 1000 + place)
        now += rng.randrange(1, 3) * MS
    return [Frame(frame, when) for when, _, _, frame in sorted(events, key=lambda e: e[:2])]


@pytest.mark.parametrize("seed", range(4))
def test_a_lossy_transfer_agrees(tmp_path: Path, seed: int) -> None:
    """Shows that all columns agree; MQTT types are compared with those sent, because tshark loses its
    position at overlaps.
    """
    ours, counts = assert_agree(
        write(tmp_path / "a.pcap", transfer(seed)), tmp_path / "a.parquet", without=("app_types",)
    )
    kinds = [kind for row in ours for kind in row["app_types"] or []]
    assert kinds == ["CONNECT"] + ["PUBLISH"] * 400 and counts.app_unknown == 0
    assert counts.retransmissions > 0


def mixed(count: int) -> list[Frame]:
    rng = random.Random(count)

    def port() -> tuple[int, int]:
        return rng.randrange(9000, 60000), 8181

    kinds = [
        lambda: ethernet(arp(), 0x0806),
        lambda: ethernet(ipv4(udp(bytes(rng.randrange(900))), 17)),
        lambda: ethernet(ipv6(udp(bytes(rng.randrange(900))), 17), 0x86DD, (0x8100, rng.randrange(4096))),
        lambda: ethernet(ipv4(tcp(bytes(rng.randrange(900)), ACK, rng.randrange(2**32), ports=port()))),
    ]  # fmt: skip
    return [Frame(rng.choice(kinds)(), START_NS + n * 1_234_567) for n in range(count)]


def test_files_that_other_programs_wrote(tmp_path: Path) -> None:
    source = write(tmp_path / "source.pcap", mixed(300))
    text = tmp_path / "hex.txt"
    text.write_text("".join(f"000000 {publish(40 + n).hex(' ')}\n" for n in range(20)))
    makers = [
        ["editcap", "-F", "pcap", source, tmp_path / "editcap.pcap"],
        ["editcap", "-F", "nsecpcap", "-s", "60", source, tmp_path / "snapped.pcap"],
        ["editcap", "-F", "nsecpcap", "-t", "-0.5", "-A", "2000-01-01", source, tmp_path / "shifted.pcap"],
        [
            "tcpdump",
            "-r",
            source,
            "--time-stamp-precision=nano",
            "-w",
            tmp_path / "tcpdump.pcap",
            "-Z",
            "root",
            "not arp",
        ],
        ["text2pcap", "-q", "-F", "pcap", "-T", "40000,1883", text, tmp_path / "text.pcap"],
        ["text2pcap", "-q", "-F", "nsecpcap", "-6", "::1,::2", "-u", "7,8", text, tmp_path / "text6.pcap"],
        ["randpkt", "-c", "200", "-t", "tcp", tmp_path / "random.ng"],
        ["editcap", "-F", "pcap", tmp_path / "random.ng", tmp_path / "random.pcap"],
        ["mergecap", "-F", "nsecpcap", "-w", tmp_path / "merged.pcap", source, tmp_path / "editcap.pcap"],
    ]
    for argv in makers:
        made = subprocess.run([str(part) for part in argv], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
    for path in sorted(tmp_path.glob("*.pcap")):
        # TCP options and lengths that randpkt makes are random; tshark shows the fields before the first
        # invalid one
        if path.name != "random.pcap":
            assert_agree(
                path, tmp_path / "a.parquet", without=("app_types",) if path.name == "snapped.pcap" else ()
            )
        assert reduced(path, tmp_path / "a.parquet")[1].packets == len(tshark(path))


@pytest.mark.parametrize(
    ("text", "error"), [(b"", "0 bytes"), (b"x" * 23, "23 bytes"), (b"hello" * 9, "no magic number")]
)
def test_what_is_no_pcap_is_refused(tmp_path: Path, text: bytes, error: str) -> None:
    (tmp_path / "a.pcap").write_bytes(text)
    with pytest.raises(CaptureError, match=error):
        reduce_pcap(tmp_path / "a.pcap", tmp_path / "a.parquet")


@pytest.mark.parametrize("left", [1, 15, 16, 17, 40])
def test_a_truncated_last_record_is_left_out_and_said(tmp_path: Path, left: int) -> None:
    whole = write(tmp_path / "a.pcap", mixed(5)).read_bytes()
    last = write(tmp_path / "b.pcap", mixed(5)[-1:]).read_bytes()[24:]
    (tmp_path / "a.pcap").write_bytes(whole[: len(whole) - len(last) + left])
    _, counts = assert_agree(tmp_path / "a.pcap", tmp_path / "a.parquet")
    assert (
        counts.packets == 4
        and counts.truncated
        and f"record 5 at byte {len(whole) - len(last)}" in str(counts.cut)
    )


def test_the_table_never_takes_the_place_of_something_else(tmp_path: Path) -> None:
    pcap = write(tmp_path / "a.pcap", mixed(3))
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(CaptureError, match="not a regular file"):
            reduce_pcap(pcap, place)
    with pytest.raises(CaptureError, match="No such file"):
        reduce_pcap(pcap, tmp_path / "absent" / "a.parquet")


def test_a_full_disk_leaves_no_table(tmp_path: Path) -> None:
    pcap = write(tmp_path / "a.pcap", mixed(2000))

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # makes a write fail, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    argv = [reducer(), pcap, tmp_path / "a.parquet"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, preexec_fn=small_files)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.pcap"]


def test_an_impossible_record_ends_the_table_there(tmp_path: Path) -> None:
    pcap = write(tmp_path / "a.pcap", mixed(3))
    pcap.write_bytes(pcap.read_bytes() + struct.pack("<IIII", 1, 2, 2**31, 60) + bytes(99))
    counts = reduce_pcap(pcap, tmp_path / "a.parquet")
    assert counts.packets == 3 and "2147483648 bytes" in str(counts.cut)


packet = st.builds(
    lambda data, step, more: (data, step, more),
    st.binary(max_size=200), st.integers(-(10**9), 10**12), st.integers(0, 3000),
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(packets=st.lists(packet, max_size=300), order=st.sampled_from("<>"))
def test_any_bytes_keep_their_times_and_lengths(tmp_path: Path, packets: list[tuple], order: str) -> None:
    frames, now = [], START_NS
    for data, step, more in packets:
        now = max(0, now + step)
        frames.append(Frame(data, now, len(data) + more))
    counts = reduce_pcap(write(tmp_path / "a.pcap", frames, order), tmp_path / "a.parquet")
    table = pl.read_parquet(tmp_path / "a.parquet")
    assert table["t_ns"].to_list() == [frame.t_ns for frame in frames]
    assert table["wire_bytes"].to_list() == [frame.wire for frame in frames]
    assert table["captured_bytes"].to_list() == [len(frame.data) for frame in frames]
    assert counts.packets == len(frames) and not counts.truncated


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 60))
def test_damaged_files_never_end_in_a_panic(tmp_path: Path, seed: int, flips: int) -> None:
    rng = random.Random(seed)
    frames = transfer(3)[:120] + mixed(40)
    data = bytearray(
        write(tmp_path / "a.pcap", frames, link=rng.choice([1, 1, 1, 101, 113, 276])).read_bytes()
    )
    for _ in range(flips):
        data[rng.randrange(24, len(data))] = rng.randrange(256)
    (tmp_path / "a.pcap").write_bytes(data)
    counts = reduce_pcap(tmp_path / "a.pcap", tmp_path / "a.parquet")  # CaptureError would fail the test
    assert pl.read_parquet(tmp_path / "a.parquet").height == counts.packets


def test_a_small_flow_table_forgets_and_says_so(tmp_path: Path) -> None:
    frames = [
        Frame(ethernet(ipv4(tcp(mqtt(12), seq=5, ports=(9000 + n % 50, 1883)))), START_NS + n)
        for n in range(500)
    ]
    pcap = write(tmp_path / "a.pcap", frames)
    said = subprocess.run(
        [reducer(), pcap, tmp_path / "a.parquet", "--max-flows", "10"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"evicted": 490' in said.stdout and '"streams": 500' in said.stdout


def test_memory_is_bounded_whatever_the_connections(tmp_path: Path) -> None:
    """Shows that memory is bounded in the worst case of the flow table: every packet is a connection of its
    own with a gap before its data.
    """
    count = 300_000
    template = bytearray(ethernet(ipv4(tcp(bytes(200), ACK, 5000))))
    syn = bytearray(ethernet(ipv4(tcp(b"", SYN, 9))))
    with write(tmp_path / "a.pcap", []).open("ab") as sink:
        for number in range(count):
            for frame in (syn, template):
                frame[26:30] = struct.pack("!I", 0x0A000000 + number)
                sink.write(struct.pack("<IIII", 1, number, len(frame), len(frame)) + frame)
    tables = [str(tmp_path / "a.parquet"), "--connections", str(tmp_path / "c.parquet")]
    argv = [str(reducer()), str(tmp_path / "a.pcap"), *tables]
    # The test starts a small process in between, because the peak of a child's memory begins with the memory
    # of its parent.
    peak = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    used = subprocess.run([sys.executable, "-c", peak, *argv], check=True, capture_output=True, text=True)
    assert pl.read_parquet(tmp_path / "a.parquet").height == 2 * count
    assert int(used.stdout) < 250_000, f"{used.stdout} KiB"
