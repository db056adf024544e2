"""Collects facts of a worker: machine, versions, and the facts of doctor that decide where cells run."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import socket
from importlib.metadata import version

from orchestrator.campaign.engines.notes import BOOT
from orchestrator.campaign.engines.task import Facts
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.virtual.kernel import is_ours
from orchestrator.lab.meminfo import available_bytes
from orchestrator.nics.facts import look
from orchestrator.project import CODE_ROOT, programs_digest
from orchestrator.run.identity import digest, inputs
from orchestrator.run.prepare import agent_binary

CODE = ("orchestrator", "capture", "contract", "reports")


def versions() -> dict[str, str]:
    """The versions that must be equal on the client and on every worker."""
    python = platform.python_version_tuple()
    return {
        "vNET's code": now if (now := _code()) == _LOADED else "changed since the worker began: restart it",
        "Python": ".".join(python[:2]),
        "dask.distributed": version("distributed"),
    }


def _code() -> str:
    whole = hashlib.sha256(programs_digest().encode())
    for path in sorted(path for root in CODE for path in (CODE_ROOT / root).rglob("*.py")):
        whole.update(f"{path.relative_to(CODE_ROOT)} {digest(path)}\n".encode())
    return whole.hexdigest()[:12]


_LOADED = _code()  # of this process; cells run in processes of their own, with what is there then


async def examine() -> Facts:
    """Looks at this machine beside what the worker does; changes nothing."""
    return await asyncio.to_thread(_examine)


def _examine() -> Facts:
    host, binaries = host_facts(), find_binaries()
    virtual = next((b.path for b in binaries if is_ours(b.path)), None)
    kernels = [("host", host.root and host.lacks("netem") is None), ("uml", bool(binaries))]
    kernels.append(("virtual time", virtual is not None))
    try:
        found = inputs(virtual, agent_binary()) if virtual is not None else {}
    except (KernelError, OSError):
        found = {}
    return Facts(
        machine=socket.gethostname(),
        boot=BOOT,
        versions=versions(),
        inputs=found,
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=available_bytes() or 0,
        kernels=tuple(name for name, there in kernels if there),
        nics=tuple(d.name for d in look().netdevs if not d.kind and d.name != "lo"),
    )
