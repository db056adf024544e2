"""Tests the display of the dissected packets of a capture point."""

from __future__ import annotations

import struct
from itertools import islice
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from frames import ACK, CONNECT, PSH, START_NS, Frame, ethernet, ipv4, publish, tcp, write
from oracle import need
from rundirs import node, plan, run_dir

from capture.deep import carrying, deep
from capture.errors import CaptureError
from capture.packets import packets
from capture.reduce import reduce_run
from orchestrator.cli.main import vnet


@pytest.fixture
def run(tmp_path: Path) -> Path:
    need("tshark")
    path = run_dir(tmp_path / "run", plan([node("p")], captures=[{"name": "lan", "keep": False}]))
    data, frames, seq = [CONNECT, publish(5), publish(6)], [], 1
    for number, part in enumerate(data * 200):
        frames.append(Frame(ethernet(ipv4(tcp(part, ACK | PSH, seq))), START_NS + number * 1000))
        seq += len(part)
    write(path / "pcap" / "lan.pcap", frames)
    return path


def test_a_display_filter_selects(run: Path) -> None:
    shown = list(packets(run, "lan", "mqtt.msgtype==3"))
    assert len(shown) == 400 and all("Publish Message" in line for line in shown)
    assert any("Topic: a/b" in line for line in packets(run, "lan", "frame.number==2", detail=True))
    assert len(list(packets(run, "lan", count=7))) == 7


def test_a_reader_may_stop_early(run: Path) -> None:
    assert len(list(islice(packets(run, "lan"), 3))) == 3


def test_mistakes_are_explained(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CaptureError, match=r"lan\.pcap: (?!Running as user).*mqtt.nonsense"):
        list(packets(run, "lan", "mqtt.nonsense==3"))
    with pytest.raises(CaptureError, match="no capture point 'wan'; it has lan"):
        list(packets(run, "wan"))
    with pytest.raises(CaptureError, match="plan"):
        list(packets(run / "raw", "lan"))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CaptureError, match="apt-get install tshark"):
        list(packets(run, "lan"))


def test_a_pcap_that_was_not_kept_is_gone_after_reduction(run: Path) -> None:
    done = reduce_run(run)
    assert done.captures["lan"].app_messages == 600 and not (run / "pcap" / "lan.pcap").exists()
    assert not [w for w in reduce_run(run).warnings if "lan" in w.text]  # the first reduction's table is kept
    with pytest.raises(CaptureError, match=r"packets/lan\.parquet; set `keep: true`"):
        list(packets(run, "lan"))


def test_connections_stand_beside_the_packets(run: Path) -> None:
    reduce_run(run)
    (row,) = pl.read_parquet(run / "connections" / "lan.parquet").to_dicts()
    assert row["app"] == "mqtt" and row["forward_packets"] == 600


def test_a_link_that_is_not_known_is_said(run: Path) -> None:
    write(run / "pcap" / "lan.pcap", [Frame(b"abc"), Frame(b"def")], link=147)
    (warned,) = [w for w in reduce_run(run).warnings if w.code == "reduce-link"]
    assert "lan: 2 packets of link type 147" in warned.text


def test_a_damaged_pcap_is_kept_and_said(run: Path) -> None:
    pcap = run / "pcap" / "lan.pcap"
    pcap.write_bytes(pcap.read_bytes()[:-5])
    done = reduce_run(run)
    assert (
        pcap.exists()
        and "reduce-cut" in [w.code for w in done.warnings]
        and done.captures["lan"].packets == 599
    )
    pcap.write_bytes(b"nothing")
    assert "reduce-pcap" in [w.code for w in reduce_run(run).warnings] and pcap.exists()


def test_the_reducer_missing_is_explained(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNET_REDUCE", "/nonexistent/vnet-reduce")
    with pytest.raises(CaptureError, match=r"VNET_REDUCE=.*: vnet-reduce is not there; .*`make setup`"):
        reduce_run(run)
    assert not list(run.glob("*.parquet"))


def test_the_deep_look_has_every_field_by_its_name_in_tshark(run: Path) -> None:
    first, second = deep(run, "lan", "mqtt.msgtype == 3", count=2)
    assert (first["number"], second["number"]) == (2, 3)
    assert first["layers"]["mqtt"]["mqtt.topic"] == "a/b" and first["layers"]["ip"]["ip.ttl"] == "64"
    done = CliRunner().invoke(vnet, ["packets", str(run), "--deep", "-c", "1", "-f", 'mqtt.topic == "a/b"'])
    assert done.exit_code == 0 and "\n  mqtt.topic = a/b\n" in done.output


def test_the_packets_behind_a_message(tmp_path: Path) -> None:
    need("tshark")
    flow = {"name": "meter.push", "payload": {"kind": "bytes", "bytes": 64}}
    path = run_dir(tmp_path / "run", plan([node("p")], captures=[{"name": "lan"}], flows=[flow, flow]))
    header = struct.Struct(">4sBxxxIIqI")
    sent = [header.pack(b"vNET", 2, place, seq, 0, 0) for place, seq in ((0, 7), (1, 7), (0, 8), (0, 7))]
    frames = [
        Frame(ethernet(ipv4(tcp(part, ACK | PSH, 1 + 28 * n))), START_NS + n) for n, part in enumerate(sent)
    ]
    write(path / "pcap" / "lan.pcap", frames)
    shown = deep(path, "lan", carrying(path, "meter.push:7"))
    assert [packet["number"] for packet in shown] == [1, 4]
    with pytest.raises(CaptureError, match=r"no flow 'meter'; it has meter\.push"):
        carrying(path, "meter:7")
    with pytest.raises(CaptureError, match=r"write FLOW:SEQ"):
        carrying(path, "meter.push")
