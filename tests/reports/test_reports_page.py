"""Tests the page: self-contained, complete, ordered by importance, and open about missing data."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from hostile_run import make_hostile
from pages import check_page
from synthetic import write_campaign, write_run
from synthetic_shape import Shape

from orchestrator.cli.campaign import refused
from orchestrator.cli.errors import CliError
from reports.headline import headline
from reports.metrics.metric import OF
from reports.page import render
from reports.provenance import provenance
from reports.report import campaign_report, report
from reports.rundir import TABLES, RunDirectoryError
from reports.sections.section import Page
from reports.study import study_of_campaign, study_of_runs

# tables that only some runs have
OF_SOME_RUNS = ("transfers", "windows", "stacks", "impairments", "spans", "disks")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shapes = [Shape(qos=q, seed=r, hold_s=30) for q in (0, 1, 2) for r in (1, 2)]
    return write_campaign(tmp_path_factory.mktemp("page") / "campaign", shapes)


@pytest.fixture(scope="module")
def told(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Returns a copy of the campaign in which all runs have a name, a command and a warning, and its page."""
    copy = tmp_path_factory.mktemp("told") / "campaign"
    shutil.copytree(campaign, copy)
    about = {"name": "levels", "description": "Three levels.", "command": "vnet campaign run levels.yaml"}
    (copy / "campaign.json").write_text(json.dumps(about))
    for path in copy.glob("runs/*/manifest.json"):
        manifest = json.loads(path.read_text()) | {
            "warnings": [{"code": "x", "text": "Same.", "remedy": None}]
        }
        path.write_text(json.dumps(manifest))
    return copy, check_page(campaign_report(copy))


