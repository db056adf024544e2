"""Lab kernel in virtual time: our User-Mode Linux, whose clock jumps to the next event when everything waits.

Same plan, seed, kernel, agent and programs: the same run to the bit. So nothing that differs between two
runs may reach the guest: its command line is one constant text per plan (the kernel mixes it into its random
pool), its files lie at fixed paths, its environment, its clock's start and its random seed are fixed, and
nothing is said to it while it runs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.kernel import detached, lab_command
from orchestrator.kernel.protocol import KernelError, Launch, Missing
from orchestrator.kernel.uml import boot, needs
from orchestrator.kernel.uml.binaries import UmlBinary, find_binaries
from orchestrator.kernel.uml.kernel import cleanup_uml
from orchestrator.language.units import DURATION, UnitError, whole
from orchestrator.model import Plan, codec
from orchestrator.plan.nics import uses_nics
from orchestrator.project import BUILD_KERNEL, CODE_ROOT, PROJECT

START_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z: when every lab in virtual time boots
# What one system call of a node costs ($VNET_SYSCALL_COST). docs/virtual-time.md says where it is from.
SYSCALL_NS = 5_000
# Clock rate against which limits and reservations in MHz are held: a modelled core has none of its own.
CPU_MHZ = 2_000.0
STALL_NS = 600_000_000_000  # $VNET_WATCHDOG: wall-clock time that virtual time may stand still
SETUP_NS = 3_600_000_000_000  # more than all deadlines of set-up and teardown together
INSIDE = tuple(Path(__file__).with_name(name) for name in ("init.sh", "guest.py"))
PACKAGES = ("orchestrator", "capture")  # what the lab process loads
MARK = b"lab-runs: time="  # our kernel's answer to SIGUSR2; a kernel without it is not ours, or too old
REMEDY = f"{BUILD_KERNEL} builds the lab's own kernel (5 minutes, no root)"


@dataclass(frozen=True, slots=True)
class VirtualBoot:
    """Everything that the owner process needs to run one guest. `stage`: name in it -> host path."""

    lab: str
    argv: tuple[str, ...]
    env: dict[str, str]
    run_dir: str
    state_dir: str
    stage: dict[str, str]
    supervised: dict[str, Any]
    python: str
    stall_s: float
    until_ns: int  # lab time by which every scenario of this plan has ended


class VirtualKernel:
    """`syscall_ns`: the cost model; `stall_s`: wall-clock seconds without virtual time before it is ended."""

    name = "uml"

    def __init__(
        self,
        binaries: Sequence[UmlBinary] | None = None,
        syscall_ns: int | None = None,
        stall_s: float | None = None,
    ) -> None:
        found = find_binaries() if binaries is None else list(binaries)
        self.binary = next((b for b in found if is_ours(b.path)), None)
        self.others = [b for b in found if b is not self.binary]
        self.syscall_ns = setting("VNET_SYSCALL_COST", SYSCALL_NS) if syscall_ns is None else syscall_ns
        self.stall_s = setting("VNET_WATCHDOG", STALL_NS) / 1e9 if stall_s is None else stall_s
        self.why = "asked for"

    def can(self, plan: Plan) -> list[Missing]:
        """What is missing for `plan`: our kernel, or what it needs of the machine."""
        missing = []
        if self.binary is None:
            there = f"{self.others[0].describe()}: knows no" if self.others else "no other knows"
            missing.append(Missing("the lab's own kernel", f"{there} virtual time", REMEDY))
        if any(node.kind != "light" for node in plan.nodes):
            missing.append(Missing("virtual machines", "they cannot run in virtual time", "use --time real"))
        if uses_nics(plan):
            missing.append(Missing("NICs of the machine", "they run in real time", "use --time real"))
        return missing + needs.missing_xsave() + needs.missing(plan)

    def describe(self) -> str:
        """Which kernel it would be."""
        release = self.binary.describe() if self.binary else "none"
        return f"uml in virtual time ({release}; {self.syscall_ns} ns a system call)"

    def start(self, launch: Launch) -> detached.DetachedLab:
        """Start the owner process, which boots the guest and lives as long as it."""
        if launch.detached:
            raise KernelError(
                f"lab {launch.plan.lab}: a lab in virtual time does not stay up: while it waits "
                "for a command its clock would run away; put what is to be done into the timeline, "
                "or use --time real"
            )
        raw = launch.run_dir / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        plan = lab_command.with_images_at(launch.plan, "/vnet/images")
        (launch.run_dir / "plan.json").write_text(codec.to_json(plan))
        (raw / "boot.json").write_text(json.dumps(dataclasses.asdict(self._boot(launch))))
        return detached.spawn(
            [sys.executable, "-s", "-m", "orchestrator.kernel.virtual.owner", str(raw / "boot.json")],
            launch.run_dir,
            launch.state_dir / "control.sock",
            logs=["owner.log", "console.log"],
            env={**os.environ, "PYTHONPATH": str(CODE_ROOT)},
            lifeline=True,
            kill=lambda _: cleanup_uml(launch.state_dir),
        )

    def _boot(self, launch: Launch) -> VirtualBoot:
        if self.binary is None:
            raise KernelError(f"virtual time: the lab's own kernel is not built; {REMEDY}")
        plan = launch.plan
        memory = boot.memory_of(plan)
        outside = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "TMPDIR": str(boot.memory_directory(memory)),
            "HOME": "/",
            "UML_RANDOM_SEED": str(plan.seed),
        }
        stage = {
            "run": str(launch.run_dir),
            "code": str(CODE_ROOT),
            "agent": str(launch.agent),
        }
        stage |= {path.name: str(path) for path in INSIDE}
        if images := lab_command.images_of(plan):
            stage["images"] = str(images)
        return VirtualBoot(
            plan.lab,
            command(self.binary.path, memory, self.syscall_ns),
            outside,
            str(launch.run_dir),
            str(launch.state_dir),
            stage,
            supervised(plan, self.binary.release, memory, self.syscall_ns),
            interpreter(),
            self.stall_s,
            START_NS + SETUP_NS + plan.ramp_ns + plan.hold_ns + plan.drain_ns,
        )


def setting(name: str, default_ns: int, env: Mapping[str, str] = os.environ) -> int:
    """A duration from the environment (`5 us`, `90 s`) in ns; KernelError if it is none."""
    if name not in env:
        return default_ns
    try:
        return whole(DURATION, env[name])
    except UnitError as error:
        raise KernelError(f"{name}={env[name]}: {error}") from error


def is_ours(path: Path) -> bool:
    """Whether a kernel carries our patch as this module needs it."""
    return MARK in path.read_bytes()


def command(binary: Path, memory: int, syscall_ns: int) -> tuple[str, ...]:
    """The kernel's command line: for one plan and cost the same text on every machine, but for argv[0]."""
    return (
        str(binary),
        f"mem={memory // boot.MIB}M",
        "seccomp=on",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "norandmaps",
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        f"tt-syscall-ns={syscall_ns}",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        f"uml_dir={boot.OWN}",  # relative to the stage
        "umid=lab",
        "init=/bin/sh",
        "--",
        "/proc/self/cwd/init.sh",
    )


