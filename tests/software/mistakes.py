"""Checks topology files with one mistake, for the tests of software kinds."""

from __future__ import annotations

import pytest

from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse


def problems(text: str) -> list[str]:
    """Returns all problems of a file; asserts that each has a remedy."""
    with pytest.raises(TopologyError) as caught:
        parse("file.yaml", text.encode())
    found = [str(problem) for problem in caught.value.problems]
    assert all("; " in problem for problem in found), "a problem without a remedy"
    return found


def refused(base: str, old: str, new: str, place: str, rule: str) -> None:
    """Replaces `old` in a valid file by `new`, and asserts that the file is refused at this line, at the key
    `place`, by the rule `rule`.
    """
    assert parse("file.yaml", base.encode())
    at = base.index(old)
    start = f"file.yaml:{base[:at].count(chr(10)) + 1}: {place}: "
    found = problems(base[:at] + new + base[at + len(old) :])
    assert any(problem.startswith(start) and rule in problem for problem in found), [start + rule, *found]
