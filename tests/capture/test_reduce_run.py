"""Tests the reduction of a run directory: joins, rates, truncated and missing files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rundirs import T0, S, flow, guarantee, node, plan, progress, received, run_dir, sent, session

from capture.errors import CaptureError
from capture.reduce import reduce_run
from orchestrator.lab.disks import HEADER as DISKS_HEADER
from orchestrator.lab.kernel_counts import write_stacks


def warned(path: Path) -> list[str]:
    return [w["code"] for w in json.loads((path / "manifest.json").read_text())["warnings"]]


PAIR = plan([node("p1"), node("s")], [flow("p1", ("s", guarantee()))], {"s": ["s"]})


def joined(path: Path, of: dict[str, Any], lines: list[str]) -> dict[tuple[int, str | None], dict[str, Any]]:
    """Returns the rows of messages.parquet by (seq, receiver)."""
    run = run_dir(path / "run", of)
    (run / "raw" / "messages.csv").write_text("".join(lines))
    reduce_run(run)
    table = pl.read_parquet(run / "messages.parquet")
    return {(row["seq"], row["receiver"]): row for row in table.iter_rows(named=True)}


def test_messages_are_joined_with_their_expected_receivers(tmp_path: Path) -> None:
    nodes = [node(name) for name in ("p1", "all", "one", "late")]
    flows = [flow("p1", ("most", guarantee()), ("one", guarantee("one"))), flow("p1", name="p1.alone")]
    lines = [
        session("all", "subscribed", 0),
        session("one", "subscribed", 0),
        session("late", "subscribed", 9),
    ]
    lines += [sent(0, 1, 1), sent(0, 2, 2), sent(0, 5, 5, "unsent"), sent(1, 4, 4)]
    lines += [received(0, 2, "all", 2.1), received(0, 1, "all", 2.2), received(0, 1, "all", 2.3, copy=1)]
    lines += [received(0, 1, "one", 1.5)]
    rows = joined(tmp_path, plan(nodes, flows, {"most": ["all", "late"], "one": ["one"]}), lines)
    assert set(rows) == {(1, "all"), (1, "one"), (2, "all"), (2, "one"), (4, None), (5, "all"), (5, "one")}
    first = rows[1, "all"]
    assert (first["copies"], first["reordered"], first["latency_ns"]) == (2, True, round(1.2 * S))
    assert rows[2, "all"]["reordered"] is False and rows[2, "one"]["received_ns"] is None
    assert rows[1, "one"]["latency_ns"] == S // 2 and rows[2, "one"]["copies"] == 0
    assert (rows[1, "one"]["guarantee"], first["guarantee"]) == ("one", "all")
    assert rows[4, None]["name"] == "p1.alone" and rows[5, "all"]["sent_ns"] is None
    assert first["late"] is None and (first["class"], first["pattern"]) == ("meter", "publish")
    said = pl.read_parquet(tmp_path / "run" / "sessions.parquet")
    assert said.columns == ["endpoint", "what", "t_ns", "detail", "peer"]


def test_replies_are_counted_by_who_answered(tmp_path: Path) -> None:
    nodes = [node("p1"), *(node(name, listens=True) for name in ("s1", "s2"))]
    flows = [flow("p1", ("both", guarantee()), pattern="request", deadline_s=0.5)]
    lines = [sent(0, 0, 1), sent(0, 1, 2)]
    lines += [received(0, 0, "s1", 1.1), received(0, 0, "s2", 1.1), received(0, 0, "s2", 1.25, leg=1)]
    lines += [received(0, 1, "s2", 2.25, leg=1)]  # the request's own arrival record is lost
    rows = joined(tmp_path, plan(nodes, flows, {"both": ["s1", "s2"]}), lines)
    assert {at: row["late"] for at, row in rows.items()} == {
        (0, "s1"): True, (0, "s2"): False, (1, "s1"): True, (1, "s2"): False,
    }  # fmt: skip
    assert rows[0, "s2"]["round_trip_ns"] == S // 4 and rows[0, "s2"]["latency_ns"] == S // 10
    assert rows[0, "s1"]["replied_ns"] is None and [r["replies"] for r in rows.values()] == [0, 1, 0, 1]


def test_who_has_to_come_first_is_owed_nothing_before(tmp_path: Path) -> None:
    """Shows that receivers that state when they listen are expected to get messages only from then on; all
    others from the start.
    """
    nodes = [node("p1"), node("role"), node("server", listens=True)]
    nodes += [node(name, program=True) for name in ("silent", "telling")]
    nodes += [node("sink", program=True, listens=True), node("foreign") | {"software": []}]
    everyone = ["role", "server", "silent", "telling", "sink", "foreign"]
    lines = [session(name, "listening", 5) for name in ("server", "telling", "sink")]
    of = plan(nodes, [flow("p1", ("all", guarantee()))], {"all": everyone})
    rows = joined(tmp_path, of, [*lines, sent(0, 0, 1), sent(0, 1, 6)])
    assert {who for seq, who in rows if seq == 0} == {"server", "silent", "foreign"}
    assert {who for seq, who in rows if seq == 1} == {"server", "silent", "foreign", "telling", "sink"}


def test_what_fits_no_plan_is_said_and_left_out(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    lines = [
        session("s", "subscribed", 0),
        sent(0, 0, 1),
        sent(7, 0, 1),
        sent(-1, 0, 1),
        received(1, 0, "s", 1),
    ]
    lines += [received(0, 9, "s", 2), received(0, 0, "p1", 2), received(0, 0, "s", 2, leg=1)]
    (run / "raw" / "messages.csv").write_text("".join(lines))
    done = reduce_run(run)
    assert [w.code for w in done.warnings if "absent" not in w.code] == [
        "reduce-unknown-flow", "reduce-unexpected", "reduce-replies", "trust-records", "trust-guarantee",
    ]  # fmt: skip
    assert "3 records" in done.warnings[2].text and "from 0 to 0" in done.warnings[2].remedy
    (row,) = pl.read_parquet(run / "messages.parquet").to_dicts()
    assert (row["received_ns"], row["replied_ns"], row["replies"]) == (None, None, 0)


def test_transfers_are_rates_at_both_ends(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    lines = [progress(0, "p1", 0, 1, 1000, "10,1,2,5000"), progress(0, "p1", 0, 3, 2000, "20,,,")]
    lines += [progress(0, "s", 1, 1, 500), progress(0, "s", 1, 2, 0)]
    (run / "raw" / "messages.csv").write_text("".join(lines))
    reduce_run(run)
    table = pl.read_parquet(run / "transfers.parquet")
    at = {(row["endpoint"], (row["t_ns"] - T0) // S): row for row in table.iter_rows(named=True)}
    assert [row["bps"] for row in at.values()] == [None, None, None, 4000.0] and len(at) == 4
    assert at["p1", 3]["receiver"] == at["s", 1]["receiver"] == "s" and at["p1", 3]["rtt_ns"] is None
    assert (at["p1", 1]["lost"], at["p1", 1]["retransmits"], at["p1", 1]["rtt_ns"]) == (1, 2, 5000)


def test_congestion_windows_are_a_table_where_some_were_recorded(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    (run / "raw" / "messages.csv").write_text(progress(0, "p1", 0, 1, 1000))
    reduce_run(run)
    assert not (run / "windows.parquet").exists()
    (run / "seal.json").unlink()  # the following records belong to another run
    lines = [f"W,0,p1,0,{T0 + S},10,,1448,40000000", f"W,0,p1,1,{T0 + S},12,6,1000,41000000"]
    (run / "raw" / "messages.csv").write_text("\n".join([*lines, "W,9,p1,0,1,1,,1,1", ""]))
    assert [w.code for w in reduce_run(run).warnings if "absent" not in w.code] == ["reduce-unknown-flow"]
    rows = pl.read_parquet(run / "windows.parquet").to_dicts()
    assert [(r["name"], r["stream"], r["segments"], r["bytes"], r["threshold"]) for r in rows] == [
        (rows[0]["name"], 0, 10, 14_480, None),
        (rows[0]["name"], 1, 12, 12_000, 6),
    ]


def test_spans_are_a_table_where_programs_said_some(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    lines = [f"P,p1,write,0,4,{T0 + S},700", f"P,s,pause,,,{T0},5", f"P,p1,write,9,0,{T0},1", ""]
    (run / "raw" / "messages.csv").write_text("\n".join(lines))
    assert [w.code for w in reduce_run(run).warnings if "absent" not in w.code] == ["reduce-unknown-flow"]
    rows = pl.read_parquet(run / "spans.parquet").to_dicts()
    assert [(r["endpoint"], r["what"], r["flow"], r["seq"], r["duration_ns"]) for r in rows] == [
        ("s", "pause", None, None, 5),
        ("p1", "write", 0, 4, 700),
    ]
    assert rows[0]["class"] is None and rows[1]["name"]


def test_a_cut_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    whole = session("s", "subscribed", 0) + sent(0, 1, 1)
    cut = "R,0,1,s,0,17900"  # the cut time would still be a valid number
    (run / "raw" / "messages.csv").write_text(whole + cut)
    done = reduce_run(run)
    assert pl.read_parquet(run / "messages.parquet")["received_ns"].to_list() == [None]
    assert "reduce-cut" in warned(run) and "reduce-cut" in [w.code for w in done.warnings]


def test_absent_files_are_said_once_however_often_it_is_reduced(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", plan([node("p1")], captures=[{"name": "lan", "keep": True}]))
    reduce_run(run)
    first = warned(run)
    reduce_run(run)
    assert first.count("reduce-absent") == 4 and warned(run) == first  # absent: nodes, host, messages, pcap


def test_lines_of_another_kind_are_counted(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    odd = b"X,what\nS,0,notanumber,1\n\x00\x00\nR,0,0,s,2,5,0\nR,0,0,s,0,5,0,more\n"
    (run / "raw" / "messages.csv").write_bytes(odd + sent(0, 1, 1).encode())
    done = reduce_run(run)
    said = [w.text for w in done.warnings if w.code == "reduce-odd-lines"]
    assert [text.split(" lines")[0] for text in said] == [f"messages.csv: {n}" for n in (1, 2, 2)]
    assert done.tables["messages"] == 1


def test_rates_and_shares_are_over_the_interval_before(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", plan([node("p1"), node("p2")]))
    rows = [(0, "p1", 0, 0, 0, 1000, 10, 5), (0, "p2", 7, 0, 0, 0, 0, 5), (2, "p1", S, 500, 4, 3000, 30, 6)]
    rows += [(4, "p1", 0, 0, 0, 0, 0, 6)]  # counters set back: the node was restarted
    text = "".join(",".join(map(str, (T0 + row[0] * S, *row[1:]))) + "\n" for row in rows)
    (run / "raw" / "nodes.csv").write_text(
        "t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes\n" + text
    )
    reduce_run(run)
    table = pl.read_parquet(run / "nodes.parquet").filter(pl.col("node") == "p1")
    assert table["cpu_share"].to_list() == [None, 0.5, None]
    assert table["rx_bps"].to_list() == [None, 2000.0, None] and table["tx_pps"].to_list() == [
        None,
        10.0,
        None,
    ]
    assert table["group"].to_list() == ["p"] * 3


def test_host_shares_of_lab_and_outer(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", plan([]))
    lines = ["0,0,0,0,0,0,0,0,0,0.5,1000,2", f"{S},{S},0,0,{S},0,0,0,{2 * S},0.25,900,2"]
    (run / "raw" / "host.csv").write_text("\n".join(lines) + "\n")
    (run / "raw" / "outer.csv").write_text("\n".join(lines) + "\n")
    reduce_run(run)
    table = pl.read_parquet(run / "host.parquet")
    assert table["where"].to_list() == ["lab", "outer"] * 2
    assert table["busy_share"].to_list()[2:] == [0.75, 0.75] and table["steal_share"].to_list()[2:] == [
        0.5,
        0.5,
    ]


def test_host_shares_of_each_host(tmp_path: Path) -> None:
    """Shows that the samples of each host, from a file of its own, have the host's name in `where`."""
    run = run_dir(tmp_path / "run", plan([]))
    for name, idle in (("lab1", 2 * S), ("rack.b-2", S)):
        lines = ["0,0,0,0,0,0,0,0,0,0.5,1000,2", f"{S},{2 * S - idle},0,0,{idle},0,0,0,0,0.25,900,2"]
        (run / "raw" / f"host.{name}.csv").write_text("\n".join(lines) + "\n")
    done = reduce_run(run)
    assert not [w for w in done.warnings if w.code == "reduce-absent" and "host" in w.text]
    table = pl.read_parquet(run / "host.parquet")
    assert table["where"].to_list() == ["lab1", "rack.b-2"] * 2
    assert table["busy_share"].to_list()[2:] == [0.0, 0.5]


