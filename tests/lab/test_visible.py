"""Tests that paths that a node would not see are refused before a lab is made, and that the error names the
key to change.
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


def shown(tmp_path: Path, keys: str) -> list[str]:
    file = tmp_path / "seen.yaml"
    file.write_text(FILE % keys)
    return visible.shown_in_guest(make_plan(load(file)))


@pytest.fixture
def below_tmp(tmp_path: Path) -> Path:
    """Yields a directory below /tmp, wherever pytest keeps its own."""
    place = Path("/tmp") / f"vnet-seen-{tmp_path.name}"
    place.mkdir()
    (place / "x").write_text("hello")
    yield place  # type: ignore[misc]
    (place / "x").unlink()
    place.rmdir()


def test_a_lab_kernel_has_a_tmp_of_its_own_where_nodes_would_write(tmp_path: Path, below_tmp: Path) -> None:
    keys = f", mounts: {{write: [{below_tmp}]}}"
    rule = "is not seen in the lab: a lab kernel has a /tmp of its own"
    assert found(tmp_path, keys, "uml") == [("nodes.a.mounts.write", str(below_tmp), rule)]
    assert found(tmp_path, keys, "host") == []


def test_a_link_into_tmp_is_seen_through(tmp_path: Path, below_tmp: Path) -> None:
    link = Path("/var/tmp") / below_tmp.name
    link.symlink_to(below_tmp)
    try:
        opened = found(tmp_path, f", mounts: {{write: [{link}]}}", "uml")
        assert [path for path, *_ in opened] == ["nodes.a.mounts.write"]
        assert shown(tmp_path, f", mounts: {{read: [{link}]}}") == [str(below_tmp)]
    finally:
        link.unlink()


def test_a_path_that_is_not_there_is_refused_under_every_kernel(tmp_path: Path) -> None:
    for kernel in ("host", "uml"):
        here = found(tmp_path, ", mounts: {read: [/srv/no-such]}", kernel)
        assert here == [("nodes.a.mounts.read", "/srv/no-such", "is not on this machine")]


def test_a_lab_kernel_shows_what_nodes_read_below_tmp(tmp_path: Path, below_tmp: Path) -> None:
    for keys, path in (
        (f", software: {{p: {{command: 'python3 {below_tmp}/x'}}}}", f"{below_tmp}/x"),
        (f", mounts: {{read: [{below_tmp}]}}", str(below_tmp)),
    ):
        assert [found(tmp_path, keys, kernel) for kernel in ("uml", "host")] == [[], []]
        assert shown(tmp_path, keys) == [path]
    (below_tmp / "x").chmod(0o600)
    rule = "is on this machine, but the node does not see it"
    command = f", software: {{p: {{command: 'cat {below_tmp}/x'}}}}"
    for kernel in ("uml", "host"):
        assert found(tmp_path, command, kernel) == [("nodes.a.software.p", f"{below_tmp}/x", rule)]
        assert found(tmp_path, f"{command}, mounts: {{read: [{below_tmp}/x]}}", kernel) == []
    assert shown(tmp_path, f", software: {{p: {{command: 'cat {below_tmp}/x'}}}}") == []


def test_a_directory_below_tmp_that_a_command_names_needs_mounts(tmp_path: Path, below_tmp: Path) -> None:
    site = below_tmp / "site"
    site.mkdir()
    try:
        command = f", software: {{p: {{command: 'ls {site}'}}}}"
        rule = "is on this machine, but the node does not see it"
        for kernel in ("uml", "host"):
            assert found(tmp_path, command, kernel) == [("nodes.a.software.p", str(site), rule)]
            assert found(tmp_path, f"{command}, mounts: {{read: [{site}]}}", kernel) == []
            # Commands may use the node's own directories, which are not directories of the machine.
            own = f", software: {{p: {{command: 'ls /tmp {below_tmp} /proc/self/fd /dev/shm /run'}}}}"
            assert found(tmp_path, own, kernel) == []
    finally:
        site.rmdir()


def test_what_lies_elsewhere_needs_no_mount_in_a_lab_kernel(tmp_path: Path) -> None:
    assert shown(tmp_path, ", mounts: {read: [/srv]}, software: {p: {command: 'cat /etc/hostname'}}") == []


def test_hidden_files_that_a_command_names_need_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ".venv"
    place.mkdir()
    (place / "python").write_text("")
    monkeypatch.setattr(visible, "OF_NODE", ())  # lets tmp_path stand for a home directory
    command = f", software: {{p: {{command: '{place}/python -m own.service'}}}}"
    rule = "is on this machine, but the node does not see it"
    assert found(tmp_path, command, "host") == [("nodes.a.software.p", f"{place}/python", rule)]
    assert found(tmp_path, f"{command}, mounts: {{read: [{place}]}}", "host") == []


def test_it_is_refused_before_anything_is_made(
    tmp_path: Path, below_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a mounted path below /tmp is refused before anything is made, because a lab kernel hides it;
    so are results below that path.
    """
    file = tmp_path / "seen.yaml"
    file.write_text(FILE % f", mounts: {{write: [{below_tmp}]}}")
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
    with pytest.raises(TopologyError, match=r"nodes\.a\.mounts\.write: .*a lab kernel has a /tmp of its own"):
        prepare.prepare(Request(file, {}), below_tmp / "results")
    assert sorted(path.name for path in below_tmp.iterdir()) == ["x"]


@pytest.mark.parametrize("kernel", ["host", "uml"])
def test_a_node_may_copy_run_itself_and_nothing_below_it(tmp_path: Path, kernel: str) -> None:
    assert found(tmp_path, ", mounts: {copy: [/etc, /var, /run]}", kernel) == []
    with pytest.raises(
        TopologyError, match=r'mounts\.copy\[0\]: "/run/lock": is neither /run nor below /etc or'
    ):
        found(tmp_path, ", mounts: {copy: [/run/lock]}", kernel)
    with pytest.raises(TopologyError, match="is made anew for each node"):
        found(tmp_path, ", mounts: {read: [/run]}", kernel)
