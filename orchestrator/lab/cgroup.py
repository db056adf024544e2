"""Creates, populates and removes the control groups of a lab: vnet/LAB/NODE below each controller that is
needed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.lab.errors import LabError

WANTED = ("cpu", "cpuacct", "memory", "pids")
MARK = "user.vnet"  # an extended attribute that vNET sets on vnet/LAB
EMPTY_S = 10.0  # longest time in s until killed processes have left their group
POLL_S = 0.01
MOST_BYTES = 1 << 20  # limit of a counter file


@dataclass(frozen=True, slots=True)
class Layout:
    """The control groups of this kernel.

    version 2: one tree for all controllers; 1: one tree for each (perhaps beside a cgroup2 without
    controllers); 0: no control groups.
    """

    version: int
    mounts: dict[str, Path] = field(default_factory=dict)  # controller -> mount point

    def roots(self, controllers: Iterable[str]) -> list[Path]:
        """Returns the mount points of the trees that have these controllers, each tree once."""
        return list(dict.fromkeys(self.mounts[c] for c in controllers if c in self.mounts))


def detect(mounts: str, controllers_of: dict[Path, str]) -> Layout:
    """Returns the layout from the text of /proc/self/mounts and the content of cgroup.controllers of each
    cgroup2 mount.
    """
    entries = [line.split() for line in mounts.splitlines() if line.strip()]
    for _, point, kind, *_ in entries:
        offered = controllers_of.get(Path(point), "").split()
        if kind == "cgroup2" and {"cpu", "memory"} & set(offered):
            # cpu.stat of cgroup2 has the CPU time with or without the controller `cpu`
            return Layout(2, {c: Path(point) for c in ("cpuacct", *offered) if c in WANTED})
    found: dict[str, Path] = {}
    for _, point, kind, options, *_ in entries:
        if kind == "cgroup":
            found.update({c: Path(point) for c in options.split(",") if c in WANTED})
    return Layout(1 if found else 0, found)


def this_machine() -> Layout:
    mounts = Path("/proc/self/mounts").read_text()
    points = [Path(line.split()[1]) for line in mounts.splitlines() if " cgroup2 " in line]
    return detect(mounts, {p: (p / "cgroup.controllers").read_text() for p in points})


class Groups:
    """The control groups of one lab.

    controllers: the controllers in use. `cpu` is added only when a limit needs it, since this controller
    changes scheduling even without limits.
    """

    def __init__(self, layout: Layout, lab: str) -> None:
        self.layout = layout
        self.lab = lab
        self.controllers: list[str] = [c for c in ("cpuacct", "memory", "pids") if c in layout.mounts]

    def need(self, controller: str, why: str) -> None:
        """Adds `controller` to the controllers in use; raises LabError if this kernel lacks it."""
        if controller not in self.layout.mounts:
            raise LabError(
                f"{why}: needs the {controller} controller, which this kernel's control groups do not offer "
                f"(version {self.layout.version or 'none'}); mount it, or leave the limit out"
            )
        if controller not in self.controllers:
            self.controllers.append(controller)

    def create(self, cgroups: Iterable[str]) -> None:
        """Makes the lab's own group and each of `cgroups` in every tree; existing ones stay. In version 2,
        also enables the controllers for the groups. Raises LabError if the lab's group is another
        program's.
        """
        roots = self.layout.roots(self.controllers)
        for root in roots:
            _make(root / "vnet" / self.lab)
            if self.layout.version == 2:
                self._delegate(root)
        # Paths are joined as text, since joining Path objects costs more than making the group.
        for cgroup in cgroups:
            for root in roots:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(f"{root}/{cgroup}")  # noqa: PTH102

    def procs(self, cgroup: str) -> list[str]:
        """Returns the files to which a process writes its pid to join a group, one for each tree."""
        return [f"{root}/{cgroup}/cgroup.procs" for root in self.layout.roots(self.controllers)]

    def cpu_files(self, cgroup: str) -> list[str]:
        """Returns the file that holds the CPU time of a group, in a list; empty if no controller
        counts it.
        """
        root = self.layout.mounts.get("cpuacct")
        name = "cpu.stat" if self.layout.version == 2 else "cpuacct.usage"
        return [f"{root}/{cgroup}/{name}"] if root else []

    def memory_file(self, cgroup: str) -> str | None:
        root = self.layout.mounts.get("memory")
        name = "memory.current" if self.layout.version == 2 else "memory.usage_in_bytes"
        return f"{root}/{cgroup}/{name}" if root else None

    def adopt(self, cgroup: str) -> None:
        """Moves a group's processes also into trees of controllers that were added later (only version 1 has
        several trees).
        """
        members = {pid for file in self.procs(cgroup) for pid in Path(file).read_text().split()}
        for file in self.procs(cgroup):
            for pid in members - set(Path(file).read_text().split()):
                _write(Path(file), pid)

    def move(self, pid: int, cgroup: str) -> None:
        """Moves a process into a group, in every tree; ignores a process that has ended."""
        for file in self.procs(cgroup):
            _write(Path(file), str(pid))

    def remove(self, cgroups: Iterable[str]) -> None:
        """Removes single groups, with the groups that a node's programs made in them, and kills their
        processes.
        """
        for cgroup in cgroups:
            for root in self.layout.roots(self.controllers):
                remove_tree(root / cgroup)

    def remove_all(self) -> None:
        for root in self.layout.roots(self.controllers):
            if is_ours(top := root / "vnet" / self.lab):
                remove_tree(top)
            remove_if_empty(root / "vnet")

    def _delegate(self, root: Path) -> None:
        enable = " ".join(f"+{c}" for c in self.controllers if c != "cpuacct")
        if enable:
            for directory in (root, root / "vnet", root / "vnet" / self.lab):
                _write(directory / "cgroup.subtree_control", enable)


def above(lab: str) -> list[Path]:
    """Returns the parent groups of a lab's nodes in the tree of `cpu`; no topology sets a CPU
    limit on these.
    """
    root = this_machine().mounts.get("cpu")
    return [root / "vnet" / lab, root / "vnet"] if root else []


def lab_groups(layout: Layout, lab: str) -> list[Path]:
    """Returns every existing group of a lab, including libvirt's, the deepest first."""
    tops = [top for root in layout.roots(WANTED) if is_ours(top := root / "vnet" / lab)]
    # These are libvirt's groups, see vm/limits.py.
    tops += [root / "vnet.partition" / f"{lab}.partition" for root in trees()]
    return [Path(d) for top in tops if top.is_dir() for d, _, _ in os.walk(top, topdown=False)]


