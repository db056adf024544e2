"""Collects the facts of a worker that decide which cells it can run: machine, versions, kernels, NICs."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import socket
from importlib.metadata import version

from contract.seal import digest
from orchestrator.campaign.engines.notes import BOOT
from orchestrator.campaign.engines.task import Facts
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.uml.binaries import find_binaries
from orchestrator.kernel.virtual.kernel import is_ours
from orchestrator.lab.machine import available_bytes
from orchestrator.nics.facts import look
from orchestrator.project import CODE_ROOT, programs_digest
from orchestrator.run.identity import inputs
from orchestrator.run.prepare import agent_binary

CODE = ("orchestrator", "capture", "contract", "reports")


def versions() -> dict[str, str]:
    """Returns the version of each part that must be equal on the client and on each worker: vNET's code,
    Python and Dask. For changed code, the version is a text that requests a restart of the worker.
    """
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


# hash of this process's code; cells run in new processes, with the code that is on the disk then
_LOADED = _code()


async def examine() -> Facts:
    """Returns the facts of this machine, collected in a thread beside the worker's other work; changes
    nothing.
    """
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
