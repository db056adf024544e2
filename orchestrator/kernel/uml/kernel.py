"""Lab kernel `uml`: a User-Mode Linux kernel, which runs as an ordinary process of any user."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from contract import rundir
from contract.plan import Plan
from orchestrator.kernel import detached, lab_command, limits, visible
from orchestrator.kernel.needs import outside, wrong_machines
from orchestrator.kernel.process import end, session_members
from orchestrator.kernel.protocol import Fit, KernelError, LabKernel, Launch, Missing, Wish
from orchestrator.kernel.uml import boot, needs
from orchestrator.kernel.uml.binaries import UmlBinary, find_binaries, too_old
from orchestrator.lab.state import Owned, processes
from orchestrator.plan.nics import uses_nics
from orchestrator.project import BUILD_KERNEL, CODE_ROOT

BOOT_DEADLINE_S = 60.0  # s; a boot takes 0.5 to 3 s, and on a machine under full load perhaps ten times that
REMEDY = f"apt-get install user-mode-linux kmod, or {BUILD_KERNEL} for a five times faster one"

LabCommand = Callable[[Launch, Path], Sequence[str]]


def lab_in_guest(launch: Launch, guest_state: Path) -> Sequence[str]:
    """Returns the arguments after the interpreter's own options that run the lab process in the guest."""
    words = lab_command.arguments(launch, guest_state, launch.agent, prefix="/host")
    return words[words.index("-m") :]


class UmlKernel(LabKernel):
    """A User-Mode Linux kernel on this machine. payload: replaces the command of the lab process, for tests
    that run a few lines of their own in a guest.
    """

    name = "uml"

    def __init__(
        self,
        binaries: Sequence[UmlBinary] | None = None,
        payload: LabCommand = lab_in_guest,
        deadline_s: float = BOOT_DEADLINE_S,
        why: str = "asked for",
    ) -> None:
        self.binaries = find_binaries() if binaries is None else list(binaries)
        self._found = binaries is None
        self.payload = payload
        self.deadline_s = deadline_s
        self.why = why
        self.described = f"uml ({self.binaries[0].describe()})" if self.binaries else "uml (none)"

    @classmethod
    def clean(cls, state_dir: Path) -> bool:
        """Ends the guest kernel of a dead lab and removes its state directory; returns False. Raises
        KernelError if a process does not end.
        """
        cleanup_uml(state_dir)
        return False

    def examine(self, plan: Plan, wish: Wish) -> Fit:
        """Returns whether a guest kernel can carry the plan; such a kernel has netem."""
        return limits.fit(plan, self.can(plan), self.name, wish.out)

    def can(self, plan: Plan) -> list[Missing]:
        """Returns the needs of the plan that are not met: a kernel, its modules, virtual machines, NICs, or
        the guest's needs of this machine.
        """
        missing = [] if self.binaries else [missing_kernel(self._passed_over())]
        if self.binaries and (reason := modules_missing(self.binaries[0])):
            missing.append(Missing("modules of the User-Mode Linux kernel", reason, REMEDY))
        if any(node.kind != "light" for node in plan.nodes):
            missing.append(Missing("virtual machines", "a guest kernel cannot run KVM", "", "host"))
        if uses_nics(plan):
            missing.append(Missing("NICs of the machine", "a guest kernel has none", "", "host"))
        return missing + needs.missing(plan) + wrong_machines(plan) + outside(plan)

    def start(self, launch: Launch) -> detached.DetachedLab:
        """Writes the plan and the boot files into the run directory, and starts the owner process, which
        boots the guest and lives as long as the guest. Raises KernelError if there is no kernel, or not
        enough memory.
        """
        control = detached.control_socket(launch.state_dir)
        if not self.binaries:
            raise KernelError(f"uml: needs {missing_kernel(self._passed_over())}")
        self._prepare(launch)
        environment = {**os.environ, "PYTHONPATH": str(CODE_ROOT)}
        return detached.spawn(
            [
                sys.executable,
                "-s",
                "-m",
                "orchestrator.kernel.uml.owner",
                str(launch.run_dir / "raw" / "boot.json"),
            ],
            launch.run_dir,
            control,
            logs=["owner.log", "console.log"],
            env=environment,
            lifeline=not launch.detached,
            kill=lambda pid: _kill(launch.state_dir, pid),
        )

    def _passed_over(self) -> Sequence[UmlBinary]:
        return too_old() if self._found else ()

    def _prepare(self, launch: Launch) -> None:
        raw = launch.run_dir / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        images = lab_command.images_of(launch.plan)
        plan = lab_command.with_images_at(launch.plan, f"/host{images}")
        rundir.write_plan(launch.run_dir, plan)
        binary = self.binaries[0]
        guest_state = Path("/run/vnet") / launch.plan.lab
        kernel = {"kind": "uml", "release": binary.release, "why": self.why}
        env = lab_command.environment(os.environ, kernel, url=launch.machine)
        boot.write_settings(
            raw,
            binary,
            launch.run_dir,
            CODE_ROOT,
            self.payload(launch, guest_state),
            env,
            str(guest_state / "control.sock"),
            visible.shown_in_guest(plan),
            boot.open_files_of(launch.plan),
        )
        memory = boot.memory_of(launch.plan)
        argv = boot.command(binary, memory, launch.state_dir, sys.executable)
        outside: Mapping[str, str] = {"PATH": env["PATH"], "TMPDIR": str(boot.memory_directory(memory))}
        what = boot.Boot(
            launch.plan.lab,
            argv,
            dict(outside),
            str(launch.run_dir),
            str(launch.state_dir),
            self.deadline_s,
            launch.detached,
        )
        (raw / "boot.json").write_text(json.dumps(dataclasses.asdict(what)))