def labs(layout: Layout) -> set[str]:
    """Returns the names of all labs that have a control group."""
    tops = [root / "vnet" for root in layout.roots(WANTED)]
    return {d.name for top in tops if top.is_dir() for d in top.iterdir() if d.is_dir() and is_ours(d)}


def is_ours(top: Path) -> bool:
    """Returns whether vnet/LAB belongs to a lab. It does if it has the mark. It also does if it is empty
    (after a crash before the mark was set), or if this kernel has no extended attributes on control groups
    (before Linux 5.7).
    """
    try:
        return MARK in os.listxattr(top) or not (members(top) or any(d.is_dir() for d in top.iterdir()))
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return top.is_dir()


def trees() -> list[Path]:
    """Returns every mounted tree of control groups, of either version."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [Path(line.split()[1]) for line in lines if line.split()[2] in ("cgroup", "cgroup2")]


def _make(group: Path) -> None:
    """Makes a lab's own group and marks it; raises LabError if another program made it."""
    while not group.is_dir():
        # The teardown of another lab has removed the empty parent group.
        with contextlib.suppress(FileNotFoundError):
            group.mkdir(parents=True, exist_ok=True)
    if not is_ours(group):
        remedy = "remove it, or name the lab otherwise (--lab)"
        raise LabError(f"control group {group}: is there, and not of a lab of vNET; {remedy}")
    try:
        os.setxattr(group, MARK, b"1")
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise LabError(f"control group {group}: cannot be marked: {error.strerror}") from error


def remove_tree(top: Path, timeout_s: float = EMPTY_S) -> None:
    """Removes a group and the groups below it; a group that does not exist any more is no error.

    Kills the processes in the groups and waits for their end. Raises OSError (EBUSY) if a group is not empty
    after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    _remove_empty(top)
    for directory, _, _ in os.walk(top, topdown=False):
        group = Path(directory)
        while not _removed(group):
            if time.monotonic() > deadline:
                left = ", ".join(map(str, members(group))) or "none that can be seen"
                raise OSError(errno.EBUSY, f"not empty after {timeout_s:g} s, processes: {left}", str(group))
            for pid in members(group):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            # The loop waits until the group is empty, which rmdir shows; it checks the deadline above.
            time.sleep(POLL_S)


def _remove_empty(top: Path) -> None:
    """Removes the groups below `top` that contain neither processes nor groups (most of them) without reading
    their directories.
    """
    with contextlib.suppress(OSError):
        for group in [entry.path for entry in os.scandir(top) if entry.is_dir(follow_symlinks=False)]:
            with contextlib.suppress(OSError):
                os.rmdir(group)  # noqa: PTH106


def _removed(group: Path) -> bool:
    """Removes the group if it has no process left; returns whether it is removed. A killed process leaves the
    group only when the kernel has reaped it.
    """
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def members(group: Path) -> list[int]:
    """Returns the processes in the group itself; empty if the group does not exist or is unreadable."""
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except (FileNotFoundError, OSError):
        return []


def remove_if_empty(directory: Path) -> None:
    """Removes a group, such as the one above all labs' groups, if it contains no other group."""
    if directory.is_dir() and not any(entry.is_dir() for entry in directory.iterdir()):
        directory.rmdir()


def text_of(file: Path | str) -> str:
    """Returns the text of a counter file of the kernel. It makes three system calls instead of the seven of
    Path.read_text, because each node has several such files and a guest's system calls are slow.
    """
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(opened, MOST_BYTES).decode(errors="replace")
    finally:
        os.close(opened)


def put(file: Path | str, text: str) -> None:
    """Writes a file of the kernel with three system calls (open, write, close), as `text_of` reads one."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(opened, text.encode())
    finally:
        os.close(opened)


def _write(file: Path, text: str) -> None:
    try:
        put(file, text)
    except ProcessLookupError:
        return  # the process ended after it was listed
    except OSError as error:
        raise LabError(f"{file}: {text}: the kernel refuses ({error.strerror})") from error


def own_pids_max(own: str | None = None) -> int | None:
    """Returns pids.max of this process's control group; None if there is no such file or it sets no limit.
    own: the text of /proc/self/cgroup.
    """
    own = Path("/proc/self/cgroup").read_text() if own is None else own
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        base = {"pids": "/sys/fs/cgroup/pids", "": "/sys/fs/cgroup"}.get(controllers)
        limit = Path(f"{base}{path}") / "pids.max"
        if base and limit.exists() and (text := limit.read_text().strip()) != "max":
            return int(text)
    return None
