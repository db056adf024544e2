"""Tests requests that no part expects, requests to hosts without a part, and hosts that do not answer at the
end of a lab.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_multi_host_parts import two_hosts

from orchestrator.lab import operations
from orchestrator.lab.clock import JumpingClock
from orchestrator.lab.driver import DriverContext
from orchestrator.lab.drivers.hosts import HostsDriver
from orchestrator.lab.errors import LabError
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host import host_commands
from orchestrator.lab.multi_host.verbs import Verbs
from orchestrator.lab.state import State

WRONG = [
    ({"verb": "dance"}, "dance: a part has no such verb; both sides need the same vNET"),
    ({"verb": "devices"}, "devices: KeyError: 'netns'"),
    ({"verb": "apply", "step": 3}, "apply: "),
    ({"verb": "submit", "kind": "NoOperation", "fields": {}}, "submit: KeyError: 'NoOperation'"),
    ({"verb": "call", "kind": "Go", "fields": {"nobody": 1}}, "call: TypeError"),
    ({"verb": "call", "kind": "Software", "fields": {}}, "call: KeyError: 'patience_ns'"),
    ({"verb": "begin"}, "begin: KeyError: 'silence_s'"),
]


@pytest.mark.parametrize(("message", "said"), WRONG, ids=[str(m["verb"]) + s[-9:] for m, s in WRONG])
def test_a_request_that_is_none_is_refused_and_the_part_goes_on(
    tmp_path: Path, message: dict[str, Any], said: str
) -> None:
    answers: list[tuple[int, dict[str, Any]]] = []
    part = SimpleNamespace(
        home=tmp_path, loop=Loop(JumpingClock()), answer=lambda *answer: answers.append(answer), agree=None
    )
    verbs = Verbs(part)  # type: ignore[arg-type]
    verbs._opened = SimpleNamespace(devices=None, call=None)  # type: ignore[assignment]
    verbs.carry_out({"id": 7, **message})
    ((number, answer),) = answers
    assert number == 7 and answer["ok"] is False and str(answer["error"]).startswith(said)


class Line:
    """A connection to a part; `answer` returns the part's answer to a request, None if it never answers."""

    pid = 1

    def __init__(self, answer: Callable[[Line], dict[str, Any] | None]) -> None:
        self.lost: str | None = None
        self.closed = False
        self._answer = answer

    def expect_end(self) -> None:
        """Does nothing: the test expects the end of the connection."""

    def ask(self, verb: str, fields: object, on_answer: Callable[[dict[str, Any]], None]) -> int:
        if (answer := self._answer(self)) is not None:
            on_answer(answer)
        return 1

    def close(self) -> None:
        self.closed = True


def _driver(tmp_path: Path, lines: dict[str, Line], down: str) -> tuple[HostsDriver, State]:
    """Returns a driver of hosts with these connections; its command `down` removes all remains."""
    plan, run_dir = two_hosts(), tmp_path / "run"
    (run_dir / "raw").mkdir(parents=True)
    ways = {name: host_commands.Way(f"ssh://{name}", ("true",), ("sh", "-c", down)) for name in lines}
    host_commands.note(run_dir, ways, host_commands.RUN_FILE)
    state = State(tmp_path / "states" / plan.lab, plan.lab, "hosts", run_dir)
    context = DriverContext(
        plan, Loop(JumpingClock()), state, run_dir, Path("agent"), None, lambda _: None, lambda _: None
    )
    driver = HostsDriver(context)
    for name, line in lines.items():
        driver._parts[name] = SimpleNamespace(  # type: ignore[assignment]
            name=name, channel=line, there=line.lost is None
        )
    return driver, state


def _gone(line: Line) -> dict[str, Any]:
    line.lost = "its part ended"
    return {"ok": False, "error": "its part ended"}


def test_a_host_that_does_not_answer_at_the_end_keeps_the_state(tmp_path: Path) -> None:
    deaf, good = Line(lambda _: None), Line(lambda _: {"ok": True})
    driver, state = _driver(tmp_path, {"h1": deaf, "h2": good}, "false")
    driver._fetch_all = lambda: None  # type: ignore[method-assign]
    driver.close()
    state.release()
    assert deaf.closed and good.closed
    assert list(host_commands.left(state.directory)) == ["h1"], "`vnet down` finds what h1 still has"


def test_a_host_whose_files_cannot_be_fetched_is_left_nevertheless(tmp_path: Path) -> None:
    def refused() -> None:
        raise LabError("files of h1")

    deaf = Line(lambda _: None)
    driver, state = _driver(tmp_path, {"h1": deaf}, "false")
    driver._fetch_all = refused  # type: ignore[method-assign]
    with pytest.raises(LabError, match="files of h1"):
        driver.close()
    state.release()
    assert deaf.closed and list(host_commands.left(state.directory)) == ["h1"]


def test_a_host_that_is_lost_meanwhile_does_not_answer_for_another(tmp_path: Path) -> None:
    """Shows that the driver still waits for h2, which answers later, when h1 is lost while it gets the
    request.
    """
    asked: list[Callable[[dict[str, Any]], None]] = []

    class Slow(Line):
        def ask(self, verb: str, fields: object, on_answer: Callable[[dict[str, Any]], None]) -> int:
            asked.append(on_answer)
            return 2

    slow = Slow(lambda _: None)
    driver, state = _driver(tmp_path, {"h1": Line(_gone), "h2": slow}, "false")
    driver._fetch_all = lambda: None  # type: ignore[method-assign]
    loop = driver._at.loop
    loop.at(loop.clock.now_ns() + 10**9, lambda: asked[0]({"ok": True}))
    # As with a real part, the connection decides whether the part exists.
    driver._parts["h1"] = _Follows("h1", driver._parts["h1"].channel)  # type: ignore[assignment]
    driver.close()
    state.release()
    assert list(host_commands.left(state.directory)) == ["h1"]


@dataclasses.dataclass
class _Follows:
    name: str
    channel: Any

    @property
    def there(self) -> bool:
        return self.channel.lost is None


COUNTS = operations.Software()


def test_a_request_to_nobody_is_answered(tmp_path: Path) -> None:
    gone = Line(lambda _: None)
    gone.lost = "its part ended"
    driver, state = _driver(tmp_path, {"h1": gone}, "true")
    answers: list[dict[str, Any]] = []
    driver.submit(COUNTS, answers.append)
    loop = driver._at.loop
    loop.until(loop.clock.now_ns() + 10**9, "the answer", lambda: bool(answers))
    assert answers == [{"ok": False, "error": f"{COUNTS.op}: no host of the lab is connected"}]
    with pytest.raises(LabError, match="no host of the lab is connected"):
        driver.call(COUNTS)
    state.release()
