"""Tests the first screen of a page: the verdict, then the figures that answer the question, and
one picture.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from pages import check_page
from synthetic import write_campaign, write_run
from synthetic_any import ODD, write_any
from synthetic_shape import Shape

from reports.cell import Cell
from reports.headline import headline_rows
from reports.lines import MOST, lines
from reports.metrics.metric import Metric, Of
from reports.numbers import FEW, plus_minus
from reports.report import report
from reports.sections.section import Page
from reports.sections.validation import COUNTS, _table, section
from reports.series import series
from reports.study import Study, study_of_campaign, study_of_run
from reports.svg import inline

SHAPE = Shape(clients=5, ramp_s=5, hold_s=15)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("first") / "run", SHAPE)


def first_screen(text: str) -> str:
    """Returns the page's text from the title to the third section."""
    begins = [found.start() for found in re.finditer('<section id="', text)]
    return text[text.index("<header>") : begins[2]]


def test_verdict_then_one_table_and_one_picture(run: Path) -> None:
    logs = run / "raw" / "logs"
    logs.mkdir(parents=True)
    (logs / "broker.mosquitto.log").write_text("ready\n")
    (logs / "silent.log").touch()
    text = check_page(report(run))
    first = first_screen(text)
    assert first.index("<strong>Trusted.</strong>") < first.index('id="headline"') < first.index("<table")
    assert first.count("<table") == first.count('<svg class="chart"') == 1
    assert text.count('id="latency-cdf"') == 1, "the picture is not drawn again below"
    assert re.findall(r'href="\.\./raw/logs/([^"]+)"', text) == ["broker.mosquitto.log"]
    assert "virtual-time" not in text


def test_what_was_judged_is_on_the_first_screen(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", replace(SHAPE, loss=0.1, suspect=True))
    first = first_screen(check_page(report(made)))
    assert "<strong>Suspect.</strong>" in first
    assert re.search(r'Delivery guarantees <span class="chip bad">1 fails</span>', first)
    assert re.search(r"Link checks <span class=.chip bad.>1 fails</span>", first)


def test_explanations_are_folded(run: Path) -> None:
    text = check_page(report(run))
    outside = re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
    for words in ("Open loop", "CPU time of the node", "Student's t", "queueing discipline, including"):
        assert words not in outside


def cell(*metrics: Metric, scenario: str = "s", name: str = "one") -> Cell:
    from synthetic import run_of

    return Cell(run_of(), list(metrics), scenario, {}, "measured", 1, name)


def of_class(name: str, **values: float) -> list[Metric]:
    of = Of(traffic_class=name, guarantee="TCP")
    return [Metric(key, of, value, "ms", 100, None, None, "") for key, value in values.items()]


def test_the_worst_classes_come_first_and_a_dozen_rows_suffice() -> None:
    found = []
    for number in range(9):
        found += of_class(f"fast{number}", messages_scheduled=9e6, messages_expected=9e6, messages_lost=0,
                          latency_p50=1, latency_p99=1 + number)  # fmt: skip
    found += of_class("lossy", messages_scheduled=10, messages_expected=10, messages_lost=4, latency_p99=2)
    found += of_class(
        "broken", messages_scheduled=10, messages_expected=10, messages_lost=1, guarantee_held=0
    )
    of = Of(event="cut", traffic_class="lossy")
    found += [Metric("interruption_until", of, 3.5, "s", 1, None, None, "")]
    study = Study("t", Path("r"), (cell(*found),), True)
    texts = [line.text for line in lines(study)]
    assert len(texts) <= MOST
    assert texts[0] == "cut, lossy: recovery time, s"
    assert texts.index("broken: delivery guarantee") < texts.index("lossy: messages lost")
    assert not [text for text in texts if text.startswith("fast0")]
    assert ("broken: delivery guarantee", "fails") in headline_rows(study)


@pytest.mark.parametrize(("count", "shown", "note"), [(4, 4, ""), (5, 3, " (3 fastest of 5)")])
def test_a_row_says_if_slower_transfers_are_left_out(count: int, shown: int, note: str) -> None:
    found = [
        Metric(
            "transfer_rate", Of(traffic_class="bulk", flow=f"s{n}"), 9.0 - n, "Mbit/s", 100, None, None, ""
        )
        for n in range(count)
    ]
    texts = [line.text for line in lines(Study("t", Path("r"), (cell(*found),), True))]
    assert texts == [f"s{n}: rate, Mbit/s{note}" for n in range(shown)]


def test_no_row_of_links_and_load_takes_the_place_of_losses() -> None:
    times = dict.fromkeys(("round_trip_p50", "round_trip_p99", "latency_p50", "latency_p99"), 1.0)
    counts = {"messages_scheduled": 576, "messages_received": 549, "messages_expected": 576}
    faults = {"messages_lost": 10, "messages_unanswered": 27, "guarantee_held": 0}
    rain = Of(event="rain", traffic_class="asks")
    found = of_class("asks", **times, **counts, **faults)
    found += [
        Metric(f"interruption_{name}", rain, 4, "", 1, None, None, "")
        for name in ("until", "lost", "unanswered")
    ]
    way = Of(link="way", direction="reverse")
    found += [
        Metric(name, way, 3, "%", 9, None, None, "") for name in ("link_dropped_share", "link_utilisation")
    ]
    found += [Metric("cpu", Of(group=name), 3, "%", 9, None, None, "") for name in ("server", "client")]
    texts = [line.text for line in lines(Study("t", Path("r"), (cell(*found),), True))]
    assert {"messages lost", "requests unanswered", "delivery guarantee"} <= set(texts)
    assert "way reverse: dropped, % of packets" in texts and len(texts) <= MOST


def test_three_digits_and_only_an_interval_that_shows() -> None:
    assert plus_minus(20.0614, 20.06, 20.063, FEW) == "20.1"
    assert plus_minus(20.0614, 19.0, 21.1, FEW) == "20.1 ± 1.1"
    assert plus_minus(20.0614, 20.06, 20.063) == "20.061 ± 0.002"


def test_a_header_says_a_level_once() -> None:
    from synthetic import run_of

    runs = []
    for system, signals in (("ethernet", 10), ("ethernet", 20), ("fieldbus", 10)):
        plan = {"scenario": f"scenario {system} {signals}", "lab": "x"}
        runs.append((run_of(plan=plan), {"system": system, "signals": signals}))
    assert series(runs) == ["measured"] * 3
    cells = tuple(cell(scenario=f"scenario {n}", name=str(n)) for n in (1, 2))
    study = Study("t", Path("r"), cells, False)
    assert study.named("scenario 1", "measured") == "scenario 1"


def test_equal_rows_of_a_campaign_are_one(tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path / "c", [replace(SHAPE, seed=seed) for seed in (1, 2, 3, 4)])
    part = section(Page(study_of_campaign(campaign), tmp_path))
    assert part is not None and part.title == "Delivery guarantees"
    assert part.body.count("<tr>") == 2 and "4 runs" in part.body, "the header, and one row"


def test_a_failing_run_stands_by_itself_and_first() -> None:
    schema = ("cell", "class", "guarantee", "rule", "verdict", "expected", "lost", "reason")
    rows = [(f"r{n}", "a", "TCP", "at least once", "holds", 10, 0, "") for n in range(5)]
    rows.append(("r9", "a", "TCP", "at least once", "fails", 10, 1, "1 lost"))
    counts = dict.fromkeys(("unanswered", "duplicated", "disordered", "unsent", "unsettled", "late"), 0)
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        **{k: pl.lit(v) for k, v in counts.items()}
    )
    table = _table(Study("t", Path("r"), (), False), frame)
    assert [row[2:5] for row in table.rows] == [
        ("fails", "at least once", "r9"),
        ("holds", "at least once", "5 runs"),
    ]
    assert table.rows[1][5] == "50"


