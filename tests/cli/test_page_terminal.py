"""Tests the size that a page sends to a terminal's WebSocket, and the limit on output that waits for a slow
page.
"""

from __future__ import annotations

import pytest

from orchestrator.cli.page.terminal import MOST_WAITING_BYTES, Said, _size

HOSTILE = (
    None, "", "x", "[]", "1", "null", '"rows"', "{}", '{"rows": 1}', '{"rows": null, "cols": 1}',
    '{"rows": "a", "cols": 1}', '{"rows": -1, "cols": 80}', '{"rows": 0, "cols": 80}',
    '{"rows": 24, "cols": 1001}',
    '{"rows": 1e999, "cols": 80}', '{"rows": NaN, "cols": 80}', '{"rows": [24], "cols": 80}', "[" * 100_000,
    '{"rows": ' + "9" * 5000 + ', "cols": 80}',
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: str(text)[:30])
def test_a_size_that_is_none_is_ignored(text: str | None) -> None:
    assert _size(text) is None


def test_a_size_is_taken() -> None:
    assert _size('{"rows": 24, "cols": 80}') == (24, 80)


def test_a_page_that_does_not_read_costs_a_bounded_amount() -> None:
    said, piece = Said(), b"x" * 65536
    for _ in range(2 * MOST_WAITING_BYTES // len(piece)):
        said.put(piece)
    assert said.overrun.is_set()
    assert said.pieces.qsize() * len(piece) <= MOST_WAITING_BYTES
