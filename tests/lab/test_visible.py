"""Tests that paths which a node would not see are refused before a lab is made, with the key that must
change.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.kernel import limits, registry, visible
from orchestrator.plan.build import make_plan
from orchestrator.run import prepare
from orchestrator.run.prepare import Request
from orchestrator.topology import TopologyError, load

FILE = """\
name: seen
segments: {lan: {subnet: 10.9.0.0/24}}
nodes:
  a: {segment: lan%s}
  b: {segment: lan}
"""


def found(tmp_path: Path, keys: str, kernel: str) -> list[tuple[str, str, str]]:
    file = tmp_path / "seen.yaml"
    file.write_text(FILE % keys)
    return [(p.path, p.value, p.rule) for p in visible.problems(make_plan(load(file)), kernel)]


@pytest.fixture
def below_tmp(tmp_path: Path) -> Path:
    """Yields a directory below /tmp, wherever pytest keeps its own."""
    place = Path("/tmp") / f"vnet-seen-{tmp_path.name}"
    place.mkdir()
    (place / "x").write_text("hello")
    yield place  # type: ignore[misc]
    (place / "x").unlink()
    place.rmdir()


@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_lab_kernel_has_a_tmp_of_its_own(tmp_path: Path, below_tmp: Path, mode: str) -> None:
    keys = f", mounts: {{{mode}: [{below_tmp}]}}"
    rule = "is not seen in the lab: a lab kernel has a /tmp of its own"
    assert found(tmp_path, keys, "uml") == [(f"nodes.a.mounts.{mode}", str(below_tmp), rule)]
    assert found(tmp_path, keys, "host") == []


def test_a_link_into_tmp_is_seen_through(tmp_path: Path, below_tmp: Path) -> None:
    link = Path("/var/tmp") / below_tmp.name
    link.symlink_to(below_tmp)
    try:
        opened = found(tmp_path, f", mounts: {{read: [{link}]}}", "uml")
        assert [path for path, *_ in opened] == ["nodes.a.mounts.read"]
    finally:
        link.unlink()


def test_a_path_that_is_not_there_is_refused_under_every_kernel(tmp_path: Path) -> None:
    for kernel in ("host", "uml"):
        here = found(tmp_path, ", mounts: {read: [/srv/no-such]}", kernel)
        assert here == [("nodes.a.mounts.read", "/srv/no-such", "is not on this machine")]


def test_a_program_below_tmp_is_not_there_under_a_lab_kernel(tmp_path: Path, below_tmp: Path) -> None:
    keys = f", software: {{p: {{command: 'python3 {below_tmp}/x'}}}}"
    assert [path for path, *_ in found(tmp_path, keys, "uml")] == ["nodes.a.software.p"]
    assert found(tmp_path, keys, "host") == []


def test_hidden_files_that_a_command_names_need_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ".venv"
    place.mkdir()
    (place / "python").write_text("")
    monkeypatch.setattr(visible, "OF_NODE", ())  # tmp_path stands for a home directory
    command = f", software: {{p: {{command: '{place}/python -m own.service'}}}}"
    rule = "is on this machine, but the node does not see it"
    assert found(tmp_path, command, "host") == [("nodes.a.software.p", f"{place}/python", rule)]
    assert found(tmp_path, f"{command}, mounts: {{read: [{place}]}}", "host") == []


def test_it_is_refused_before_anything_is_made(
    tmp_path: Path, below_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a mounted path below /tmp, which a lab kernel hides, is refused before anything is made,
    also if the results are below that path.
    """
    file = tmp_path / "seen.yaml"
    file.write_text(FILE % f", mounts: {{read: [{below_tmp}]}}")
    kernel = type(
        "Uml",
        (),
        {
            "name": "uml",
            "examine": lambda _, plan, wish: limits.fit(plan, [], "uml", wish.out),
            "described": "uml",
            "why": "",
        },
    )()
    monkeypatch.setattr(registry, "made", lambda *_: [kernel])
    with pytest.raises(TopologyError, match=r"nodes\.a\.mounts\.read: .*a lab kernel has a /tmp of its own"):
        prepare.prepare(Request(file, {}), below_tmp / "results")
    assert sorted(path.name for path in below_tmp.iterdir()) == ["x"]
