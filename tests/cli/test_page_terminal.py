"""Tests the size that a page sends to a terminal's WebSocket, and the limit on output that waits for a slow
page.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.cli.page.terminal import MOST_FLYING, MOST_WAITING_BYTES, Said, _keys, _size

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


class Flood:
    """A page that sends keys without end, and a lab that answers no request."""

    def __init__(self) -> None:
        self.read = 0

    async def receive(self) -> dict[str, Any]:
        self.read += 1
        await asyncio.sleep(0)
        return {"type": "websocket.receive", "bytes": b"x" * 60_000}

    def send(self, op: str, **fields: Any) -> tuple[int, asyncio.Future[Any]]:
        return self.read, asyncio.get_running_loop().create_future()


def test_a_page_that_sends_without_end_is_slowed_down() -> None:
    """Shows that the server reads no more keys than the lab takes. Before, 4 GB of keys took 1.3 GB of
    memory.
    """
    flood = Flood()

    async def flooded() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_keys(flood, flood, 1), 0.5)  # type: ignore[arg-type]

    asyncio.run(flooded())
    assert flood.read == MOST_FLYING + 1
