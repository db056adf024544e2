"""Tests how engines are opened: a slow one (behind a relay that delays connections), and Dask's processes
beside running labs.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dask

from orchestrator.campaign.engines.engine import engine_of
from orchestrator.campaign.engines.opening import opened


def test_a_scheduler_that_is_slow_is_waited_for() -> None:
    """Shows that a first connection that takes eight seconds, as on an emulated processor, is waited for."""
    from distributed import LocalCluster

    with (
        LocalCluster(
            n_workers=0, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
        ) as here,
        slowly(int(here.scheduler_address.rpartition(":")[2]), 8) as port,
        opened(engine_of(f"dask://127.0.0.1:{port}")) as client,
    ):
        assert client.scheduler_info()["workers"] == {}


def test_dask_measures_little_of_itself_beside_labs() -> None:
    with opened(engine_of("local:1")) as client:
        client.wait_for_workers(1)
        (worker,) = client.run(dask.config.get, "distributed.admin.tick.interval").values()
        scheduler = client.run_on_scheduler(dask.config.get, "distributed.worker.profile.enabled")
        assert (worker, scheduler) == ("500ms", False)


@contextmanager
def slowly(port: int, seconds: float) -> Iterator[int]:
    """Yields a port that forwards connections to `port` after `seconds`."""
    listener = socket.create_server(("127.0.0.1", 0))
    pairs: list[socket.socket] = []

    def pass_on(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def carry(came: socket.socket) -> None:
        time.sleep(seconds)
        went = socket.create_connection(("127.0.0.1", port))
        pairs.extend((came, went))
        for ends in ((came, went), (went, came)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=carry, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()
    for one in pairs:
        one.close()