def test_events_keep_their_arguments_as_text(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", plan([]))
    event = {"t_ns": T0, "planned_ns": T0, "phase": "hold", "action": "impair", "targets": ["wan"],
             "args": {"forward": {"loss": 0.1}}, "ok": True, "error": "", "label": "storm"}  # fmt: skip
    (run / "raw" / "events.jsonl").write_text(json.dumps(event) + "\nnonsense\n")
    done = reduce_run(run)
    row = pl.read_parquet(run / "events.parquet").row(0, named=True)
    assert (
        row["targets"] == ["wan"] and json.loads(row["args"]) == event["args"] and done.tables["events"] == 1
    )
    assert "reduce-odd-lines" in [w.code for w in done.warnings]


def test_a_directory_without_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"plan\.json"):
        reduce_run(tmp_path)


def test_an_older_plan_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", {"format": 1, "nodes": []})
    with pytest.raises(CaptureError, match=r"its plan is of format 1, .* format 2; .*does not tell"):
        reduce_run(run)
    (run / "manifest.json").write_text(json.dumps({"versions": {"vnet": "0.1.0+g1234567"}}))
    with pytest.raises(CaptureError, match=r"that made it: vnet 0\.1\.0\+g1234567"):
        reduce_run(run)


def test_ports_of_applications_come_from_the_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [node("a", ports={"web": [8080, 80], "mail": [25]}), node("b", ports={"web": [80, 81]})]
    run = run_dir(tmp_path / "run", plan(nodes, captures=[{"name": "lan", "keep": True}]))
    (run / "pcap" / "lan.pcap").touch()
    asked = []

    def note(pcap: Path, table: Path, ports: dict[str, tuple[int, ...]], connections: Path) -> None:
        asked.append(ports)
        raise CaptureError("seen")

    monkeypatch.setattr("capture.reduce.reduce_pcap", note)
    monkeypatch.setattr("capture.reduce.reducer", lambda: Path("vnet-reduce"))
    reduce_run(run)
    assert asked == [{"mail": (25,), "web": (80, 81, 8080)}]


