"""Tests that a scheduler with TLS runs no task for clients that lack a key."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")
pytest.importorskip("cryptography")
TIMEOUT_S = 3
RAN: list[str] = []


def run_here(word: str) -> str:
    RAN.append(word)
    return word


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Yields a scheduler and a worker of this process with keys made for them, as `--on local`
    starts them.
    """
    security = distributed.Security.temporary()
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", host="127.0.0.1",
        protocol="tls://", security=security,
    ) as started:  # fmt: skip
        started.keys = security
        yield started


def test_with_its_key_a_client_runs_a_task(cluster: Any) -> None:
    with distributed.Client(cluster.scheduler_address, security=cluster.keys, timeout=20) as client:
        assert client.submit(run_here, "own", pure=False).result() == "own"


@pytest.mark.parametrize("who", ["no TLS", "a key of another authority"])
def test_a_foreign_client_is_refused(cluster: Any, who: str) -> None:
    before, address = list(RAN), cluster.scheduler_address
    foreign = distributed.Security.temporary() if who != "no TLS" else None
    address = address if foreign else address.replace("tls://", "tcp://")
    with pytest.raises((OSError, TimeoutError, RuntimeError)):
        distributed.Client(address, security=foreign, timeout=TIMEOUT_S).submit(run_here, "foreign")
    assert before == RAN and not [c for c in cluster.scheduler.clients if "foreign" in c]


def test_garbage_ends_its_connection_and_the_scheduler_goes_on(cluster: Any) -> None:
    host, _, port = cluster.scheduler_address.removeprefix("tls://").partition(":")

    async def send(data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(data)
        with contextlib.suppress(OSError):
            await writer.drain()
            return await asyncio.wait_for(reader.read(), TIMEOUT_S)
        return b""

    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 65536, b"\x16\x03\x01\xff\xff" + b"\xff" * 1000):
        with contextlib.suppress(TimeoutError):
            answer = asyncio.run(send(data))
            assert b"dask" not in answer
    test_with_its_key_a_client_runs_a_task(cluster)
