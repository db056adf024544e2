"""Lab kernel in virtual time: vNET's User-Mode Linux, whose clock jumps to the next event when every process
waits.

The same plan, seed, kernel, agent and programs give the same run to the bit. So nothing that differs between
two runs may reach the guest. Its command line is one constant text per plan (the kernel mixes it into its
random pool). Its files are a closed root (root/) at fixed paths. Its environment, its clock's start and its
random seed are fixed, and it receives no input while it runs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from contract import rundir
from contract.plan import WAYS, Plan
from orchestrator.images import cpio
from orchestrator.images.cpio import Entry
from orchestrator.kernel import detached, lab_command, limits
from orchestrator.kernel.needs import outside, plugin_queues, wrong_machines
from orchestrator.kernel.protocol import Fit, KernelError, LabKernel, Launch, Missing, Wish
from orchestrator.kernel.uml import boot, needs
from orchestrator.kernel.uml.binaries import UmlBinary, find_binaries
from orchestrator.kernel.uml.kernel import cleanup_uml
from orchestrator.kernel.virtual.booting import LAB_ARCHIVE, VirtualBoot
from orchestrator.kernel.virtual.owner import own
from orchestrator.kernel.virtual.root import closed
from orchestrator.kernel.virtual.root.closed import ClosedRoot, closed_root, interpreter
from orchestrator.kernel.virtual.root.dpkg import Database
from orchestrator.kernel.virtual.root.kept import Kept
from orchestrator.kernel.virtual.root.ours import code_archive, image_archive
from orchestrator.kernel.virtual.root.wanted import of_plan
from orchestrator.lab.proving import most_ns
from orchestrator.language.units import DURATION, UnitError, whole
from orchestrator.plan.nics import uses_nics
from orchestrator.project import BUILD_KERNEL, CODE_ROOT, PROJECT

# Virtual time of one system call of a node ($VNET_SYSCALL_COST); docs/virtual-time.md has the source.
SYSCALL_NS = 5_000
# Clock rate to which limits and reservations in MHz refer, because a modelled core has none of its own.
CPU_MHZ = 2_000.0
STALL_NS = 600_000_000_000  # $VNET_WATCHDOG: wall-clock time that virtual time may stand still
SETUP_NS = 3_600_000_000_000  # more than all time limits of set-up and teardown together, without the proof
GUEST = Path(__file__).with_name("guest.py")
STAGE = "vnet/stage"  # directory in the guest
ARCHIVE_STEP = (
    64 << 20
)  # so that a new version of a package does not change the lab's memory, and so its kernel's tables
# Text in vNET's kernel that takes several archives; a kernel without it is not vNET's, or too old.
MARK = b"cannot be read, or is one too many"
WITH_FAULTS = "`vnet images build lab-kernel-faults` builds a kernel that has it (5 minutes, no root)"
# format in node-faults.patch with which the kernel reads a perturbed schedule
FAULTS = b"%d schedule %llu %u"
REMEDY = f"{BUILD_KERNEL} builds the lab's own kernel (5 minutes, no root)"


class VirtualKernel(LabKernel):
    """vNET's User-Mode Linux in virtual time.

    syscall_ns: virtual time that a system call costs; stall_s: wall-clock seconds without progress of virtual
    time after which the watchdog ends the lab.
    """

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
        self.kept = Kept()
        self._root: tuple[object, ClosedRoot] | None = None  # the closed root of the plan examined last
        self.why = "asked for"
        release = self.binary.describe() if self.binary else "none"
        self.described = f"uml in virtual time ({release}; {self.syscall_ns} ns a system call)"

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns whether the plan can run in virtual time; finds the files that its programs need already
        here, not when they start.

        Without `wish.agent` (a check without a run), and if this machine lacks the kernel, the result also
        contains the problems that a machine with the kernel would find.
        """
        # The import is here, because the owner of a lab does not need the module.
        from orchestrator.kernel.virtual import closing

        refused = [*closing.real_time_only(plan)]
        missing = [] if refused else self.can(plan)
        if missing and wish.agent:
            return Fit(plan, missing)
        agent = wish.agent() if wish.agent and not refused else None
        found = [*refused, *limits.exceeded(plan, self.name, wish.out), *closing.problems(plan, self, agent)]
        return Fit(plan, missing, found)

    def can(self, plan: Plan) -> list[Missing]:
        """Returns the needs of the plan that are not met: vNET's own kernel, only light nodes, no NICs, and
        the needs of a closed root and a guest on this machine.
        """
        missing = []
        if self.binary is None:
            there = f"{self.others[0].describe()}: knows no" if self.others else "no other knows"
            missing.append(Missing("the lab's own kernel", f"{there} virtual time", REMEDY))
        if any(node.kind != "light" for node in plan.nodes):
            missing.append(Missing("virtual machines", "they cannot run in virtual time", "use --time real"))
        if uses_nics(plan):
            missing.append(Missing("NICs of the machine", "they run in real time", "use --time real"))
        missing += plugin_queues(plan) + outside(plan)
        if self.binary is not None and self.binary_of(plan) is None:
            missing += [Missing(one.what, one.reason, WITH_FAULTS) for one in wrong_machines(plan)]
        return missing + closed.missing(Database()) + needs.missing_xsave() + needs.missing(plan)

    def binary_of(self, plan: Plan) -> UmlBinary | None:
        """Returns the best kernel for a plan; for a plan with wrong clocks or schedules, the best one with
        that patch. None if there is none. Other runs do not use the patched kernel, because any change of a
        kernel moves their bytes.
        """
        return self.with_faults if wrong_machines(plan) else self.binary

    @property
    def with_faults(self) -> UmlBinary | None:
        """The best kernel with wrong clocks and schedules of nodes; None if there is none."""
        known = [one for one in (self.binary, *self.others) if one is not None]
        return next((one for one in known if FAULTS in one.path.read_bytes()), None)

    def root(self, plan: Plan, agent: Path | None) -> ClosedRoot:
        """Returns the closed root of the plan's lab; keeps the last one in memory. Raises Unclosed if there
        is none.
        """
        asked = (of_plan(plan), agent)
        if self._root is None or self._root[0] != asked:
            self._root = (asked, closed_root(plan, agent, self.kept))
        return self._root[1]

    def memory(self, plan: Plan, archives: int) -> int:
        """Returns the memory limit (bytes) of a lab whose archives of files have `archives` bytes."""
        return with_root(boot.memory_of(plan), archives)

    def start(self, launch: Launch) -> detached.DetachedLab:
        """Forks the owner process, which boots the guest and lives as long as the guest; raises KernelError
        for a lab that must stay up.
        """
        if launch.detached:
            raise KernelError(
                f"lab {launch.plan.lab}: a lab in virtual time does not stay up: while it waits "
                "for a command its clock would run on; put the commands into the timeline, "
                "or use --time real"
            )
        raw = launch.run_dir / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        plan = lab_command.with_images_at(launch.plan, "/vnet/images")
        rundir.write_plan(launch.run_dir, plan)
        boot_ = self._boot(launch)
        # Other users who read the run must be able to read the file.
        (raw / "boot.json").write_text(json.dumps(dataclasses.asdict(boot_)))
        return detached.fork(
            partial(own, boot_),
            launch.run_dir,
            launch.state_dir / "control.sock",
            logs=["owner.log", "console.log"],
            kill=lambda _: cleanup_uml(launch.state_dir),
        )

    def _boot(self, launch: Launch) -> VirtualBoot:
        if (binary := self.binary_of(launch.plan)) is None:
            raise KernelError(f"virtual time: the lab's own kernel is not built; {REMEDY}")
        plan = launch.plan
        root = self.root(plan, launch.agent)
        archives = [root.archive, code_archive(CODE_ROOT, PROJECT, self.kept)]
        if images := lab_command.images_of(plan):
            archives.append(image_archive(images, plan, self.kept))
        archives.append(launch.run_dir / "raw" / LAB_ARCHIVE)
        memory = boot.memory_of(plan)
        lab = supervised(plan, binary.release, memory, self.syscall_ns)
        with archives[-1].open("wb") as to:
            cpio.write(lab_entries(root, launch.agent, lab), to)
        memory = self.memory(plan, sum(path.stat().st_size for path in archives))
        outside = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "TMPDIR": str(boot.memory_directory(memory)),
            "HOME": "/",
            "UML_RANDOM_SEED": str(plan.seed),
        }
        stage = {"run": str(launch.run_dir)} | {f"{n}.cpio": str(path) for n, path in enumerate(archives)}
        return VirtualBoot(
            plan.lab,
            command(binary.path, plan.clock_ns, memory, self.syscall_ns, len(archives)),
            outside,
            str(launch.run_dir),
            str(launch.state_dir),
            stage,
            self.stall_s,
            latest_end_ns(plan),
        )


