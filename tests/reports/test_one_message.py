"""Tests that one message alone has no scatter, instead of one of zero."""

from __future__ import annotations

import numpy as np
import pytest

from reports.metrics.messages import _spread
from reports.metrics.metric import Of


@pytest.mark.parametrize(("values", "deviation"), [([5e6], None), ([5e6, 7e6], 2**0.5), ([5e6, 5e6], 0)])
def test_the_deviation_needs_two_values(values: list[float], deviation: float | None) -> None:
    found = {m.name: m.value for m in _spread("latency", Of(), np.array(values))}
    assert found.get("latency_deviation") == (None if deviation is None else pytest.approx(deviation))
    assert found["latency_max"] == max(values) * 1e-6
