"""Builds the command line, the settings for init and the memory size that boot a lab in User-Mode Linux."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract.plan import Plan
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.uml.binaries import UmlBinary
from orchestrator.kernel.uml.outer import available_bytes
from orchestrator.lab.sandbox import LAB_SHARE
from orchestrator.queueing import QUEUE_KINDS

INIT = Path(__file__).with_name("init.py")
MIB = 1 << 20
BASE_BYTES = 512 * MIB  # memory for kernel, lab process, broker and the page cache of the captures
KERNEL_BYTES = 128 * MIB  # the part of BASE_BYTES that no program uses
NODE_BYTES = 6 * MIB  # memory for agent (3 MiB), namespaces, sockets and queues
SETTINGS = "guest.json"
OWN = "uml"  # directory in the state directory for the kernel's own files, such as its control socket
# Limits that all namespaces of a kernel share, high enough for as many nodes as memory holds; they cost
# nothing if they are not used. The kernel's defaults are 1,024 neighbours, process ids up to 32,768 and 128
# inotify instances for a user.
LIMITS = {
    **{f"net/{family}/neigh/default/gc_thresh{n}": 1 << 20 for family in ("ipv4", "ipv6") for n in (1, 2, 3)},
    "kernel/pid_max": 1 << 22,
    "fs/inotify/max_user_instances": 1 << 16,
}
OPEN_FILES = 65536  # most open files of one process, unless a plan needs more
SERIAL = "{serial}"  # placeholder for the descriptor of the serial line, which the owner opens later
SERIAL_IN_GUEST = "/dev/ttyS0"


@dataclass(frozen=True, slots=True)
class Boot:
    """Everything the owner process needs to run one guest.

    stays: the guest outlives the command that started it.
    """

    lab: str
    argv: tuple[str, ...]
    env: dict[str, str]
    run_dir: str
    state_dir: str
    deadline_s: float
    stays: bool


def command(binary: UmlBinary, memory: int, state_dir: Path, python: str) -> tuple[str, ...]:
    """Returns the kernel's command line; raises KernelError for a path with a space or a quote.

    SERIAL stands for the serial line's descriptor; the console goes to standard output. seccomp=auto falls
    back to ptrace if seccomp does not work (on a processor without XSAVE).
    """
    for path in (state_dir, INIT, python):
        if re.search(r"[\s\"']", str(path)):
            raise KernelError(
                f"{path}: a kernel's command line has no way to write a space or a quote in a path; "
                "set VNET_STATE_DIR to (or check the project out in) a directory without"
            )
    head = [str(binary.path), f"mem={memory // MIB}M"] + ["seccomp=auto"] * binary.seccomp
    root = ["rootfstype=hostfs", "rootflags=/", "ro", f"init={python}"]
    lines = [
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        f"ssl0=fd:{SERIAL}",
        f"uml_dir={state_dir / OWN}",
        "umid=lab",
    ]
    return (*head, *root, *lines, "--", "-S", "-s", str(INIT), f"{state_dir}/{SETTINGS}")


def write_settings(
    directory: Path,
    binary: UmlBinary,
    run_dir: Path,
    code: Path,
    lab: Sequence[str],
    env: Mapping[str, str],
    control: str,
    shown: Sequence[str] = (),
    open_files: int = OPEN_FILES,
) -> None:
    """Writes SETTINGS into `directory`, for the guest's first process; the owner copies the file to the state
    directory. shown: paths of the host's /run and /tmp that the guest shows in its own; open_files: the most
    files that one process may open.
    """
    # The guest sees the host's files under /host, since its /run and /tmp are its own.
    paths = (str(code), *QUEUE_KINDS.directories())
    content = {
        "run_dir": str(run_dir),
        "state": str(Path(control).parent),
        "shown": list(shown),
        "modules": str(binary.modules or ""),
        "queues": sorted({queue_kind.module for queue_kind in QUEUE_KINDS.values() if queue_kind.module}),
        "limits": LIMITS,
        "open_files": open_files,
        "code": str(code),
        "python": list(lab),
        "env": {**env, "PYTHONPATH": os.pathsep.join(f"/host{path}" for path in paths), "HOME": "/root"},
        "control": control,
        "serial": SERIAL_IN_GUEST,
    }
    (directory / SETTINGS).write_text(json.dumps(content))


def memory_of(plan: Plan) -> int:
    """Returns the memory limit (bytes) of the guest that carries a plan; raises the errors of
    `memory_bytes`.
    """
    predicted = next((int(one.value) for one in plan.predictions if one.name == "memory"), 0)
    return memory_bytes(len(plan.nodes), predicted)


def open_files_of(plan: Plan) -> int:
    """Returns the most files that one process of the guest may open: OPEN_FILES, or a quarter more than the
    plan predicts.
    """
    predicted = max((one.value for one in plan.predictions if one.name == "open files"), default=0.0)
    return max(OPEN_FILES, math.ceil(1.25 * predicted))


def memory_bytes(nodes: int, predicted: int = 0, available: int | None = None) -> int:
    """Returns the limit of the guest's memory in bytes; raises KernelError if it exceeds three quarters of
    what is available.

    predicted: bytes that the lab's programs will probably use (Java programs use more than nodes usually do).
    The guest takes memory only when it uses it, so the limit is generous.
    """
    available = available_bytes() if available is None else available
    heavy = KERNEL_BYTES + math.ceil(predicted / LAB_SHARE / MIB) * MIB
    wanted = max(BASE_BYTES + nodes * NODE_BYTES, heavy)
    if wanted > most(available):
        raise KernelError(
            f"a lab of {nodes} nodes under uml needs {wanted // MIB} MiB of memory, "
            f"{available // MIB} MiB are available (a quarter is left to the machine); "
            "close other programs or use fewer nodes"
        )
    return wanted


def most(available: int) -> int:
    """Returns the most memory that a guest may take: three quarters of the available bytes. The machine keeps
    a quarter.
    """
    return available * 3 // 4


def memory_directory(wanted: int, candidates: Sequence[str] | None = None) -> Path:
    """Returns the first of `candidates` that can hold the guest's memory file: writable, not mounted
    noexec, with `wanted` bytes free. Default: /dev/shm, $TMPDIR, /tmp, /var/tmp, the home directory. Raises
    KernelError if there is none.
    """
    if candidates is None:
        candidates = ["/dev/shm", os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", str(Path.home())]
    for directory in candidates:
        if usable(directory) and shutil.disk_usage(directory).free >= wanted:
            return Path(directory)
    raise KernelError(
        f"no directory for the guest's memory: {', '.join(dict.fromkeys(candidates))} "
        f"are each missing, mounted noexec or have under {wanted // MIB} MiB free; "
        "set TMPDIR to one that is not"
    )


def usable(directory: str) -> bool:
    """Returns whether files in the directory can be written and mapped executable."""
    if not os.access(directory, os.W_OK | os.X_OK):
        return False
    return not os.statvfs(directory).f_flag & os.ST_NOEXEC
