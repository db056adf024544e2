"""Tests that a plan too large for this machine's kernel goes to a lab kernel, which has limits of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_plans import facts, plan
from test_kernel_choose import UML, kernels

from contract.plan import Plan, Prediction
from orchestrator.kernel import limits
from orchestrator.kernel.limits import facts as machine_facts
from orchestrator.kernel.protocol import Wish
from orchestrator.kernel.registry import choose
from orchestrator.kernel.uml.kernel import UmlKernel
from orchestrator.plan.capacity import MachineFacts

KERNEL = Path(__file__).parents[2] / "orchestrator" / "kernel"
MANY = plan(predictions=(Prediction("neighbour entries", "kernel", 2000.0, "entries"),))


@pytest.fixture(autouse=True)
def _small_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(kernel: str, _out: Path) -> MachineFacts:
        return MachineFacts(neighbour_entries=1024 if kernel == "host" else None, open_files=65536)

    monkeypatch.setattr(limits, "facts", of)


def test_the_hosts_neighbour_table_has_no_part_in_a_lab_kernel(tmp_path: Path) -> None:
    choice = choose(MANY, Wish("auto", out=tmp_path), kernels())
    assert (choice.kernel.name, choice.fit.problems) == ("uml", [])
    assert "host is too small (neighbour entries: this machine allows 1024)" in choice.why
    assert choice.kernel.why == choice.why
    assert machine_facts("uml", tmp_path).neighbour_entries is None


@pytest.mark.parametrize(
    ("wanted", "kernel", "refused"),
    [("host", "host", True), ("uml", "uml", False)],
)
def test_the_kernel_that_is_asked_for_is_not_exchanged(
    wanted: str, kernel: str, refused: bool, tmp_path: Path
) -> None:
    choice = choose(MANY, Wish(wanted, out=tmp_path), kernels())
    assert (choice.kernel.name, bool(choice.fit.problems)) == (kernel, refused)


def test_without_a_lab_kernel_the_setting_to_raise_is_told(tmp_path: Path) -> None:
    choice = choose(MANY, Wish("auto", out=tmp_path), kernels(binaries=()))
    (found,) = choice.fit.problems
    assert choice.kernel.name == "host"
    assert "gc_thresh3" in found.remedy and "--kernel uml" in found.remedy


def test_a_lab_that_is_too_large_for_both_stays_at_the_host(tmp_path: Path) -> None:
    larger = plan(predictions=(*MANY.predictions, Prediction("open files", "launcher", 10**6, "files")))
    choice = choose(larger, Wish("auto", out=tmp_path), kernels())
    assert choice.kernel.name == "host" and len(choice.fit.problems) == 2


def test_a_small_lab_is_the_hosts(tmp_path: Path) -> None:
    small: Plan = plan()
    assert choose(small, Wish("auto", out=tmp_path), kernels(facts())).kernel.name == "host"
    assert UmlKernel((UML,)).can(small) == []
