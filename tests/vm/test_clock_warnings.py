"""Tests that the clock of a virtual machine causes a warning only if it makes latencies doubtful."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.lab.vm.collector import CLOCK_ERROR_NS, Collector


@pytest.mark.parametrize(("error_ns", "codes"), [(CLOCK_ERROR_NS, []), (CLOCK_ERROR_NS + 1, ["clocks"])])
def test_clocks_that_are_known_well_are_no_warning(error_ns: int, codes: list[str]) -> None:
    warned: list[tuple[str, bool]] = []
    watch: Any = SimpleNamespace(
        clocks=lambda: {"vm1": {"error_ns": 5}, "vm2": {"error_ns": error_ns}},
        warn=lambda code, text, remedy, suspect: warned.append((code, suspect)),
    )
    loop: Any = SimpleNamespace(until=lambda *_: None, clock=SimpleNamespace(now_ns=lambda: 0))
    Collector(loop, {}, watch).collect()
    assert warned == [(code, True) for code in codes]
