"""The files that two equal runs in virtual time share, and the inputs that determine them.

Inside such a lab everything that varies between runs is hidden from the lab process too, so its manifest says
neither where the run lies, nor on what machine it was made, nor what it was made of: this adds it.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from pathlib import Path

from contract import manifest
from orchestrator.kernel.facts import find_tool
from orchestrator.kernel.machine import machine
from orchestrator.kernel.virtual.kernel import VirtualKernel
from orchestrator.project import CODE_ROOT
from orchestrator.run.prepare import Prepared
from orchestrator.software.registry import programs

# Left out: files that depend on the machine and the moment (manifest, logs, host.csv, the page).
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
PROGRAMS = ("tcpdump", "ip", "tc")  # beside those of the software
CODE = (
    "contract",
    "orchestrator/lab",
    "orchestrator/plan",
    "orchestrator/queueing",
    "orchestrator/software",
    "orchestrator/kernel/virtual/guest.py",
    "capture/tcpdump.py",
)


def identical_set(run_dir: Path) -> dict[str, str]:
    """Relative path -> SHA-256 of every file that the same inputs must give again."""
    found = {path for pattern in PATTERNS for path in run_dir.glob(pattern) if path.is_file()}
    names = sorted(str(path.relative_to(run_dir)) for path in found)
    return {name: digest(run_dir / name) for name in names if name not in EXCEPT}


def complete_manifest(run_dir: Path, prepared: Prepared) -> None:
    """Add run, real machine, why this kernel, and inputs; does nothing for a run in real time."""
    kernel = prepared.kernel
    if not isinstance(kernel, VirtualKernel) or kernel.binary is None:
        return
    manifest.outside(run_dir, prepared.why, machine(), inputs_of(prepared))


def inputs_of(prepared: Prepared) -> dict[str, str]:
    """The inputs of a run beside its plan: kernel, agent, code, each package and file of its root."""
    kernel = prepared.kernel
    assert isinstance(kernel, VirtualKernel) and kernel.binary is not None
    return common(kernel.binary.path, prepared.agent) | kernel.root(prepared.plan, prepared.agent).inputs


def record_hashes(run_dir: Path) -> None:
    """Adds the hashes of the files that equal inputs must reproduce; does nothing for a run in real time."""
    if manifest.read(run_dir).get("time") == "virtual":
        manifest.hashed(run_dir, identical_set(run_dir))


def inputs(kernel: Path, agent: Path) -> dict[str, str]:
    """Inputs of all runs on this machine: SHA-256 of the programs and of vNET's code, and versions."""
    found = common(kernel, agent)
    for name in sorted({*PROGRAMS, *(program.name for program in programs())}):
        if path := find_tool(name):
            found[name] = digest(Path(path))
    found["libc"] = " ".join(platform.libc_ver())
    return found


def common(kernel: Path, agent: Path) -> dict[str, str]:
    """Inputs of every run, beside its plan and the packages and files of its closed root."""
    found = {"kernel": digest(kernel), "agent": digest(agent), "code": _code()}
    return found | {"python": platform.python_version()}


def _code() -> str:
    """SHA-256 of vNET's code that runs inside the lab's kernel."""
    roots = [CODE_ROOT / name for name in CODE]
    files: Iterable[Path] = (p for r in roots for p in ([r] if r.is_file() else sorted(r.rglob("*.py"))))
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(CODE_ROOT)} {digest(path)}\n".encode())
    return whole.hexdigest()


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
