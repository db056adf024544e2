"""Hashes the files that two equal runs in virtual time have in common, and the inputs that determine them.

A lab in virtual time sees nothing that varies between runs. So its process cannot write the run's directory,
the machine and the inputs into the manifest; this module adds them after the run.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from contract import manifest
from contract.seal import digest, digests
from orchestrator.kernel.facts import find_tool
from orchestrator.kernel.lab_command import machine
from orchestrator.kernel.virtual.kernel import VirtualKernel
from orchestrator.project import CODE_ROOT
from orchestrator.run.prepare import Prepared
from orchestrator.software.registry import programs

# Patterns of the files that equal inputs reproduce. Manifest, logs, host.csv and the page depend on the
# machine and the time.
PATTERNS = (
    "pcap/*.pcap",
    "raw/messages.csv",
    "raw/nodes.csv",
    "raw/links.csv",
    "raw/classes.csv",
    "raw/stacks.csv",
    "raw/impairments.csv",
    "raw/events.jsonl",
    "*.parquet",
    "packets/*.parquet",
    "connections/*.parquet",
    "proof.json",
    "summary.json",
    "report/figures/*",
    "report/tables/*",
)
EXCEPT = frozenset({"host.parquet"})
PROGRAMS = ("tcpdump", "ip", "tc")  # programs that every lab uses; each kind of software names further ones
CODE = (
    "contract",
    "orchestrator/lab",
    "orchestrator/plan",
    "orchestrator/queueing",
    "orchestrator/software",
    "orchestrator/kernel/virtual/guest.py",
    "capture/tcpdump.py",
)


def identical_set(run_dir: Path, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns path -> SHA-256 of each file of the run that equal inputs must reproduce (PATTERNS without
    EXCEPT). Does not read the files whose digest is `known`.
    """
    found = {path for pattern in PATTERNS for path in run_dir.glob(pattern) if path.is_file()}
    names = sorted(str(path.relative_to(run_dir)) for path in found)
    known = known or {}
    return {name: known.get(name) or digest(run_dir / name) for name in names if name not in EXCEPT}


def complete_manifest(run_dir: Path, prepared: Prepared) -> None:
    """Adds to the manifest the run's directory, the real machine, the reason for the kernel, and the inputs.
    Does nothing for a run in real time, or if the kernel has no binary.
    """
    kernel = prepared.kernel
    if not isinstance(kernel, VirtualKernel) or kernel.binary is None:
        return
    manifest.outside(run_dir, prepared.why, machine(), inputs_of(prepared))


def inputs_of(prepared: Prepared) -> dict[str, str]:
    """Returns the inputs of a run in virtual time other than its plan, by name, each as a hash or version:
    kernel, agent, code, Python, and each package and file of its closed root.
    """
    kernel = prepared.kernel
    assert isinstance(kernel, VirtualKernel) and kernel.binary is not None
    return common(kernel.binary.path, prepared.agent) | kernel.root(prepared.plan, prepared.agent).inputs


def record_hashes(run_dir: Path) -> None:
    """Adds the hashes of `identical_set` to the manifest, those of captures, the largest files, from the
    seal, which was made when the run ended. Does nothing for a run in real time.
    """
    if manifest.load(run_dir).virtual:
        captures = {name: one for name, one in digests(run_dir).items() if name.startswith("pcap/")}
        manifest.hashed(run_dir, identical_set(run_dir, captures))


def inputs(kernel: Path, agent: Path) -> dict[str, str]:
    """Returns the inputs of this machine to any run in virtual time, by name, each as a SHA-256 or version.

    These are `common`, the installed programs of PROGRAMS and of all software, and the C library.
    """
    found = common(kernel, agent)
    for name in sorted({*PROGRAMS, *(program.name for program in programs())}):
        if path := find_tool(name):
            found[name] = digest(Path(path))
    found["libc"] = " ".join(platform.libc_ver())
    return found


def common(kernel: Path, agent: Path) -> dict[str, str]:
    """Returns the inputs of every run: SHA-256 of kernel, agent and vNET's code; version of Python."""
    found = {"kernel": digest(kernel), "agent": digest(agent), "code": _code()}
    return found | {"python": platform.python_version()}


def _code() -> str:
    """Returns the SHA-256 over the paths and contents of vNET's own files that run inside the lab kernel
    (CODE).
    """
    roots = [CODE_ROOT / name for name in CODE]
    files: Iterable[Path] = (p for r in roots for p in ([r] if r.is_file() else sorted(r.rglob("*.py"))))
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(CODE_ROOT)} {digest(path)}\n".encode())
    return whole.hexdigest()