def test_page_of_a_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(suspect=True, loss=0.02))
    (run / "topology.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>')
    text = check_page(report(run))
    order = ["trust", "headline", "paper", "claims", "validation", "messages", "links", "topology", "time"]
    order += ["nodes", "packets", "proof-section", "method", "provenance", "repeat"]
    places = [text.index(f'<section id="{name}">') for name in order]
    assert places == sorted(places)
    assert (
        "Suspect." in text and "link uplink reverse: jitter: requested 2 ms, measured 2.7 to 3.1 ms" in text
    )
    assert "The hypervisor took 4.1 % of the CPU" in text and "Run on a quiet machine." in text
    assert "vnet run topologies/mqtt-1.yaml -p clients=30" in text and "--seed 1 --kernel uml" in text
    summary = json.loads((run / "summary.json").read_text())
    assert {"name", *OF, "value", "unit", "n", "low", "high", "method", "limits"} == set(summary[0])


def test_the_page_names_the_packets_behind_the_slowest_messages(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    plan = json.loads((run / "plan.json").read_text())
    for flow in plan["flows"]:
        flow["payload"]["kind"] = "bytes"
    (run / "plan.json").write_text(json.dumps(plan))
    assert "packets behind" not in report(run).read_text(), "no capture was kept"
    (run / "pcap").mkdir(exist_ok=True)
    (run / "pcap" / f"{plan['captures'][0]['name']}.pcap").touch()
    text = report(run).read_text()
    (message,) = re.findall(r"<code>vnet packets DIR.* --deep --message (\S+:\d+)</code>", text)
    name, _, number = message.rpartition(":")
    rows = pl.read_parquet(run / "messages.parquet").filter(pl.col("latency_ns").is_not_null())
    assert rows.row(by_predicate=(pl.col("name") == name) & (pl.col("seq") == int(number)))


def test_what_is_no_longer_drawn_goes_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    made = report(run).parent
    old = {made / folder / "once-drawn.csv" for folder in ("figures", "tables")}
    theirs = made / "tables" / "notes.csv"
    for file in (*old, theirs):
        file.write_text("a\n")
    page = made / "index.html"
    names = "".join(f'<a href="{file.relative_to(made)}">' for file in old)
    page.write_text(page.read_text() + names + '<a href="../plan.json">')
    before = {file for file in made.rglob("*") if file.is_file()}
    report(run)
    assert before - {file for file in made.rglob("*") if file.is_file()} == old
    assert (run / "plan.json").exists()


def test_page_of_a_campaign(told: tuple[Path, str]) -> None:
    campaign, text = told
    assert "<strong>Trusted.</strong>" in text
    for number in (8, 9, 10, 11, 14, 15):
        assert f'id="figure-{number}"' in text
    assert "Not drawn: needs a run of scenario 2" in text
    assert "0.971" in text and "71.1" in text  # table II as printed
    assert "../runs/000/report/index.html" in text
    assert {row["repetitions"] for row in json.loads((campaign / "summary.json").read_text())} == {2}


def test_how_virtual_machines_came_up_stands_in_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["starts"] = {"nodes": {"a": "restored", "b": "booted", "c": "restored"}, "boot_ns": 1}
    (run / "manifest.json").write_text(json.dumps(manifest))
    text = check_page(report(run))
    assert "1 booted, 2 continued from the snapshot of their boot in an earlier cell" in text


class Elements(HTMLParser):
    """Collects the elements and attributes of a page that could load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.harm: list[tuple[str, str, str | None]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.harm += [
            (tag, name, value)
            for name, value in attributes
            if name.startswith("on") or value == "x" or "javascript:" in (value or "")
        ]


def test_no_name_of_a_run_becomes_part_of_the_page(tmp_path: Path) -> None:
    """Shows that no text of a run directory, which may come from a stranger, becomes markup of the page."""
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    plain = Elements()
    plain.feed(check_page(report(run)))
    make_hostile(run)
    text = report(run).read_text(encoding="utf-8")
    assert "&lt;img src=x" in text
    found = Elements()
    found.feed(text)
    assert not found.harm and found.scripts == plain.scripts
    for figure in run.glob("report/**/*.svg"):
        # Parsing raises ParseError unless the SVG is well-formed.
        root = ElementTree.fromstring(figure.read_text(encoding="utf-8"))
        assert not [e for e in root.iter() if e.tag.endswith(("script", "img")) or "onerror" in e.attrib]


@pytest.mark.parametrize(
    "gone",
    [
        *(f"{name}.parquet" for name in TABLES if name not in OF_SOME_RUNS),
        "proof.json",
        "manifest.json",
        "plan.json",
        "packets",
    ],
)
def test_what_is_missing_is_said_not_crashed_on(tmp_path: Path, gone: str) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    path = run / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    text = check_page(report(run))
    assert (f"{gone} is not there" if gone != "packets" else "packets/lan.parquet is not there") in text


def test_only_a_plan(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole", Shape(hold_s=20))
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(whole / "plan.json", run)
    text = check_page(report(run))
    assert "No figure could be computed" in text
    assert headline(run)[0][0] == "with 95 % intervals"


def test_unreadable_files_are_said(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    (run / "nodes.parquet").write_bytes(b"PAR1 torn")
    (run / "proof.json").write_text("[{")
    (run / "packets" / "lan.parquet").write_bytes(b"")
    text = check_page(report(run))
    for name in ("nodes.parquet", "proof.json", "packets/lan.parquet"):
        assert f"{name} cannot be read" in text


def test_interrupted_before_the_hold(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest |= {"state": "interrupted", "error": "SIGINT", "phases": {"ramp": manifest["phases"]["ramp"]}}
    (run / "manifest.json").write_text(json.dumps(manifest))
    text = check_page(report(run))
    assert "the run&#39;s state is &#39;interrupted&#39;: SIGINT" in text


@pytest.mark.parametrize("name", ["messages", "sessions", "nodes", "links", "host", "events"])
def test_empty_tables(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    path = run / f"{name}.parquet"
    pl.read_parquet(path).clear().write_parquet(path)
    check_page(report(run))


def test_campaign_with_failed_and_torn_cells(campaign: Path, tmp_path: Path) -> None:
    copy = tmp_path / "campaign"
    shutil.copytree(campaign, copy)
    with (copy / "cells.jsonl").open("a") as file:
        line = {
            "cell": "s1-q0-r3",
            "levels": {},
            "repetition": 3,
            "seed": 1,
            "run_dir": "runs/x",
            "state": "failed",
        }
        file.write(json.dumps(line) + '\n{"cell": "s1-q')
    text = check_page(campaign_report(copy))
    assert "the cell ended as &#39;failed&#39;" in text and "cells.jsonl:8: not a finished cell" in text


def test_a_campaign_on_several_machines_names_them(campaign: Path, tmp_path: Path) -> None:
    copy = tmp_path / "campaign"
    shutil.copytree(campaign, copy)
    lines = [json.loads(line) for line in (copy / "cells.jsonl").read_text().splitlines()]
    for names in ("ab", "a"):
        told = [line | {"machine": names[n % len(names)]} for n, line in enumerate(lines)]
        (copy / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
        found = dict(provenance(study_of_campaign(copy))).get("machines of the campaign")
        assert found == {"ab": "a (3 runs); b (3 runs)"}.get(names)


def test_campaign_says_its_name_and_command_and_joins_what_runs_say_alike(told: tuple[Path, str]) -> None:
    _, text = told
    assert "<h1>levels</h1>" in text and "Three levels." in text
    assert "<pre>vnet campaign run levels.yaml</pre>" in text
    assert text.count("Same.") == 1 and "<b>6 runs</b>: Same." in text


def test_a_scenario_of_an_instant_has_no_plot_over_time(tmp_path: Path) -> None:
    """Shows that a run of 6 ms has no plot over time; its samples, once a second, would lie half a million
    pixels beside the axis.
    """
    run = write_run(tmp_path / "run", Shape(hold_s=20))
    manifest = json.loads((run / "manifest.json").read_text())
    begin = manifest["phases"]["ramp"][0]
    end = begin + 6_000_000
    manifest |= {
        "state": "interrupted",
        "phases": {"ramp": [begin, end], "hold": [end, end], "drain": [end, end]},
    }
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert "Nothing to draw: the scenario ended in its first second" in check_page(report(run))
    assert not list((run / "report" / "figures").glob("host-load*"))
    assert all(file.stat().st_size < 1 << 20 for file in (run / "report" / "figures").iterdir())


def test_a_set_of_runs(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"run{q}", Shape(qos=q, hold_s=20)) for q in (0, 1)]
    study = study_of_runs("two levels", tmp_path, runs)
    (tmp_path / "report").mkdir()
    assert "two levels" in render(Page(study, tmp_path / "report", {}), lambda *_: None)


def test_headline_of_run_and_campaign(campaign: Path, tmp_path: Path) -> None:
    rows = headline(campaign)
    assert rows[0] == ("with 95 % intervals", "QoS 0", "QoS 1", "QoS 2")
    found = {row[0]: row[1:] for row in rows}
    assert found["delivery guarantee"] == ("holds in 2 of 2",) * 3
    assert all(" ± " in cell for cell in found["broker CPU, % of a core"])
    assert "machine busy, %" in found
    one = write_run(tmp_path / "run", dataclasses.replace(Shape(), loss=0.1, hold_s=20))
    assert ("delivery guarantee", "fails") in headline(one)


def test_a_campaign_of_an_earlier_version_is_refused_and_left_as_it_is(
    campaign: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "campaign"
    shutil.copytree(campaign, copy)
    (copy / "summary.json").write_text("as it was written")
    for path in copy.glob("runs/*/plan.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with pytest.raises(RunDirectoryError, match=r"plan is of format 1, .* with the version that made it"):
        campaign_report(copy)
    with pytest.raises(CliError, match="plan is of format 1"), refused():
        headline(copy)
    assert (copy / "summary.json").read_text() == "as it was written"


def test_no_campaign_file_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"a campaign directory holds cells\.jsonl"):
        campaign_report(tmp_path)
