"""Tests what `vnet why` prints: waterfalls, sums of classes, owners of drops, JSON, refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parents[1] / "capture"))
from why_runs import at, counted, message, planned, why_run

from orchestrator.cli.errors import CliError
from orchestrator.cli.why import why_command

SLOW = {"sent": 0, "received": 20_400}
GONE = {"sent": 0, "received": None, "seq": 1}


def why(*arguments: str) -> Result:
    done = CliRunner().invoke(why_command, arguments)
    if isinstance(done.exception, CliError):
        raise done.exception
    return done


@pytest.fixture
def run(tmp_path: Path) -> str:
    """Makes a run with a message that waits 10 ms behind another node's frame, and one that a full queue
    drops.
    """
    seen = {
        "a": [at(0, "ac", message(0)), at(10, "ac", message(1))],
        "c": [at(20_200, "ac", b"x" * 900), at(20_384, "ac", message(0))],
    }
    path = why_run(tmp_path, seen, [SLOW, GONE])
    counted(path, [(-5e5, 0), (5e5, 1), (1.5e6, 1)])
    return str(path)


def test_a_waterfall_shows_each_part_at_its_place(run: str) -> None:
    lines = why(run, "a.meter:0").stdout.splitlines()
    assert lines[-1].startswith("cause 1: rate:way (the link's rate is too low for what it carries): 51% of")
    assert lines[:-2] == [
        "a.meter:0 (meter) to c: 20.400000 ms",
        f"       10.242000 ms  50.2% |{'#' * 17:<32}| queue: link way forward, behind a 942 B",
        f"        0.142000 ms   0.7% |{' ' * 16 + '#':<32}| serialisation: link way forward",
        f"       10.000000 ms  49.0% |{' ' * 16 + '#' * 16}| propagation: link way forward",
        f"        0.016000 ms   0.1% |{' ' * 31}#| receiver: node c",
    ]


def test_without_a_message_classes_are_summed_and_the_slowest_is_shown(run: str) -> None:
    text = why(run).stdout
    assert "class meter: 2 messages, 1 lost" in text and "a.meter:0 (meter) to c: 20.400000 ms" in text
    said = "p99 of meter is 20.4 ms: 50% of the slowest messages' time is queue (link way forward, behind a)"
    assert said in text
    assert "lost: 1, dropped by link way forward: full queue (limit 50 packets)" in text


def test_a_request_that_arrived_is_not_lost_but_unanswered(tmp_path: Path) -> None:
    """Shows that requests without a reply count as lost only if the request itself was lost: 10 of 27
    here.
    """
    asked = {"sent": 0, "pattern": "request"}
    rows = [
        {**asked, "received": 20_400, "replied": 41_000},
        {**asked, "received": 20_400, "replied": None, "seq": 1},
        {**asked, "received": None, "replied": None, "seq": 2},
    ]
    path = str(why_run(tmp_path, {"a": [], "c": []}, rows, planned("request")))
    text = why(path).stdout
    assert "class meter: 3 messages, 1 lost, 2 requests unanswered" in text
    assert "\n  unanswered: 1, " in text and ": 1 lost or unanswered\n" in text and " lost: " not in text
    assert "(meter) to c: no reply" in why(path, "a.meter:1").stdout
    assert "(meter) to c: never arrived" in why(path, "a.meter:2").stdout


def test_the_worst_begin_with_what_was_lost(run: str) -> None:
    text = why(run, "--worst", "1").stdout
    assert text.splitlines()[-1].startswith("cause 1: queue:way") and text.endswith(": 1 lost\n")
    assert text.splitlines()[:-2] == [
        "a.meter:1 (meter) to c: never arrived",
        "  dropped by link way forward: full queue (limit 50 packets)",
        "  last seen: capture a, 0.010000 ms after it was due",
        "  it passed capture a and did not reach capture c",
        "  counter: link way forward dropped: 1 in the run, 1 of them around that time",
    ]


def test_json_has_the_same_parts_and_owners(run: str) -> None:
    found = json.loads(why(run, "--json", "--class", "meter").stdout)
    (of,), (one,) = found["classes"], found["messages"]
    assert of["lost"] == 1 and of["parts"][0]["what"] == "queue" and of["text"].startswith("p99 of meter")
    assert sum(part["length_ns"] for part in one["parts"]) == one["latency_ns"] == 20_400_000
    (gone,) = json.loads(why(run, "a.meter:1", "--json").stdout)["messages"]
    assert gone["lost"]["verdict"] == "holds" and gone["lost"]["counters"][0]["value"] == 1


def test_without_captures_the_causes_cannot_be_told(tmp_path: Path) -> None:
    path = str(why_run(tmp_path, {}, [SLOW, GONE]))
    assert why(path).stdout.splitlines()[-1] == (
        "causes: cannot tell: 100% of the slowest messages' time is unexplained; "
        "who dropped 1 of the lost messages is not known"
    )
    assert json.loads(why(path, "--json").stdout)["untold"] == {"unexplained_share": 1.0, "lost": 1}


def test_a_run_that_does_not_repeat_is_refused(run: str) -> None:
    with pytest.raises(CliError, match="leave out --without or it"):
        why(run, "--without", "queue:way", "--confirm")
    with pytest.raises(CliError, match="does not repeat"):
        why(run, "--without", "queue:way")


def test_refusals(run: str) -> None:
    with pytest.raises(CliError, match="has no record; the flow's messages are from 0 to 1"):
        why(run, "a.meter:7")
    with pytest.raises(CliError, match="leave out --worst and --class"):
        why(run, "a.meter:0", "--worst", "2")
    with pytest.raises(CliError, match="is no class of this run; its classes: meter"):
        why(run, "--class", "alarm")
    (Path(run) / "plan.json").unlink()
    with pytest.raises(CliError, match="a run directory holds the plan"):
        why(run)
