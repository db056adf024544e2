"""Tests measured delays beside their bounds: a delay above its bound is reported with the part of the model
in doubt.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from synthetic import run_of

from contract.verdict import FAILS, HOLDS
from reports.cell import Cell
from reports.figures.bounds import data
from reports.metrics.bounds import Bounded, _doubt, bounded
from reports.rundir import Run
from reports.study import Study
from reports.warnings import notices

US = 1000
ASK, TELL, TCP = "a.ask", "b.tell", "c.put"


def bound(flow: str, worst_us: int | None, why: str | None = None) -> dict[str, Any]:
    worst = None if worst_us is None else worst_us * US
    return {
        "flow": flow, "class": flow.split(".")[1], "receiver": "server", "least_ns": 0, "worst_ns": worst,
        "no_bound_because": why,
    }  # fmt: skip


def rows(flow: str, pattern: str, *times_us: tuple[int, int]) -> list[dict[str, Any]]:
    """Returns messages that are sent and arrive (or are replied to) the given times, in us, after their
    schedule, after a first message.
    """
    column = "round_trip_ns" if pattern == "request" else "latency_ns"
    return [
        {
            "name": flow, "class": flow.split(".")[1], "receiver": "server", "pattern": pattern,
            "scheduled_ns": n * 10**7, "received_ns": n * 10**7 + took * US, "sent_ns": n * 10**7 + sent * US,
            "latency_ns": 1,
            "round_trip_ns": None, column: took * US,
        }
        for n, (sent, took) in enumerate([(0, 1), *times_us])
    ]  # fmt: skip


def run(*messages: dict[str, Any], plan: dict[str, Any] | None = None, time: str = "virtual") -> Run:
    said = [bound(ASK, 500), bound(TELL, 300), bound(TCP, None, "TCP decides")]
    found = run_of(
        plan=plan, manifest={"time": time}, messages=pl.DataFrame(messages, infer_schema_length=None)
    )
    bounds = {"node_ns": 100 * US, "bounds": said, "assumptions": ["wires take none"]}
    return replace(found, read_bounds=lambda: bounds)


def of(found: Run) -> dict[str, Bounded]:
    return {one.traffic_class: one for one in bounded(found)}


def test_requests_are_held_against_it_until_their_answers() -> None:
    found = of(run(*rows(ASK, "request", (10, 499), (10, 501)), *rows(TELL, "publish", (0, 300))))
    assert (found["ask"].count, found["ask"].over, found["ask"].largest_ns) == (2, 1, 501 * US)
    assert (found["tell"].count, found["tell"].over, found["tell"].doubt) == (1, 0, "")
    assert (found["put"].worst_ns, found["put"].why) == (None, "TCP decides")


def test_a_sender_that_was_late_is_in_doubt_itself() -> None:
    found = of(run(*rows(TELL, "publish", (150, 400), (0, 200))))["tell"]
    assert found.doubt.startswith("the sending end nodes, assumed to need at most 100 us each")
    assert "up to 150 us after" in found.doubt


@pytest.mark.parametrize(
    ("plan", "part"),
    [({}, "the receiving end nodes"), ({"events": [{"action": "impair"}]}, "the links, which the timeline")],
)
def test_what_was_sent_in_time_took_too_long_behind_it(plan: dict[str, Any], part: str) -> None:
    found = of(run(*rows(TELL, "publish", (20, 400)), plan=plan))["tell"]
    assert found.doubt.startswith(part) and "up to 80 us longer than the whole bound" in found.doubt


def study(found: Run) -> Study:
    return Study("crafted", Path("nowhere"), (Cell(found, "all", "one", "run", 1, []),), True)


@pytest.mark.parametrize(("time", "told"), [("virtual", 1), ("real", 0)])
def test_the_page_warns_in_virtual_time_where_nothing_else_can_be_late(time: str, told: int) -> None:
    found = [n for n in notices(study(run(*rows(TELL, "publish", (0, 400)), time=time))) if "bound" in n.text]
    assert len(found) == told and all(
        n.level == "warning" and "400.0 us against 300.0" in n.text for n in found
    )


def test_the_figure_has_a_curve_and_a_bound_for_each_class() -> None:
    frame = data(study(run(*rows(ASK, "request", (0, 400)), *rows(TELL, "publish", (0, 100), (0, 200)))))
    assert frame.get_column("curve").to_list() == ["ask", "tell", "tell"]
    assert frame.get_column("ms").to_list() == pytest.approx([0.4, 0.1, 0.2])
    assert frame.get_column("bound_ms").to_list() == pytest.approx([0.5, 0.3, 0.3])


def test_what_waits_for_arp_with_the_first_message_is_left_out() -> None:
    first, *rest = rows(TELL, "publish", (0, 900), (0, 100))
    # the first message arrives after 1 us
    waiting = {**rest[0], "scheduled_ns": first["scheduled_ns"] + 250 * US}
    assert of(run(first, waiting, rest[1]))["tell"].largest_ns == 100 * US


OVER = pl.DataFrame({"took_ns": [9_000], "after_ns": [9_000], "worst_ns": [5_000]})


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("ab", "the links (a, b failed their checks): "),
        ("aabcde", "the links (a, b, c and 2 more failed their checks): "),
        ("", "the receiving end nodes, "),
    ],
)
def test_all_links_are_named(links: str, said: str) -> None:
    proof = [SimpleNamespace(link=link, verdict=FAILS) for link in links]
    proof.append(SimpleNamespace(link="fine", verdict=HOLDS))
    run: Any = SimpleNamespace(bounds={}, proof=proof, plan=SimpleNamespace(events=()))
    assert _doubt(run, OVER).startswith(said)
