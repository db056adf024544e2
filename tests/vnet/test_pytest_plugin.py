"""Tests the pytest plugin in an inner pytest, with the fake driver's labs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vnet.measured import Measured, in_seconds

pytest_plugins = ["pytester"]
PAIR = Path(__file__).parents[2] / "topologies" / "pair.yaml"
HEAD = f"""
import pytest, vnet
PAIR = {str(PAIR)!r}
FAKE = {{"kernel": "fake", "parameters": {{"hold": "1s"}}}}
"""


@pytest.fixture
def inner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> pytest.Pytester:
    """Keeps the labs' state in a directory with a short path, because sockets are below it; asserts that
    nothing is left there.
    """
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path_factory.mktemp("s")))
    monkeypatch.setenv("PYTHONPATH", str(PAIR.parents[1]))
    if not (PAIR.parents[1] / "target/release/vnet-agent").exists():
        monkeypatch.setenv("VNET_AGENT", "/bin/true")
    return pytester


def left() -> list[str]:
    state = Path(os.environ["VNET_STATE_DIR"])
    return [path.name for path in state.iterdir()] if state.exists() else []


def test_labs_come_and_go_side_by_side(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        HEAD
        + """
pair = (vnet.Topology("built").segment("lan", "10.1.0.0/24").node("a", "lan").node("b", "lan")
        .link("wan", "a", "lan", both={"delay": "5 ms"}))
together = pytest.mark.vnet(pair, scope="module", kernel="fake")

@together
def test_impaired(lab):
    assert lab.link("wan").impair(delay="50 ms")["forward"]["delay_ns"] == 50_000_000

@together
def test_shared(lab):
    assert lab.link("wan").impair(loss="1 %")["forward"]["delay_ns"] == 50_000_000
    with pytest.raises(AssertionError, match="a: `ls -l`: exit status 127"):  # the fake runs nothing
        lab.node("a").exec(["ls", "-l"])
    with pytest.raises(AssertionError, match="no scenario has been run"):
        lab.flow("x")

@pytest.mark.vnet(pair, kernel="fake")
def test_own(lab):
    assert lab.link("wan").impair(loss="1 %")["reverse"]["delay_ns"] == 5_000_000
"""
    )
    inner.runpytest_subprocess("-n", "2", "--dist", "loadfile").assert_outcomes(passed=3)
    assert left() == [] and not (inner.path / "vnet-kept").exists()


def test_a_scenario_is_judged_and_kept_where_it_fails(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        HEAD
        + """
pytestmark = pytest.mark.vnet(PAIR, scope="module", scenario=True, **FAKE)

def test_good(lab):
    assert lab.flow("left.sender").latency_p99 < "5 min"
    assert lab.flow("left.sender").received == lab.flow("left.sender").expected > 0
    lab.assert_proven()
    lab.assert_trusted()
    lab.expect("messages_lost <= 0", "messages_received[class=left.sender] > 0")

def test_too_slow(lab):
    assert lab.flow("left.sender").latency_p99 < "1 ns"

def test_too_few(lab):
    lab.expect("messages_lost <= 0", "messages_received > 1000000")

def test_no_class(lab):
    lab.expect("messages_lost[class=left.sendr] <= 0")

def test_unknown(lab):
    lab.flow("nobody")
"""
    )
    done = inner.runpytest_subprocess()
    done.assert_outcomes(passed=1, failed=4)
    done.stdout.re_match_lines(
        [
            r"E .*assert .* ms \(latency p99 of flow left.sender, \d+ messages\) < '1 ns'",
            r"run directory, kept: .*vnet-kept/pair-t\d+-1",
            r"E .*1 of 2 expectations do not hold:",
            r"E +fails: messages_received above 1000000: \d+ messages",
            r"E .*expect\[0\].class: .*did you mean \"left.sender\"\?",
            r".*none of that name or class; there are: left.sender",
        ]
    )
    (kept,) = (inner.path / "vnet-kept").iterdir()
    assert (kept / "report" / "index.html").exists() and left() == []


def test_mistakes_are_said_as_vnet_says_them(inner: pytest.Pytester) -> None:
    (inner.path / "bad.yaml").write_text("name: bad\nnodes: {a: {segment: lan}}\n")
    inner.makepyfile(
        HEAD
        + """
@pytest.mark.vnet("bad.yaml", kernel="fake")
def test_bad(lab): ...

@pytest.mark.vnet(PAIR, colour="red")
def test_option(lab): ...

def test_unmarked(lab): ...
"""
    )
    done = inner.runpytest_subprocess()
    done.assert_outcomes(errors=3)
    done.stdout.fnmatch_lines(["*bad.yaml:2: nodes.a.segment*"])
    assert left() == []


def test_times_compare_with_units() -> None:
    time = Measured(0.05, "latency")
    assert time == "50 ms" and time <= 0.05 and time > "49.9 ms" and time >= "50 ms" and time < "1 min"
    assert repr(time) == "50 ms (latency)" and repr(Measured(2.5e-6, "x")) == "2.5 us (x)"
    with pytest.raises(ValueError, match="with its unit"):
        in_seconds("50")
