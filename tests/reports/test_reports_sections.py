"""Tests that each section is present if the run has data for it, and absent if not, for any software."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from pages import check_page
from synthetic import plan_of, run_of, write_run
from synthetic_any import ODD, write_any
from synthetic_shape import T0, S, Shape

from reports.headline import headline
from reports.metrics import goodput
from reports.metrics.goodput import addresses_behind
from reports.metrics.links import link_metrics
from reports.metrics.metric import Of, find
from reports.metrics.summary import measured, summarise
from reports.metrics.transfers import transfer_metrics
from reports.report import report
from reports.rundir import read_run
from reports.sections.registry import SECTIONS
from reports.sections.section import Page
from reports.study import study_of_run
from reports.svg import slim

ALWAYS = ["trust", "headline", "method", "provenance", "repeat"]


@pytest.fixture(scope="module")
def anything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_any(tmp_path_factory.mktemp("any") / "run")
    report(run)
    return run


def sections(text: str) -> list[str]:
    return re.findall(r'<section id="([^"]+)">', text)


def page_of(run: Path) -> str:
    return check_page(run / "report" / "index.html")


def test_a_run_of_anything_has_a_section_for_all_that_it_did(anything: Path) -> None:
    found = sections(page_of(anything))
    wanted = ["validation", "messages", "transfers", "links", "time", "nodes", "connections", "packets"]
    assert [name for name in found if name not in ALWAYS] == [*wanted, "proof-section", "checks"]


def test_proof_csv_has_every_check_of_the_links(anything: Path) -> None:
    """Shows that proof.csv has every check of proof.json, also those that the chart beside it leaves out."""
    judged = json.loads((anything / "proof.json").read_text())
    table = pl.read_csv(anything / "report" / "tables" / "proof.csv", infer_schema_length=None)
    assert len(judged) == table.height > 0
    assert set(table.get_column("quantity")) == {one["quantity"] for one in judged}


def test_a_page_does_not_write_two_tables_of_one_name(tmp_path: Path) -> None:
    page = Page(study_of_run(write_run(tmp_path / "run", Shape(hold_s=5))), tmp_path / "report")
    page.write("loss", "Loss", pl.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="two tables of this name"):
        page.write("loss", "Loss by link", pl.DataFrame({"a": [2]}))


def test_contents_list_names_the_sections_that_are_there(anything: Path) -> None:
    text = page_of(anything)
    contents = text[text.index('<nav id="contents">') : text.index("</nav>")]
    linked = re.findall(r'href="#([^"]+)"', contents)
    assert [name for name in linked if name in sections(text)] == sections(text)


def test_without_a_reference_no_paper_is_mentioned(anything: Path) -> None:
    assert "paper" not in re.sub(r"<style>.*?</style>|[a-z]*paper[a-z]*=", "", page_of(anything), flags=re.S)


def test_what_nothing_was_recorded_of_is_absent(tmp_path: Path) -> None:
    run = write_any(tmp_path / "run", flows=False)
    report(run)
    found = sections(page_of(run))
    assert not {"messages", "validation", "transfers", "connections", "paper", "claims", "levels"} & set(
        found
    )
    assert {"links", "nodes", "packets", "time"} <= set(found)
    assert "Not drawn" not in page_of(run) and "is not there" not in page_of(run)


def test_a_run_without_anything_has_the_sections_that_always_are(tmp_path: Path) -> None:
    whole = write_any(tmp_path / "whole", flows=False)
    plan = json.loads((whole / "plan.json").read_text())
    run = tmp_path / "run"
    run.mkdir()
    (run / "plan.json").write_text(json.dumps(plan | {"links": [], "captures": []}))
    report(run)
    assert sections(page_of(run)) == ALWAYS
    assert len(SECTIONS) == len(set(SECTIONS))


def test_names_from_the_file_are_escaped(anything: Path) -> None:
    text = page_of(anything)
    assert ODD not in text and "&lt;i&gt;ask&lt;/i&gt; &amp; &#34;co&#34;" in text


def test_messages_by_class_and_what_was_missed(anything: Path) -> None:
    metrics = summarise(read_run(anything))
    ask, tell = Of(traffic_class=ODD, guarantee="UDP"), Of(traffic_class="client.tell", guarantee="TCP")
    values = {
        name: m.value
        for name in ("scheduled", "unanswered", "late")
        if (m := find(metrics, f"messages_{name}", ask))
    }
    assert values == {"scheduled": 200, "unanswered": 10, "late": 14}
    assert find(metrics, "round_trip_max", ask).value == 120.0  # type: ignore[union-attr]
    assert find(metrics, "messages_late", tell) is None and find(metrics, "round_trip_p50", tell) is None
    rows = {row[0]: row[1] for row in headline(anything)}
    assert (
        rows[
            f"{ODD}, UDP: deadlines missed"
            if f"{ODD}, UDP: deadlines missed" in rows
            else f"{ODD}: deadlines missed"
        ]
        == "14"
    )
    assert rows["client.tell: messages lost"] == "0"


def test_what_stacks_dropped_is_summed_by_group(anything: Path) -> None:
    found = find(summarise(read_run(anything)), "stack_buffer_full", Of(group="client", role="client"))
    assert found and (found.value, found.n) == (21.0, 3)
    text = page_of(anything)
    assert "dropped, receive buffer full" in text and "reassembly failed" not in text


def test_disks_are_summed_by_group_and_memory_is_said(anything: Path) -> None:
    metrics, of = summarise(read_run(anything)), Of(group="client", role="client")
    found = {name: find(metrics, f"disk_{name}", of) for name in ("read", "written", "memory")}
    values = {name: (m.value, m.n) for name, m in found.items() if m}
    assert values == {"read": (6.0, 3), "written": (1.5, 3), "memory": (3.0, 3)}
    text = page_of(anything)
    assert "read from disks, MB" in text and "nodes whose own files are in memory" in text


def test_transfers_say_rate_and_retransmissions(anything: Path) -> None:
    metrics = summarise(read_run(anything))
    of = Of(traffic_class="load.bulk", flow="load.bulk")
    rate, again = find(metrics, "transfer_rate", of), find(metrics, "transfer_retransmits", of)
    assert rate and again and (rate.value, again.value) == (8.0, 60.0)
    assert find(metrics, "transfer_bytes", of).value == 20.0  # type: ignore[union-attr]
    assert (anything / "report" / "tables" / "transfers-time.csv").exists()
    windows = pl.read_csv(anything / "report" / "tables" / "transfers-windows.csv")
    assert windows["segments"].to_list() == [30] * 10, "both connections together"


def test_a_transfer_that_stood_still_was_slow() -> None:
    """Shows that a transfer's mean rate includes the 9 s in which it stalled, and that a last count just
    after the previous one does not distort it.
    """
    counts = [(second, second * 1_000_000) for second in range(11)]
    counts += [(second, (second - 10) * 1_000_000) for second in range(20, 31)]
    rows = [
        {
            "t_ns": T0 + round(second * S),
            "name": "load",
            "class": "bulk",
            "leg": 1,
            "bytes": carried,
            "bps": None,
            "retransmits": None,
            "lost": None,
            "rtt_ns": None,
        }
        for second, carried in [*counts, (30.01, 20_000_000)]
    ]
    table = pl.DataFrame(rows)
    rate = find(
        transfer_metrics(run_of(transfers=table)), "transfer_rate", Of(traffic_class="bulk", flow="load")
    )
    assert rate and rate.value == pytest.approx(160 / 30.01) and rate.n == 30


def test_connections_are_summed_and_the_busiest_come_first(anything: Path) -> None:
    metrics = summarise(read_run(anything))
    count, again = (
        find(metrics, name, Of(capture="lan")) for name in ("connections", "connection_retransmissions")
    )
    assert count and again and (count.value, again.value) == (12, 12)
    rows = pl.read_csv(anything / "report" / "tables" / "connections.csv")
    first = rows.row(0, named=True)
    assert (first["stream"], first["payload_bytes"], first["mbps"]) == (11, 21_000, 0.168)
    assert (first["handshake_ms"], first["rtt_ms"]) == (41.1, 45.0)
    text = page_of(anything)
    assert text.index("10.10.0.13:40011") < text.index("10.10.0.12:40010")


def test_links_have_utilisation_where_a_rate_was_asked(anything: Path) -> None:
    metrics = summarise(read_run(anything))
    forward, reverse = (Of(link="uplink", direction=way) for way in ("forward", "reverse"))
    carried, used = find(metrics, "link_carried", forward), find(metrics, "link_utilisation", forward)
    assert carried and used and used.value == pytest.approx(carried.value / 10 * 100)
    assert find(metrics, "link_utilisation", reverse) is None and find(metrics, "link_carried", reverse)


def test_utilisation_is_of_the_rate_of_the_moment_and_counters_may_begin_anew() -> None:
    """Shows that utilisation uses the rate of each moment (8 Mbit/s at rates of 10, 20 and none), and that
    restarted counters do not distort the share of drops.
    """
    seconds = range(30)
    links = pl.DataFrame(
        {
            "t_ns": [T0 + second * S for second in seconds],
            "link": "uplink",
            "direction": "forward",
            "bps": 8e6,
            # the queueing discipline is replaced twice
            "packets": [75 * (second % 10) for second in seconds],
            "dropped": [25 * (second % 10) for second in seconds],
            "backlog_packets": 0,
        }
    )
    changes = [(10, 20_000_000, True), (15, 40_000_000, False), (20, 0, True)]
    events = pl.DataFrame(
        [
            {
                "t_ns": T0 + second * S + S // 2,
                "action": "impair",
                "targets": ["uplink"],
                "args": json.dumps({"forward": {"rate_bps": rate}, "reverse": None}),
                "ok": ok,
            }
            for second, rate, ok in changes
        ]
    )
    plan = {"links": [{"name": "uplink", "forward": {"impairment": {"rate_bps": 10_000_000}}}]}
    metrics = link_metrics(run_of(plan=plan, links=links, events=events))
    of = Of(link="uplink", direction="forward")
    used, most, share = (
        find(metrics, name, of) for name in ("link_utilisation", "link_utilisation_p99", "link_dropped_share")
    )
    assert used and most and share
    # 80 % from 0 to 10 s, 40 % from 12 to 20 s; the rate changed in the eleventh second
    assert used.n == 20 and used.value == pytest.approx((11 * 80 + 9 * 40) / 20)
    assert most.value == pytest.approx(80) and share.value == pytest.approx(25)
    assert "events changed" in used.method


def test_the_proof_says_what_the_asked_value_makes(anything: Path) -> None:
    rows = re.findall(r">delay, ms</td><td>20</td><td>([^<]+)</td><td class=.line.>20.06<", page_of(anything))
    assert rows == ["21.2", "21.2"]  # one value for the forward and one for the reverse direction


def test_addresses_on_the_near_side_of_a_link(anything: Path) -> None:
    plan = json.loads((anything / "plan.json").read_text())
    everyone = {face["address"] for node in plan["nodes"] for face in node["interfaces"]}
    # all nodes are connected to lan, the link's first end
    assert addresses_behind(plan_of(plan), "uplink") == everyone
    access = {"name": "access", "a": "client1", "b": "lan"}
    only = addresses_behind(plan_of({**plan, "links": [*plan["links"], access]}), "access")
    assert only == {"10.10.0.3"}  # the address of the second node, because the first is the broker


def test_a_link_between_nodes_has_two_sides() -> None:
    """Shows the addresses on the first side of a link between nodes; with forwarding nodes and another link
    around it, both addresses are on that side.
    """
    faces = {"left": ("wire", "10.0.0.1"), "right": ("wire", "10.0.0.2")}
    nodes = [
        {"name": name, "interfaces": [{"segment": segment, "address": address}]}
        for name, (segment, address) in faces.items()
    ]
    link = {"name": "wire", "a": "left", "b": "right", "kind": "nodes"}
    assert addresses_behind(plan_of({"nodes": nodes, "links": [link]}), "wire") == {"10.0.0.1"}
    around = {**link, "name": "around"}
    assert addresses_behind(plan_of({"nodes": nodes, "links": [link, around]}), "wire") == {"10.0.0.1"}
    routers = [{**one, "forward": True} for one in nodes]
    assert addresses_behind(plan_of({"nodes": routers, "links": [link, around]}), "wire") == {
        "10.0.0.1",
        "10.0.0.2",
    }


@pytest.mark.parametrize(("forward", "near"), [(False, {"10.0.0.1", "10.0.0.9"}), (True, set("1239"))])
def test_a_host_with_a_foot_on_each_side_joins_them_only_if_it_forwards(
    forward: bool, near: set[str]
) -> None:
    def faces(*places: tuple[str, str]) -> list[dict[str, str]]:
        return [{"segment": segment, "address": address} for segment, address in places]

    nodes = [
        {"name": "left", "interfaces": faces(("a", "10.0.0.1"))},
        {"name": "right", "interfaces": faces(("b", "10.0.0.2"))},
        {"name": "both", "forward": forward, "interfaces": faces(("a", "10.0.0.9"), ("b", "10.0.0.3"))},
    ]
    link = {"name": "wan", "a": "a", "b": "b", "kind": "segments"}
    whole = {f"10.0.0.{last}" for last in near} if forward else near
    assert addresses_behind(plan_of({"nodes": nodes, "links": [link]}), "wan") == whole


def test_summary_is_read_until_a_table_is_newer(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    report(run)
    path = run / "summary.json"
    path.write_text(path.read_text().replace('"name": "packets"', '"name": "as it was written"'))
    assert any(m.name == "as it was written" for m in measured(read_run(run)))
    pl.read_parquet(run / "nodes.parquet").write_parquet(run / "nodes.parquet")
    assert not any(m.name == "as it was written" for m in measured(read_run(run)))
    path.write_text('[{"name": "of another version"}]')
    assert measured(read_run(run)) == summarise(read_run(run))


def test_slim_drawings_keep_text_and_tenths_of_a_pixel() -> None:
    text = '<text transform="translate(1.23456,2)" opacity="1" font-family="A">1.2345</text>'
    small = '<svg font-family="A" width="9"><text transform="translate(1.2,2)">1.2345</text></svg>'
    assert slim(f'<svg width="9">{text}</svg>') == small


@pytest.mark.parametrize(
    ("captures", "lossy", "datagrams", "mbps"),
    [
        ({"early": "segment a"}, True, 9, None),
        ({"early": "node left"}, True, 9, None),
        ({"early": "segment a", "late": "node right"}, True, 9, 1.0),
        ({"late": "segment b"}, True, 9, 1.0),
        ({"early": "segment a"}, False, 9, 2.0),
        ({"early": "segment a"}, True, 0, 2.0),
        ({"early": "link wan"}, True, 9, 2.0),
    ],
)
def test_datagrams_that_a_link_drops_afterwards_are_none_of_its_goodput(
    monkeypatch: pytest.MonkeyPatch,
    captures: dict[str, str],
    lossy: bool,
    datagrams: int,
    mbps: float | None,
) -> None:
    nodes = [
        {"name": name, "interfaces": [{"segment": segment, "address": address}]}
        for name, segment, address in (("left", "a", "10.0.0.1"), ("right", "b", "10.0.0.2"))
    ]
    plan = {"nodes": nodes, "links": [{"name": "wan", "a": "a", "b": "b", "kind": "segments"}]}
    plan["captures"] = [{"name": name, "at": at} for name, at in captures.items()]

    def pairs(path: Path, _: object) -> pl.DataFrame:
        packets = 2 if path.name == "early" else 1
        row = {"src": "10.0.0.1", "dst": "10.0.0.2", "packets": packets, "payload": packets * 125_000}
        return pl.DataFrame([row | {"datagrams": datagrams}])

    monkeypatch.setattr(goodput, "_pairs", pairs)
    monkeypatch.setattr(goodput, "phases", lambda _: {"hold": SimpleNamespace(seconds=1)})
    run: Any = SimpleNamespace(captures={name: Path(name) for name in captures}, plan=plan_of(plan))
    found = goodput.crossing(run, ["wan"], {("wan", "forward")} if lossy else ())
    assert found.get(("wan", "forward"), (None,))[0] == (None if mbps is None else mbps * 1e6)
