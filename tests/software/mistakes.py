"""Files that are wrong in one place, for the tests of rooms."""

from __future__ import annotations

import pytest

from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse


def problems(text: str) -> list[str]:
    """All mistakes in a file."""
    with pytest.raises(TopologyError) as caught:
        parse("file.yaml", text.encode())
    found = [str(problem) for problem in caught.value.problems]
    assert all("; " in problem for problem in found), "a problem without a remedy"
    return found


def refused(base: str, old: str, new: str, place: str, rule: str) -> None:
    """`old` of a right file becomes `new`; its line must then be refused at `place` by `rule`."""
    assert parse("file.yaml", base.encode())
    at = base.index(old)
    start = f"file.yaml:{base[:at].count(chr(10)) + 1}: {place}: "
    found = problems(base[:at] + new + base[at + len(old) :])
    assert any(problem.startswith(start) and rule in problem for problem in found), [start + rule, *found]
