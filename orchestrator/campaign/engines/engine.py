"""Parses the text of `--on`, which names the engine of a campaign; examines no machine."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from orchestrator.language.problem import closest

KINDS = ("local", "dask", "tls", "slurm")
MOST = 256  # largest number of workers that vNET starts


class EngineError(Exception):
    """An engine cannot be used or was lost; the text is place, value, rule, remedy."""


@dataclass(frozen=True)
class Engine:
    """The engine that runs a campaign's cells.

    kind: one of KINDS. workers: the number of workers that vNET starts (`local`, `slurm`; else 0). address:
    the address of a Dask scheduler (`dask`, `tls`; else empty).
    """

    kind: str
    workers: int = 0
    address: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.workers}" if self.workers else self.address.replace("tcp://", "dask://")


def engine_of(text: str) -> Engine:
    """Parses `local:N`, `dask://HOST:PORT`, `tls://HOST:PORT`, `slurm:N`; EngineError for anything else.

    Accepts `dask://` for addresses of this machine only, since that connection has no TLS.
    """
    kind, _, rest = text.partition(":")
    if kind in ("local", "slurm"):
        return Engine(kind, workers=_workers(text, rest))
    if kind in ("dask", "tls"):
        return Engine(kind, address=_address(text, kind))
    remedy = closest(kind, KINDS, what="engines")
    raise EngineError(
        f'--on "{text}": no such engine; {remedy} (local:N, dask://HOST:PORT, tls://HOST:PORT, slurm:N)'
    )


def _workers(text: str, rest: str) -> int:
    if rest.isascii() and rest.isdigit() and 1 <= int(rest) <= MOST:
        return int(rest)
    kind = text.partition(":")[0]
    raise EngineError(f'--on "{text}": needs a number of workers, 1 to {MOST}; write {kind}:2')


def _address(text: str, kind: str) -> str:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.path or parts.query or parts.username:
        raise EngineError(f'--on "{text}": is no address of a scheduler; write {kind}://HOST:PORT')
    if kind == "dask" and not _loopback(host):
        raise EngineError(
            f'--on "{text}": without TLS anybody who reaches that scheduler can run programs on its workers '
            "and on this machine; use tls://, or a tunnel by ssh to dask://127.0.0.1:PORT "
            "(docs/many-machines.md)"
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{'tcp' if kind == 'dask' else 'tls'}://{shown}:{port}"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
