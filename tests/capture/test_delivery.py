"""The verdicts on MQTT's delivery guarantees, message by message."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from rundirs import client, mqtt, received, run_dir, sent

from capture.delivery import Verdict, verdicts
from capture.reduce import reduce_run


def judged(tmp_path: Path, lines: list[str], qos: int, *, clean: bool = True) -> Verdict:
    run = run_dir(tmp_path / "run", [mqtt("p"), mqtt("s", [("m", qos)], clean)])
    (run / "raw" / "messages.csv").write_text("".join([client("s", "subscribed", 0), *lines]))
    reduce_run(run)
    (verdict,) = verdicts(pl.read_parquet(run / "messages.parquet"))
    return verdict


@pytest.mark.parametrize(("qos", "lost", "twice"), [(0, True, False), (1, False, True), (2, False, False)])
def test_each_level_forbids_what_it_promises_to_prevent(
    tmp_path: Path, qos: int, lost: bool, twice: bool
) -> None:
    """Whether a loss, and whether a duplicate, leaves the level's guarantee standing."""
    outcome = "acked" if qos else "sent"
    whole = [sent("p", n, "m", qos, n, outcome) for n in (1, 2, 3)] + [
        received("s", "p", n, qos, n + 0.1) for n in (1, 3)
    ]
    two = received("s", "p", 2, qos, 2.1)
    missing = judged(tmp_path / "a", whole, qos)
    assert (missing.holds, missing.lost, missing.duplicated, missing.expected) == (lost, 1, 0, 3)
    doubled = judged(tmp_path / "b", [*whole, two, two], qos)
    assert (doubled.holds, doubled.lost, doubled.duplicated) == (twice, 0, 1)
    clean = judged(tmp_path / "c", [*whole, two], qos)
    assert clean.holds is True and clean.offending == () and clean.reason == "held for all 3 deliveries"
    assert missing.offending == (() if lost else (("p", 2, "s", "lost"),))
    assert doubled.offending == (() if twice else (("p", 2, "s", "duplicated"),))


def test_what_was_not_sent_or_not_settled_is_counted_apart(tmp_path: Path) -> None:
    lines = [sent("p", 1, "m", 1, 1), received("s", "p", 1, 1, 1.1)]
    lines += [
        sent("p", 2, "m", 1, 2, "unsent"),
        sent("p", 3, "m", 1, 3, "dropped"),
        sent("p", 4, "m", 1, 4, "unacked"),
    ]
    verdict = judged(tmp_path, lines, 1)
    assert verdict.holds is True and (verdict.expected, verdict.unsent, verdict.unsettled) == (1, 2, 1)
    assert "2 scheduled but never sent" in verdict.reason and "1 not settled" in verdict.reason


def test_nothing_sent_cannot_be_judged(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [sent("p", 1, "m", 2, 1, "unsent")], 2)
    assert verdict.holds is None and "cannot be judged" in verdict.reason


def outage(at: float) -> list[str]:
    """A message lost at 10 s, the session's end at `at`, a later message, a good-bye at the end."""
    lines = [
        sent("p", 1, "m", 1, 10),
        client("s", "disconnected", at, "keep alive"),
        client("s", "subscribed", at + 1),
    ]
    return [*lines, sent("p", 2, "m", 1, 90), received("s", "p", 2, 1, 90.1), client("s", "disconnected", 99)]


def test_a_clean_session_that_broke_soon_after_does_not_cover_the_message(tmp_path: Path) -> None:
    soon = judged(tmp_path / "a", outage(12), 1)  # the keep-alive interval is 2 s: 3 s of patience
    assert (soon.holds, soon.lost, soon.uncovered) == (True, 1, 1) and "clean session" in soon.reason
    late = judged(tmp_path / "b", outage(14), 1)
    assert (late.holds, late.lost, late.uncovered) == (False, 1, 0)
    kept = judged(tmp_path / "c", outage(12), 1, clean=False)
    assert (kept.holds, kept.uncovered) == (False, 0)


def test_the_good_bye_at_the_end_excuses_nothing(tmp_path: Path) -> None:
    lines = [sent("p", 1, "m", 1, 10), client("s", "disconnected", 11)]
    assert judged(tmp_path, lines, 1).holds is False


def test_the_level_is_the_lower_of_publication_and_subscription(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [sent("p", 1, "m", 2, 1)], 0)
    assert verdict.qos == 0 and verdict.holds is True and verdict.lost == 1
