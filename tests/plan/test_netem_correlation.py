"""Tests the share that netem's correlated draws give, against a simulation of the kernel's arithmetic and
values by hand.
"""

from __future__ import annotations

import random

import pytest

from orchestrator.plan.correlation import effective_share


def _crandom(chance: float, correlation: float, packets: int) -> float:
    """Returns the share of draws that hit, by the kernel's get_crandom (sch_netem.c) in 32-bit integers with
    its callers' comparison.
    """
    draw, last, hits = random.Random(7), 0, 0
    rho, threshold = int(correlation * 0xFFFFFFFF) + 1, int(chance * 0xFFFFFFFF)
    for _ in range(packets):
        last = (draw.getrandbits(32) * ((1 << 32) - rho) + last * rho) >> 32
        hits += threshold >= last
    return hits / packets


@pytest.mark.parametrize(
    ("chance", "correlation"), [(0.3, 0.25), (0.25, 0.1), (0.02, 0.01), (0.05, 0.05), (0.5, 0.9), (0.1, 0.5)]
)
def test_as_the_kernel_computes_it(chance: float, correlation: float) -> None:
    packets = 300_000
    expected = effective_share(chance, correlation)
    # The bound is five standard errors; correlation divides the effective number of draws by (1 + rho) / (1 -
    # rho).
    spread = (expected * (1 - expected) / packets * (1 + correlation) / (1 - correlation)) ** 0.5
    assert _crandom(chance, correlation, packets) == pytest.approx(expected, abs=5 * spread + 1e-5)


def test_by_hand() -> None:
    # No value is cut at 0 or 1 here, so the share is the mean of (0.3 - 0.25 x') / 0.75, where x' has the
    # mean one half.
    assert effective_share(0.3, 0.25) == pytest.approx((0.3 - 0.125) / 0.75, rel=1e-6)
    assert effective_share(0.01, 0.0) == 0.01
    assert effective_share(0.5, 0.9) == pytest.approx(0.5, abs=1e-9)
    assert effective_share(1.0, 0.5) == 1.0


def test_a_small_correlated_chance_all_but_vanishes() -> None:
    assert effective_share(0.01, 0.25) < 1e-5