def missing_kernel(old: Sequence[UmlBinary]) -> Missing:
    """Returns a missing need: the kernel, with the reason. old: kernels without room for this processor's
    registers.
    """
    if not old:
        return Missing("a User-Mode Linux kernel", "none is installed or built", REMEDY)
    reason = f"{old[0].describe()}, cannot hold this processor's AMX registers"
    return Missing("a newer User-Mode Linux kernel", reason, f"{BUILD_KERNEL} (5 minutes, no root)")


def modules_missing(binary: UmlBinary) -> str | None:
    """Returns why a kernel cannot load its modules: overlay.ko or modprobe is missing; None if both are
    there or the kernel has no modules.
    """
    if binary.modules is None:
        return None
    overlay = binary.modules / "kernel/fs/overlayfs/overlay.ko"
    if not overlay.exists():
        return f"{overlay} does not exist"
    found = shutil.which("modprobe", path="/usr/sbin:/sbin:/usr/bin:/bin")
    return None if found else "modprobe is not installed"


def cleanup_uml(state_dir: Path) -> None:
    """Ends the processes that lab.json names and those that the kernel left in its session; removes the state
    directory.

    Ignores what does not exist any more. Raises KernelError if a process runs 5 s after SIGKILL.
    """
    recorded = processes(state_dir)
    left = end(recorded) + end(_threads(recorded, _binary(state_dir)))
    if left:
        pids = ", ".join(f"{p.pid} ({p.role})" for p in left)
        raise KernelError(
            f"{state_dir}: process {pids} does not end; look at it with ps, then repeat `vnet down`"
        )
    shutil.rmtree(state_dir, ignore_errors=False) if state_dir.exists() else None


def _threads(recorded: Sequence[Owned], binary: str) -> list[Owned]:
    kernels = [p for p in recorded if p.role == "uml"]
    return [member for kernel in kernels for member in session_members(kernel.pid, binary)] if binary else []


def _binary(state_dir: Path) -> str:
    path = state_dir / "binary"
    return path.read_text() if path.exists() else ""


def _kill(state_dir: Path, owner: int) -> None:
    """Cleans up if the state directory belongs to that owner, since an owner that was refused the lab's name
    owns nothing.
    """
    if any(p.pid == owner for p in processes(state_dir)):
        cleanup_uml(state_dir)
