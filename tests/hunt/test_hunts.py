"""Tests whole hunts whose trials have simulated outcomes: what is found and written, and what survives a
kill. No lab runs, but the file is read, checked, planned and written as in a real hunt.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.errors import DONE, UNMET, UNTOLD
from orchestrator.cli.hunt import said, status_of
from orchestrator.hunt import checking
from orchestrator.hunt.checking import Settings
from orchestrator.hunt.found import Found, as_data, ways
from orchestrator.hunt.hunt import hunt
from orchestrator.hunt.journal import LINES
from orchestrator.hunt.model import HuntError, Outcome
from orchestrator.hunt.trials import Trials
from orchestrator.language.problem import TopologyError
from orchestrator.language.source import read_document
from reports import hunts

FILE = """\
name: small
parameters: {delay: {type: number, default: 20}}
segments: {near: {subnet: 10.50.0.0/24}, far: {subnet: 10.50.0.0/24}}
nodes:
  server: {segment: far, software: {web: {command: "sleep 100"}, log: {command: "sleep 100"}}}
  other: {segment: near, software: {idle: {command: "sleep 100"}}}
links: {wan: {between: [near, far], both: {delay: "${delay} ms"}}}
run: {hold: 20 s}
expect: [{delivered: exactly-once}]
hunt:
  faults:
    - {kill: server, software: web, for: 0.1..5 s}
    - {link-down: wan, for: 0.1..5 s}
    - {freeze: other, software: idle, for: 10 ms..2 s}
  vary: {delay: 10..40}
  at_most: {events: 4, trials: 40}
"""
EXPECTED = "delivered exactly-once"


def invented(text: str) -> Outcome:
    """Returns the simulated outcome of a trial's file: an event `kill` loses a message, and a link that is
    down duplicates one.
    """
    events = read_document("trial", text.encode()).data.get("timeline") or []
    kinds = {key for event in events for key in event}
    said = ["1 lost"] * ("kill" in kinds) + ["2 twice"] * ("link-down" in kinds)
    shown = (*sorted(kinds), f"{len(events)} events")
    if not said:
        return Outcome(0, "holds", features=shown)
    return Outcome(0, "fails", (EXPECTED,), (f"{', '.join(said)} of 9 deliveries",), shown)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Returns settings of a hunt whose trials have the outcomes of `invented`."""

    def executed(trials: Trials, text: str, run_dir: Path, _key: str, _when: str) -> Outcome:
        trials.ran += 1
        (run_dir / "manifest.json").write_text(json.dumps({"hashes": {"all": text}}))
        return invented(text)

    monkeypatch.setattr(Trials, "_executed", executed)
    # the simulated runs have no records to report
    monkeypatch.setattr("orchestrator.hunt.hunt.report", lambda _: None)
    # the real function would look for the lab kernel
    monkeypatch.setattr(checking, "prepare", lambda *_: None)
    (tmp_path / "small.yaml").write_text(FILE)
    return Settings(tmp_path / "small.yaml", {}, tmp_path / "out")


def silent(_: str) -> None:
    """Drops the messages of a hunt."""


def told(found: Found, directory: Path) -> dict[str, Any]:
    """Returns the results of a hunt without its duration, place and recordings, which differ between equal
    hunts.
    """
    data = as_data(found, directory)
    for key in ("directory", "searched_s", "shrunk_s", "runs", "shrinking_runs", "corpus"):
        data.pop(key)
    for one in data["violations"]:
        one["file"], one["run_dir"] = Path(one["file"]).name, Path(one["run_dir"]).name
    return data


def test_lost_and_doubled_messages_are_two_violations_each_of_one_event(asked: Settings) -> None:
    found = hunt(asked, silent)
    ways = {
        one.way: [next(k for k in e if k != "at") for e in one.smallest.events] for one in found.violations
    }
    assert ways == {f"{EXPECTED}: lost": ["kill"], f"{EXPECTED}: twice": ["link-down"]}
    assert found.trials == 40 and found.fails == len({n for one in found.violations for n in one.trials})
    for one in found.violations:
        text = Path(one.file).read_text()
        assert invented(text).why == one.why and "hunt:" not in text and one.repeats
        assert read_document("r", text.encode()).data["parameters"]["delay"]["default"] == 10