def test_a_reason_of_one_run_among_others_names_the_run() -> None:
    counts = dict.fromkeys(COUNTS, 1)
    rows = [
        {"cell": f"r{n}", "class": "a", "guarantee": "TCP", "rule": "", "verdict": "holds", "reason": reason}
        for n, reason in enumerate(("holds for all 1 deliveries", "holds for all 2 deliveries"))
    ]
    frame = pl.DataFrame([row | counts for row in rows])
    (shown,) = _table(Study("t", Path("r"), (), False), frame).rows
    assert shown[-1] == "r0: holds for all 1 deliveries"
    same = frame.with_columns(reason=pl.lit("holds for all 1 deliveries"))
    (shown,) = _table(Study("t", Path("r"), (), False), same).rows
    assert shown[-1] == "holds for all 1 deliveries"


def test_figures_shrink_with_their_card() -> None:
    drawn = '<svg xmlns="x" width="900" height="300" viewBox="0 0 900 300"><path id="a"/></svg>'
    made = inline(drawn, "key", "label")
    assert 'width="' not in made and "min-width" not in made and 'viewBox="0 0 900 300"' in made
    css = (Path(__file__).parents[2] / "reports" / "page.css").read_text()
    rules = re.findall(r"\.chart\s*\{([^}]*)\}", css)
    assert "width: 100%" in rules[0] and not [rule for rule in rules if "min-width" in rule]


def test_a_run_of_several_classes_shows_round_trips_first(tmp_path: Path) -> None:
    study = study_of_run(write_any(tmp_path / "run"))
    texts = [line.text for line in lines(study)]
    assert texts[0].startswith(f"{ODD}: ") and "round trip" in texts[0]
    assert json.dumps(texts).count("latency") <= 2
