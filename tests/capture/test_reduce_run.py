"""The reduction of a run directory: joins, rates, cut and absent files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from rundirs import T0, S, client, mqtt, received, run_dir, sent

from capture.errors import CaptureError
from capture.reduce import reduce_run


def warned(path: Path) -> list[str]:
    return [w["code"] for w in json.loads((path / "manifest.json").read_text())["warnings"]]


def test_messages_are_joined_with_their_expected_subscribers(tmp_path: Path) -> None:
    nodes = [mqtt("p1"), mqtt("all", [("m/#", 1)]), mqtt("one", [("m/+/x", 2)]), mqtt("late", [("m/1/x", 1)])]
    run = run_dir(tmp_path / "run", nodes)
    lines = [client("all", "subscribed", 0), client("one", "subscribed", 0), client("late", "subscribed", 9)]
    lines += [sent("p1", 1, "m/1/x", 1, 1), sent("p1", 2, "m/1/x", 1, 2), sent("p1", 3, "m/1", 1, 3)]
    lines += [sent("p1", 4, "other, with comma", 1, 4), sent("p1", 5, "m/1/x", 1, 5, "unsent")]
    lines += [
        received("all", "p1", 2, 1, 2.1),
        received("all", "p1", 1, 1, 2.2),
        received("all", "p1", 1, 1, 2.3, 1),
    ]
    lines += [received("one", "p1", 1, 1, 1.5)]
    (run / "raw" / "messages.csv").write_text("".join(lines))
    reduce_run(run)
    table = pl.read_parquet(run / "messages.parquet")
    rows = {(r["seq"], r["subscriber"]): r for r in table.iter_rows(named=True)}
    assert set(rows) == {
        (1, "all"), (1, "one"), (2, "all"), (2, "one"), (3, "all"), (4, None), (5, "all"), (5, "one"),
    }  # fmt: skip
    first = rows[1, "all"]
    assert (first["copies"], first["reordered"], first["latency_ns"]) == (2, True, round(1.2 * S))
    assert rows[2, "all"]["reordered"] is False and rows[2, "one"]["received_ns"] is None
    assert rows[1, "one"]["latency_ns"] == S // 2 and rows[2, "one"]["copies"] == 0
    assert rows[4, None]["topic"] == "other, with comma" and rows[5, "all"]["sent_ns"] is None
    assert pl.read_parquet(run / "clients.parquet").columns == ["client", "what", "t_ns", "detail"]


def test_a_cut_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", [mqtt("p1"), mqtt("s", [("m", 1)])])
    whole = client("s", "subscribed", 0) + sent("p1", 1, "m", 1, 1)
    cut = received("s", "p1", 1, 1, 1.25).rstrip("\n")[:-3]  # still reads as a record, of a wrong time
    (run / "raw" / "messages.csv").write_text(whole + cut)
    done = reduce_run(run)
    assert pl.read_parquet(run / "messages.parquet")["received_ns"].to_list() == [None]
    assert "reduce-cut" in warned(run) and "reduce-cut" in [w.code for w in done.warnings]


def test_absent_files_are_said_once_however_often_it_is_reduced(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", [mqtt("p1")], [{"name": "lan", "keep": True}])
    reduce_run(run)
    first = warned(run)
    reduce_run(run)
    assert first.count("reduce-absent") == 4 and warned(run) == first  # nodes, host, messages, pcap


def test_lines_of_another_kind_are_counted(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", [mqtt("p1"), mqtt("s", [("m", 1)])])
    (run / "raw" / "messages.csv").write_bytes(
        b"X,what\nS,p1,notanumber,m\n\x00\x00\n" + sent("p1", 1, "m", 0, 1).encode()
    )
    done = reduce_run(run)
    assert [w.code for w in done.warnings].count("reduce-odd-lines") == 2
    assert done.tables["messages"] == 1


def test_rates_and_shares_are_over_the_interval_before(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", [mqtt("p1"), mqtt("p2")])
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
    run = run_dir(tmp_path / "run", [])
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


def test_events_keep_their_arguments_as_text(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", [])
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


def test_quoted_fields_are_read_as_the_agent_writes_them(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "run", [mqtt("p1")])
    (run / "raw" / "messages.csv").write_text('C,p1,failed,5,"a, ""b"""\nC,p1,failed,6,\nC,p1,failed,7,"\n')
    done = reduce_run(run)
    assert pl.read_parquet(run / "clients.parquet")["detail"].to_list() == ['a, "b"', ""]
    assert "reduce-odd-lines" in [w.code for w in done.warnings]