def test_any_number_of_workers_finds_the_same(asked: Settings, tmp_path: Path) -> None:
    found = [
        told(hunt(replace(asked, workers=count, directory=tmp_path / f"of{count}"), silent), tmp_path)
        for count in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("killed_at", [3, 11, 20])
def test_a_hunt_that_was_killed_loses_nothing(
    asked: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    whole = hunt(replace(asked, directory=tmp_path / "whole"), silent)
    alike = Trials._executed

    def killed(trials: Trials, *given: Any) -> Outcome:
        if trials.ran == killed_at:
            raise KeyboardInterrupt
        return alike(trials, *given)

    monkeypatch.setattr(Trials, "_executed", killed)
    with pytest.raises(KeyboardInterrupt):
        hunt(asked, silent)
    lines = (asked.directory / LINES).read_text().splitlines()
    with (asked.directory / LINES).open("a") as book:
        book.write(lines[-1][:20])  # a line that the kill has cut off
    monkeypatch.setattr(Trials, "_executed", alike)
    again = hunt(asked, silent)
    assert told(again, tmp_path) == told(whole, tmp_path)
    keys = [json.loads(line)["key"] for line in (asked.directory / LINES).read_text().splitlines()]
    recorded = (tmp_path / "whole" / LINES).read_text().splitlines()
    assert len(keys) == len(set(keys)) == len(recorded), "each trial once"
    assert keys[: len(lines)] == [json.loads(line)["key"] for line in lines]
    assert not (asked.directory / "trials").exists()


def test_reproductions_of_earlier_hunts_run_first_and_stay(asked: Settings) -> None:
    corpus = asked.directory / "reproductions"
    corpus.mkdir(parents=True)
    (corpus / "01-kill.yaml").write_text("timeline: [{at: hold, kill: server}]\n")
    (corpus / "02-mended.yaml").write_text("timeline: []\n")
    found = hunt(replace(asked, trials=16), silent)
    assert found.corpus == {"01-kill.yaml": "fails", "02-mended.yaml": "holds"}
    assert (corpus / "01-kill.yaml").read_text() == "timeline: [{at: hold, kill: server}]\n"
    written = {Path(one.file).name for one in found.violations}
    assert written and not written & set(found.corpus)


def test_a_baseline_that_fails_ends_the_hunt(asked: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Outcome(0, "fails", (EXPECTED,), ("1 lost of 9 deliveries",))
    monkeypatch.setattr(Trials, "_executed", lambda *_: bad)
    with pytest.raises(HuntError, match=r"small.yaml: expect: .* fails without any fault \(1 lost of 9"):
        hunt(asked, silent)


def mended(expected: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the runs whose file contains the text `expected` have this outcome, and all others hold."""

    def executed(trials: Trials, text: str, run_dir: Path, _key: str, _when: str) -> Outcome:
        trials.ran += 1
        (run_dir / "manifest.json").write_text(json.dumps({"hashes": {"all": text}}))
        return outcome if expected in text else Outcome(0, "holds")

    monkeypatch.setattr(Trials, "_executed", executed)


def test_a_hunt_without_a_trial_cannot_tell(asked: Settings) -> None:
    found = hunt(replace(asked, budget_s=0.0), silent)
    assert (found.trials, found.violations, status_of(found)) == (0, [], UNTOLD)
    assert "cannot tell: no trial was run: the limits were reached before the first" in said(found)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome(0, "holds"), DONE),
        (Outcome(0, "fails", (EXPECTED,), ("1 lost of 9 deliveries",)), UNMET),
        (Outcome(0, "cannot tell", why=("no message was sent",)), UNTOLD),
        (Outcome(0, "aborted", error="the program does not start"), UNTOLD),
    ],
)
def test_the_exit_status_says_what_came_of_the_corpus(
    asked: Settings, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, status: int
) -> None:
    corpus = asked.directory / "reproductions"
    corpus.mkdir(parents=True)
    (corpus / "01-kill.yaml").write_text("name: earlier\n")
    mended("earlier", outcome, monkeypatch)
    found = hunt(replace(asked, trials=2), silent)
    assert (found.trials, found.corpus["01-kill.yaml"], status_of(found)) == (2, outcome.state, status)


def test_runs_that_hold_are_repeated_too_and_unequal_ones_are_a_doubt(
    asked: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def executed(trials: Trials, _: str, run_dir: Path, key: str, _when: str) -> Outcome:
        trials.ran += 1
        chance = trials.ran if key.endswith("-again") else 0
        (run_dir / "manifest.json").write_text(json.dumps({"hashes": {"all": chance}}))
        return Outcome(0, "holds")

    monkeypatch.setattr(Trials, "_executed", executed)
    found = hunt(asked, silent)
    assert (found.trials, found.repeated) == (40, 3), "the baseline, trials 1 and 33"
    assert found.unequal == ["trial 1", "trial 33"] and status_of(found) == UNTOLD
    assert as_data(found, asked.directory)["doubts"] == [f"two runs differ: {name}" for name in found.unequal]


def test_outcomes_of_other_programs_are_not_mixed_with_new_ones(
    asked: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    hunt(replace(asked, trials=1), silent)

    def newer(trials: Trials, text: str, run_dir: Path, _key: str, _when: str) -> Outcome:
        (run_dir / "manifest.json").write_text(json.dumps({"hashes": {"all": f"newer {text}"}}))
        return invented(text)

    monkeypatch.setattr(Trials, "_executed", newer)
    with pytest.raises(HuntError, match=r"no more what it was: .*give another --out"):
        hunt(replace(asked, trials=1), silent)


@pytest.mark.parametrize("by_chance", [False, True])
def test_a_journal_without_hashes_is_taken_up_after_two_fresh_runs(
    asked: Settings, monkeypatch: pytest.MonkeyPatch, by_chance: bool
) -> None:
    hunt(replace(asked, trials=1), silent)
    book = asked.directory / LINES
    entries = [json.loads(line) for line in book.read_text().splitlines()]
    book.write_text("".join(json.dumps({**entry, "hashed": ""}) + "\n" for entry in entries))

    def executed(trials: Trials, text: str, run_dir: Path, _key: str, _when: str) -> Outcome:
        trials.ran += 1
        chance = trials.ran if by_chance else 0
        (run_dir / "manifest.json").write_text(json.dumps({"hashes": {"all": f"{chance} {text}"}}))
        return invented(text)

    monkeypatch.setattr(Trials, "_executed", executed)
    found = hunt(replace(asked, trials=1), silent)
    assert (found.repeated, found.unequal) == (1, ["the baseline"] if by_chance else [])


def test_a_reproduction_that_does_not_fail_again_does_not_repeat(
    asked: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = Trials._executed

    def once(trials: Trials, text: str, run_dir: Path, key: str, when: str) -> Outcome:
        outcome = alike(trials, text, run_dir, key, when)
        return Outcome(0, "holds") if key.startswith("kept-") else outcome

    monkeypatch.setattr(Trials, "_executed", once)
    found = hunt(replace(asked, trials=8, also_real=1), silent)
    assert found.violations and not any(one.repeats for one in found.violations)
    assert all((one.real, one.real_runs) == (0, 1) for one in found.violations)
    assert any("NOT repeated" in line for line in said(found)) and status_of(found) == UNMET


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("expect: [{delivered: exactly-once}]\n", "", "expect: states no expectation"),
        ("vary: {delay: 10..40}", "vary: {delay: [slow]}", "delay"),
        ("kill: server", "kill: sever", "sever"),
        ("0.1..5 s}\n    - {link", "5..0.1 s}\n    - {link", "is an empty range"),
        ("  vary:", "  quiet: 20 s\n  vary:", "hunt.quiet: .* leaves no time of the hold for faults"),
        ("{kill: server, software: web, for: 0.1..5 s}", "{clock: true, for: 1 s}", "clock needs how far"),
        (
            "{kill: server, software: web, for: 0.1..5 s}",
            "{clock: server, offset: 0..5 s}",
            "clock needs how",
        ),
        ("{kill: server, software: web, for: 0.1..5 s}", "{schedule: server, stall: 0..5 s}", "at most 1 s"),
    ],
)
def test_what_cannot_be_hunted_is_refused_before_the_first_trial(
    asked: Settings, old: str, new: str, rule: str
) -> None:
    assert old in FILE
    asked.file.write_text(FILE.replace(old, new, 1))
    with pytest.raises(TopologyError, match=rule):
        hunt(asked, silent)
    assert not asked.directory.exists()


def test_a_directory_belongs_to_one_hunt(asked: Settings, tmp_path: Path) -> None:
    hunt(replace(asked, trials=1), silent)
    with pytest.raises(HuntError, match="holds a hunt begun with another seed"):
        hunt(replace(asked, trials=1, seed=7), silent)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(HuntError, match=r"holds letter\.txt, which is no hunt's"):
        hunt(replace(asked, directory=tmp_path / "mine"), silent)


def test_the_page_has_violations_files_and_what_was_never_tried(asked: Settings) -> None:
    found = hunt(replace(asked, trials=16), silent)
    found.tried["impair <wan>"] = 0
    log = Path(found.violations[0].run_dir) / "raw" / "logs" / "server.web.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number}\n" for number in range(20)))
    page = hunts.write(as_data(found, asked.directory), "small").read_text()
    assert all(f"Violation {number}" in page for number in (1, 2)) and "Violation 3" not in page
    assert page.count("Found by `vnet hunt`") == 2 and "line 19" in page and "line 7\n" not in page
    assert '<th class="text">impair &lt;wan&gt;</th><td>never</td>' in page
    (kill,) = (row for row in hunts.coverage(as_data(found, asked.directory)) if row[0].startswith("kill"))
    assert kill[1] == found.tried[kill[0]] and 0 < sum(trials for trials, _ in kill[2]) <= kill[1]
    assert all(trials == fails for trials, fails in kill[2]), "a kill always loses a message"


def test_the_course_ends_at_the_largest_values_and_nothing_is_drawn_without_rounds() -> None:
    assert hunts.course([[8, 5, 0], [16, 10, 1]]) == "0.0,140.0 300.0,70.0 600.0,0.0"
    assert hunts.course([]) == ""


def test_a_trial_that_cannot_tell_or_is_aborted_fails_in_no_way() -> None:
    assert ways(Outcome(0, "cannot tell", why=("no message was sent to an expected receiver",))) == []
    assert ways(Outcome(0, "aborted", error="the program does not start")) == []
    why = ("3 lost, 1,200 twice of 2,000 deliveries", "12 s, above 10 s")
    failed = Outcome(0, "fails", ("delivered exactly-once", "recovery below 10 s"), why)
    assert ways(failed) == [
        "delivered exactly-once: lost",
        "delivered exactly-once: twice",
        "recovery below 10 s",
    ]
