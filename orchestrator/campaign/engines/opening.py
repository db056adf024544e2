"""Connects to the Dask scheduler of an engine: to an existing one, or to one that vNET starts."""

from __future__ import annotations

import logging
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from orchestrator.campaign.engines.engine import Engine, EngineError
from orchestrator.campaign.engines.slurm import jobs

if TYPE_CHECKING:
    from distributed import Client

REACHED_S = 5  # time limit of the TCP connection; Dask then waits 30 s for the scheduler's answer
QUIET = {
    # This setting switches web pages off, which other users of the machine could open.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # This setting switches Dask's measurements of itself off, which would disturb labs.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "500ms",
}
ABSENT = (
    'Dask distributed is not installed, which carries cells to workers; pip install "vnet-testbed[engines]" '
    "(in a checkout: make setup)"
)


@contextmanager
def opened(engine: Engine) -> Iterator[Client]:
    """Yields a Dask client of the engine; at the end, closes it and stops the workers that it has started.

    Raises EngineError if Dask is not installed or the scheduler cannot be reached.
    """
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise EngineError(f"--on {engine}: {ABSENT}") from None
    with dask.config.set(QUIET), ExitStack() as stack:
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if engine.kind == "local":
            client = stack.enter_context(_local(engine))
        elif engine.kind == "slurm":
            client = stack.enter_context(jobs(engine, ABSENT))
        else:
            client = _there(engine)
            stack.callback(_close, client)
        assert isinstance(client, Client)
        yield client


def _there(engine: Engine) -> Client:
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    if engine.kind == "tls":
        _certified(engine)
    try:
        with socket.create_connection(get_address_host_port(engine.address), REACHED_S):
            pass
        return Client(engine.address, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise EngineError(f"--on {engine}: {_why(error)}") from None


def _why(error: BaseException) -> str:
    """Returns the reason why the scheduler cannot be reached, with the remedy."""
    keys = "both sides need keys of one authority (docs/many-machines.md)"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            said = getattr(cause, "verify_message", "") or cause.reason
            return (
                f"this command's authority did not sign the certificate that is shown there ({said}); {keys}"
            )
        cause = cause.__cause__
    return f"no scheduler answers there; `dask scheduler` starts one, and over TLS {keys}"


def _certified(engine: Engine) -> None:
    """Raises EngineError if Dask's configuration names no certificate for this command, or an
    unusable one.
    """
    from distributed import Security

    why = "no certificate is named"
    try:
        if Security().get_connection_args("client").get("ssl_context") is not None:
            return
    except (OSError, ValueError) as error:
        why = f"its certificate cannot be used ({error})"
    raise EngineError(
        f"--on {engine}: {why}; Dask's own configuration names the files: distributed.comm.tls.ca-file, "
        ".client.cert and .client.key (docs/many-machines.md)"
    )


@contextmanager
def _local(engine: Engine) -> Iterator[Client]:
    """Starts a scheduler and workers on this machine, and yields a client of them.

    They use TLS with new keys, so that other users of this machine cannot reach them.
    """
    from distributed import Client, LocalCluster, Security

    with tempfile.TemporaryDirectory(prefix="vnet-workers-") as scratch:
        cluster = LocalCluster(
            n_workers=engine.workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=Security.temporary(),
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            memory_limit=0,
            local_directory=scratch,
            silence_logs=logging.CRITICAL,
        )
        client = Client(cluster, set_as_default=False)
        try:
            yield client
        finally:
            _close(client)
            with suppress(OSError, TimeoutError):
                cluster.close()


def _close(client: Client) -> None:
    with suppress(OSError, TimeoutError):
        client.close(timeout=5)