def supervised(plan: Plan, release: str, memory: int, syscall_ns: int) -> dict[str, Any]:
    """What the guest's first process runs: argv and environment, all of it fixed by plan and kernel."""
    argv = [
        interpreter(), "-S", "-s", "-m", "orchestrator.lab", "/vnet/run/plan.json",
        "--run-dir", "/vnet/run", "--state-dir", f"/run/vnet/{plan.lab}", "--agent",
        "/vnet/stage/agent", "--scenario",
    ]  # fmt: skip
    kernel: dict[str, Any] = {"kind": "uml", "release": release, "why": "virtual time", "time": "virtual"}
    kernel |= {"start_ns": START_NS, "syscall_ns": syscall_ns}
    machine = {"cpu": "modelled", "cores": 1, "mhz": CPU_MHZ, "memory_bytes": memory, "kernel": release}
    env = lab_command.environment({}, kernel, machine) | {
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC0",
        "TERM": "dumb",
        "PYTHONPATH": "/vnet/code",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {"argv": argv, "env": env}


def interpreter() -> str:
    """The real interpreter: a virtual environment's own path differs from checkout to checkout."""
    return os.path.realpath(sys.executable)


def copy_code(project: Path, to: Path) -> None:
    """The code as it is now, nothing beside it: reads take lab time, and stale bytecode makes two of one."""
    for package in PACKAGES:
        shutil.copytree(project / package, to / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", to)


def lay_out(boot_: VirtualBoot, stage: Path) -> None:
    """Make the stage: what init.sh finds in its working directory."""
    for name, target in boot_.stage.items():
        if name == "code":
            copy_code(Path(target), stage / name)
        elif Path(target).is_dir():
            (stage / name).symlink_to(target)
        else:
            shutil.copy(target, stage / name)
    images = "IMAGES=yes\n" if "images" in boot_.stage else ""
    (stage / "settings").write_text(f"PYTHON='{boot_.python}'\n{images}")
    (stage / "supervised.json").write_text(json.dumps(boot_.supervised))