def latest_end_ns(plan: Plan) -> int:
    """Returns the latest time on the lab's clock (ns) at which the plan's run can end. It assumes that
    directions are measured one after the other, each as long as the file allows.
    """
    directions = len(WAYS) * len(plan.links)
    proving_ns = directions * most_ns(plan.proof, virtual=True)
    return plan.clock_ns + SETUP_NS + proving_ns + plan.ramp_ns + plan.hold_ns + plan.drain_ns


def lab_entries(root: ClosedRoot, agent: Path, lab: Mapping[str, Any]) -> list[Entry]:
    """Returns the files of this lab alone: those that its topology names, the agent, and the first process
    with its settings.
    """
    return [
        *root.named,
        Entry(f"{STAGE}/agent", stat.S_IFREG | 0o755, source=agent),
        Entry(f"{STAGE}/guest.py", stat.S_IFREG | 0o644, source=GUEST),
        cpio.file(f"{STAGE}/supervised.json", json.dumps(lab).encode()),
    ]


def with_root(memory: int, archives: int) -> int:
    """Returns the bytes of memory for a lab and its root: while the kernel unpacks the archives, their
    content exists twice.

    The unpacked files may use half of the memory that the archives leave (init/do_mounts.c: a tmpfs without a
    size).
    """
    root = -(-archives // ARCHIVE_STEP) * ARCHIVE_STEP
    return max(memory + root, 3 * root + ARCHIVE_STEP)


def setting(name: str, default_ns: int, env: Mapping[str, str] = os.environ) -> int:
    """Returns a duration of an environment variable (`5 us`, `90 s`) in ns, or the default; raises
    KernelError if it is invalid.
    """
    if name not in env:
        return default_ns
    try:
        return whole(DURATION, env[name])
    except UnitError as error:
        raise KernelError(f"{name}={env[name]}: {error}") from error


def is_ours(path: Path) -> bool:
    """Returns whether a kernel has vNET's patch in the version that this module needs."""
    return MARK in path.read_bytes()


def command(binary: Path, start_ns: int, memory: int, syscall_ns: int, archives: int) -> tuple[str, ...]:
    """Returns the kernel's command line. For one plan and cost it is the same text on every machine, except
    for argv[0].

    archives: the number of archives that make up the root; the owner links them into the kernel's working
    directory.
    """
    return (
        str(binary),
        f"mem={memory // boot.MIB}M",
        "seccomp=on",
        f"initrd={','.join(f'{number}.cpio' for number in range(archives))}",
        "initramfs_async=0",
        "norandmaps",
        "time-travel=inf-cpu",
        f"time-travel-start={start_ns}",
        f"tt-syscall-ns={syscall_ns}",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        f"uml_dir={boot.OWN}",  # relative to the stage directory
        "umid=lab",
        f"rdinit={interpreter()}",
        "--",
        "-I",
        "-S",
        "-B",
        f"/{STAGE}/guest.py",
        f"/{STAGE}/supervised.json",
    )


def supervised(plan: Plan, release: str, memory: int, syscall_ns: int) -> dict[str, Any]:
    """Returns the settings of the guest's first process, with the command of the lab process, all determined
    by plan and kernel.
    """
    argv = [
        interpreter(), "-S", "-s", "-m", "orchestrator.lab", "/vnet/run/plan.json",
        "--run-dir", "/vnet/run", "--state-dir", f"/run/vnet/{plan.lab}", "--agent",
        "/vnet/stage/agent", "--scenario",
    ]  # fmt: skip
    kernel: dict[str, Any] = {"kind": "uml", "release": release, "why": "virtual time", "time": "virtual"}
    kernel |= {"start_ns": plan.clock_ns, "syscall_ns": syscall_ns}
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
    settings: dict[str, Any] = {"limits": boot.LIMITS, "argv": argv, "env": env}
    if (open_files := boot.open_files_of(plan)) > boot.OPEN_FILES:
        settings["open_files"] = open_files
    return settings
