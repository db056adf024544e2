"""Tests that the root of a lab in virtual time counts as part of its memory before a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_plans import node, plan

from orchestrator.images import cpio
from orchestrator.kernel.uml import boot
from orchestrator.kernel.virtual import closing
from orchestrator.kernel.virtual.kernel import VirtualKernel
from orchestrator.kernel.virtual.root.closed import ClosedRoot

MIB = 1 << 20
PLAN = plan(nodes=(node(),))  # the lab needs 518 MiB, including its node


class Given(VirtualKernel):
    """A kernel whose labs see the files of an archive of `size` bytes and one more file."""

    def __init__(self, archive: Path, size: int) -> None:
        super().__init__(binaries=[])
        with archive.open("wb") as file:
            file.truncate(size)
        self.given = ClosedRoot(archive, (cpio.file("own", bytes(MIB)),), {})

    def root(self, plan: object, agent: Path | None) -> ClosedRoot:
        return self.given


@pytest.mark.parametrize(
    ("free", "root", "needed"),
    [(800, 70, None), (800, 85, 604), (1200, 305, None), (1000, 305, 824), (2000, 800, 1730)],
)
def test_the_root_counts(
    free: int, root: int, needed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (closing, boot):
        monkeypatch.setattr(module, "available_bytes", lambda: free * MIB)
    monkeypatch.setattr(boot, "memory_directory", lambda wanted: tmp_path)
    found = closing.problems(PLAN, Given(tmp_path / "archive", root * MIB), None)
    if needed is None:
        assert found == []
        return
    (one,) = found
    assert (one.file, one.path, one.value) == ("pair.yaml", "memory", "1 node")
    assert f"may take {needed} MiB, {root + 1} MiB of it the files that it sees, of {free} MiB" in one.rule
    assert "use fewer nodes, or leave --time virtual out" in one.remedy


def test_no_place_for_the_guests_memory_is_refused_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (closing, boot):
        monkeypatch.setattr(module, "available_bytes", lambda: 8192 * MIB)
    monkeypatch.setattr(boot, "usable", lambda directory: False)
    (one,) = closing.problems(PLAN, Given(tmp_path / "archive", 90 * MIB), None)
    assert one.path == "memory" and "no directory for the guest's memory" in one.rule
    assert one.remedy == "set TMPDIR to one that is not"