def test_quoted_fields_are_read_as_the_agent_writes_them(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", plan([node("p1")]))
    (run / "raw" / "messages.csv").write_text('C,p1,failed,5,"a, ""b"""\nC,p1,failed,6,\nC,p1,failed,7,"\n')
    done = reduce_run(run)
    assert pl.read_parquet(run / "sessions.parquet")["detail"].to_list() == ['a, "b"', ""]
    assert "reduce-odd-lines" in [w.code for w in done.warnings]


def test_counters_of_stacks_have_their_nodes_group(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    raw = run / "raw" / "stacks.csv"
    write_stacks(
        raw, {"s": {"IpInReceives": 5, "UdpNoPorts": 2}}, {"s": {"IpInReceives": 9, "UdpNoPorts": 2}}
    )
    reduce_run(run)
    assert pl.read_parquet(run / "stacks.parquet").rows() == [("s", "IpInReceives", 4, "s")]


def test_disks_of_light_nodes_and_machines_are_one_table(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", PAIR)
    (run / "raw" / "disks.csv").write_text(f"{DISKS_HEADER}s,processes,4096,8192,,,1\n")
    (run / "raw" / "disks.vm.csv").write_text(f"{DISKS_HEADER}s,vda,1,2,3,4,\n")
    reduce_run(run)
    assert pl.read_parquet(run / "disks.parquet").rows() == [
        ("s", "processes", 4096, 8192, None, None, True, "s"),
        ("s", "vda", 1, 2, 3, 4, None, "s"),
    ]


def test_a_machine_that_was_started_again_counts_from_zero(tmp_path: Path) -> None:
    write_stacks(
        tmp_path / "s.csv",
        {"vm": {"TcpRetransSegs": 50}},
        {"vm": {"TcpRetransSegs": 3}, "new": {"IpInReceives": 1}},
    )
    assert (tmp_path / "s.csv").read_text() == "node,counter,value\nnew,IpInReceives,1\nvm,TcpRetransSegs,3\n"
