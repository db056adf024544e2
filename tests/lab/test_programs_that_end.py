"""Tests the effect of a program's end on the run (docs/topology.md, *Programs that end*)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from contract.plan import Process, Software
from orchestrator.lab import operations, power
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Events
from orchestrator.lab.launcher_events import LauncherEvents
from orchestrator.lab.session import end_state

ROLES = ("router", "broker", "server", "client", "utility")


class Loop:
    def __init__(self) -> None:
        self.interrupted: list[BaseException] = []
        self.clock = SimpleNamespace(now_ns=lambda: 0)

    def interrupt(self, why: BaseException) -> None:
        self.interrupted.append(why)

    def until(self, _deadline: int, _subject: str, probe: Any) -> None:
        assert probe()


def ended(
    role: str,
    status: int | None,
    *,
    policy: str = "abort",
    restart: Literal["never", "on-failure", "always"] = "never",
    scenario: bool = True,
    meant: bool = False,
    expected: bool = False,
) -> tuple[list[str], list[str]]:
    """Returns the errors that end the run, and the warnings, after a program of that role has ended."""
    software = Software("web", role, "command", Process(("x",), restart=restart))  # type: ignore[arg-type]
    loop, events = Loop(), Events()
    lab = SimpleNamespace(
        loop=loop, events=events, driver=None, nodes={"a": SimpleNamespace(vm=None)},
        node=lambda _: SimpleNamespace(vm=None), meant={("a", "web")} if meant else set(),
        started={("a", "web"): software}, plan=SimpleNamespace(on_node_failure=policy), in_scenario=scenario,
    )  # fmt: skip
    news = LauncherEvents()
    news.lab = lab  # type: ignore[assignment]
    news.take(
        {
            "event": "exited", "node": "a", "software": "web", "status": status, "expected": expected,
            "log": ["sh: 1: web: not found"],
        }
    )  # fmt: skip
    return [str(why) for why in loop.interrupted], [warning.text for warning in events.warnings]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("status", [1, 3, 126, 127, 137])
def test_a_crash_ends_the_run_whatever_the_role(role: str, status: int) -> None:
    text = f"nodes.a.web: ended unexpectedly with status {status}: sh: 1: web: not found"
    assert ended(role, status) == ([text], [])


@pytest.mark.parametrize("role", ROLES)
def test_the_file_may_have_the_run_go_on(role: str) -> None:
    text = "nodes.a.web: ended unexpectedly with status 3: sh: 1: web: not found"
    assert ended(role, 3, policy="continue") == ([], [text])


def test_a_program_that_its_file_starts_again_is_only_told_of() -> None:
    for restart in ("on-failure", "always"):
        errors, warnings = ended("server", 3, restart=restart)  # type: ignore[arg-type]
        assert not errors and len(warnings) == 1


@pytest.mark.parametrize("role", ROLES)
def test_status_0_is_no_crash_but_a_broker_is_missed(role: str) -> None:
    errors, warnings = ended(role, 0)
    assert (len(errors), len(warnings)) == ((1, 0) if role == "broker" else (0, 1))


def test_what_was_meant_to_end_is_no_news() -> None:
    assert ended("server", 0, expected=True) == ([], [])
    assert ended("server", 137, meant=True) == ([], [])


def test_a_lab_that_is_kept_up_outlives_its_programs() -> None:
    errors, warnings = ended("client", 3, scenario=False)
    assert not errors and len(warnings) == 1


def test_a_program_counts_as_started_before_the_slowest_one_is() -> None:
    """Shows that a quick program counts as started before slower ones, so that its crash is not taken for a
    failed start.
    """
    known: list[bool] = []

    class Driver:
        def submit(self, request: operations.Start, answer: Any) -> None:
            answer({"ok": True})
            known.append(("a", request.software["name"]) in lab.started)

    lab = SimpleNamespace(driver=Driver(), loop=Loop(), meant=set(), started={}, run_dir=Path("/x"))
    items = [("a", Software(name, "utility", "command", Process(("x",)))) for name in ("quick", "slow")]
    assert power.start(lab, items) == []  # type: ignore[arg-type]
    assert known == [True, True]


def test_programs_that_do_not_start_are_named_with_their_errors() -> None:
    software = Software("web", "client", "command", Process(("x",)))
    with pytest.raises(LabError, match=r"nodes\.a\.web: why"):
        power.insist([("a", software, "why")])


@pytest.mark.parametrize(
    ("expected", "state", "status", "text"),
    [
        ("running", "failed", 3, "still running expected at the end of the hold; it had failed (status 3)"),
        ("running", "failed", 0, "still running expected at the end of the hold; it had ended (status 0)"),
        ("exited", "ready", None, "ended expected at the end of the hold; it was still running"),
    ],
)
def test_an_end_state_that_was_not_expected_in_words(
    expected: str, state: str, status: int | None, text: str
) -> None:
    assert end_state(expected, state, status) == text
