"""Tests `vnet.load`: runs and campaigns as frames, with any columns in their tables; errors have a remedy."""

from __future__ import annotations

import asyncio
import json
import shutil
import struct
from pathlib import Path

import polars as pl
import pytest
from synthetic import write_campaign, write_run
from synthetic_shape import Shape

import vnet
from vnet.labs import spec_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> vnet.Run:
    path = write_run(tmp_path_factory.mktemp("api") / "run", Shape())
    figures = [
        {"name": "cpu", "scope": "broker", "value": 3, "unit": "%"},
        {"name": "guarantee", "scope": "all", "value": "held in 1 of 1", "unit": None},
    ]
    (path / "summary.json").write_text(json.dumps(figures))
    loaded = vnet.load(path)
    assert isinstance(loaded, vnet.Run)
    return loaded


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> vnet.Campaign:
    shapes = [Shape(qos=qos, seed=seed) for qos in (0, 1) for seed in (1, 2)]
    loaded = vnet.load(str(write_campaign(tmp_path_factory.mktemp("api") / "campaign", shapes)))
    assert isinstance(loaded, vnet.Campaign)
    return loaded


def test_a_runs_files_are_frames(run: vnet.Run) -> None:
    assert run.manifest["state"] == "complete" and run.plan.lab == "demo"
    for name in run.tables:
        assert run.table(name).collect().equals(pl.read_parquet(run.path / f"{name}.parquet"))
    assert {"messages", "nodes", "links", "host", "events"} <= set(run.tables)
    assert isinstance(run.messages, pl.LazyFrame) and run.messages.collect().height > 0
    assert run.nodes.height > 0 and run.links.height > 0 and run.host.height > 0
    assert run.events.height == 2
    assert set(run.proof["verdict"]) <= {"holds", "fails", "cannot tell"}
    assert run.points == ["lan"] and run.packets("lan").collect().height > 0


def test_figures_of_numbers_and_words_stand_in_one_column(run: vnet.Run) -> None:
    assert run.summary["value"].to_list() == ["3", "held in 1 of 1"]


def test_a_campaigns_tables_say_cell_and_levels(campaign: vnet.Campaign) -> None:
    assert campaign.cells["level_qos"].to_list() == [0, 0, 1, 1]
    assert list(campaign.runs) == campaign.cells["cell"].to_list()
    alone = {name: run.messages.collect() for name, run in campaign.runs.items()}
    every = campaign.messages.collect()
    assert every.height == sum(table.height for table in alone.values())
    for cell, level in campaign.cells.select("cell", "level_qos").iter_rows():
        of_cell = every.filter(cell=cell)
        assert of_cell["level_qos"].unique().to_list() == [level]
        assert of_cell.select(alone[cell].columns).equals(alone[cell])


def test_a_cell_that_was_run_again_counts_once(campaign: vnet.Campaign, tmp_path: Path) -> None:
    shutil.copytree(campaign.path, tmp_path / "again")
    file = tmp_path / "again" / "cells.jsonl"
    last = json.loads(file.read_text().splitlines()[-1])
    file.write_text(
        file.read_text() + json.dumps(last | {"levels": {"load": "high"}, "state": "failed"}) + "\n"
    )
    again = vnet.load(tmp_path / "again")
    assert isinstance(again, vnet.Campaign)
    assert again.cells.height == 4
    assert (
        again.cells["state"].to_list()[-1] == "failed" and again.cells["level_load"].to_list()[-1] == "high"
    )


def test_what_is_not_there_is_said_with_the_remedy(run: vnet.Run, tmp_path: Path) -> None:
    with pytest.raises(vnet.LoadError, match=r"is neither a run .* nor a campaign"):
        vnet.load(tmp_path)
    with pytest.raises(
        vnet.LoadError, match=r"typo.parquet: is not there \(there are: .*messages.*vnet report --reduce"
    ):
        run.table("typo")
    with pytest.raises(vnet.LoadError, match=r"wan.parquet: is not there \(there are: lan\)"):
        run.packets("wan")
    with pytest.raises(vnet.LoadError, match=r"lan.pcap: is not there: the capture was not kept"):
        run.packets("lan").dissect("tcp")
    (tmp_path / "manifest.json").write_text('{"state": "ru')
    torn = vnet.load(tmp_path)
    assert isinstance(torn, vnet.Run)
    with pytest.raises(vnet.LoadError, match=r"manifest.json: cannot be read: .*the run was cut off"):
        _ = torn.manifest
    (tmp_path / "nodes.parquet").write_text("PAR1")
    with pytest.raises(vnet.LoadError, match=r"nodes.parquet: cannot be read"):
        _ = torn.nodes


@pytest.mark.parametrize("line", ["5", "[1]", '{"cell": ["a"]}', "{}", '{"cell": "a'])
def test_a_damaged_line_of_a_campaign_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "cells.jsonl").write_text(f'{{"cell": "a"}}\n{line}\n')
    with pytest.raises(vnet.LoadError, match=r"cells\.jsonl:2: .* is no cell's line"):
        _ = vnet.Campaign(tmp_path).cells


def test_virtual_time_has_a_kernel_of_its_own() -> None:
    """Shows that `vnet.load` refuses to name a kernel for virtual time, which has a kernel of its own."""
    assert spec_of(Path("a.yaml"), {}, kernel="uml").options == ["--kernel", "uml"]
    with pytest.raises(ValueError, match="'uml': virtual time has a kernel of its own"):
        spec_of(Path("a.yaml"), {}, kernel="uml", time="virtual")


def datagram(port: int, text: bytes) -> bytes:
    udp = struct.pack("!HHHH", 40_000, port, 8 + len(text), 0) + text
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    )
    return bytes(5) + b"\x02" + bytes(5) + b"\x01" + b"\x08\x00" + ip + udp


@pytest.fixture
def captured(run: vnet.Run, tmp_path: Path) -> vnet.Packets:
    """Returns a capture of three datagrams to port 7 and two to port 9."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed (images/packages.sh run)")
    file = tmp_path / "lan.pcap"
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    for second, port in enumerate((7, 9, 7, 9, 7)):
        frame = datagram(port, b"hello %d" % second)
        data += struct.pack("<IIII", 1_700_000_000 + second, 5, len(frame), len(frame)) + frame
    file.write_bytes(data)
    return vnet.Packets("lan", run.packets("lan").frame, file)


def test_single_packets_are_dissected(captured: vnet.Packets) -> None:
    assert [int(packet.number) for packet in captured.dissect("udp.dstport == 7")] == [1, 3, 5]
    assert len(list(captured.dissect())) == 5
    first = next(captured.dissect("udp.dstport == 9"))  # reads only the first matching packet
    assert (first.ip.src, first.udp.dstport) == ("10.0.0.1", "9")


def test_a_notebook_has_an_event_loop_already(captured: vnet.Packets) -> None:
    async def cell() -> int:
        return len(list(captured.dissect("udp")))

    assert asyncio.run(cell()) == 5


def test_a_filter_that_tshark_refuses_is_named(captured: vnet.Packets) -> None:
    with pytest.raises(vnet.LoadError, match=r"display filter 'nonsense ==': tshark refuses it: "):
        captured.dissect("nonsense ==")
