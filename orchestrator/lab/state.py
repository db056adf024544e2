"""Keeps the state directory of a lab: its processes (lab.json), and a lock so that only one lab has a name at
a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.lab.errors import LabError

NAME_IN_USE = "the name is in use"  # in the error of a lab whose name another lab has
MODE = 0o755  # mode of the state directories: only their user writes there, whatever the umask


@dataclass(frozen=True, slots=True)
class Owned:
    """A process of the lab. It counts as alive only while its start time equals `start_ticks`, because pids
    are reused.
    """

    role: str
    pid: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks


def start_ticks(pid: int) -> int | None:
    """Returns the start time of a process in ticks (field 22 of /proc/PID/stat); None if it does not exist or
    is a zombie.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[
        2
    ].split()  # the command's name may hold any character and ends at the last ")"
    return None if fields[0] in "ZX" else int(fields[19])


def owned(role: str, pid: int) -> Owned:
    """Returns the process with its start time; raises LabError if it has ended."""
    ticks = start_ticks(pid)
    if ticks is None:
        raise LabError(f"process {pid} ({role}): ended at once; its log says why")
    return Owned(role, pid, ticks)


def state_root() -> Path:
    """Returns the directory that contains the state directories of labs: VNET_STATE_DIR, for root /run/vnet,
    else the user's runtime directory or /tmp/vnet-UID.
    """
    if override := os.environ.get("VNET_STATE_DIR"):
        return Path(override)
    if os.geteuid() == 0:
        return Path("/run/vnet")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "vnet" if runtime else Path(f"/tmp/vnet-{os.geteuid()}")


def read_lab(state_dir: Path) -> dict[str, Any]:
    """Returns the content of lab.json; an empty dict if the file does not exist, was damaged by a crash, or
    holds no object.
    """
    try:
        data = json.loads((state_dir / "lab.json").read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def in_use(state_dir: Path) -> bool:
    """Returns whether a lab holds the directory's lock, or a process recorded in it is alive; False if there
    is no lock file.
    """
    try:
        descriptor = os.open(state_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return any(process.alive for process in processes(state_dir))


def processes(state_dir: Path) -> list[Owned]:
    """Returns the processes that lab.json records, alive or not."""
    return [Owned(p["role"], p["pid"], p["start_ticks"]) for p in read_lab(state_dir).get("processes", [])]


class State:
    """A state directory that a running lab has claimed. The constructor locks it, raises LabError if another
    lab has the name, and records this process.
    """

    def __init__(self, directory: Path, lab: str, kernel: str, run_dir: Path, time: str = "real") -> None:
        self.directory = directory
        self._lock = _lock(directory, lab)
        self._about = {"lab": lab, "kernel": kernel, "time": time, "run_dir": str(run_dir)}
        self._processes: list[Owned] = []
        self._stays: str | None = None
        self.record("lab", os.getpid())

    def record(self, role: str, pid: int) -> Owned:
        """Records a process in lab.json before the process has effects, so that a teardown after a crash
        finds it; raises LabError if it has ended.
        """
        process = owned(role, pid)
        self._processes.append(process)
        self._write()
        return process

    def forget(self, pid: int) -> None:
        """Removes the record of a process from lab.json."""
        self._processes = [p for p in self._processes if p.pid != pid]
        self._write()

    def end(self, pid: int) -> None:
        """Kills a process that should have ended, if it still runs, and removes its record."""
        for process in self._processes:
            if process.pid == pid and process.alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.forget(pid)

    def release(self) -> None:
        """Removes the directory with its lock, and the directory of all labs' states if that is then empty;
        keeps the directory but unlocks it if `stay` was called.
        """
        if self._stays is not None:
            self.leave(self._stays)
            return
        shutil.rmtree(self.directory, ignore_errors=False)
        os.close(self._lock)
        forget_root(self.directory.parent)

    def stay(self, why: str) -> None:
        """Makes `release` keep the directory, with the reason `why`, because something of the lab cannot be
        removed yet.
        """
        self._stays = why

    def leave(self, died: str) -> None:
        """Keeps the directory, writes into it for later commands why the lab ended, and unlocks it."""
        self._about["died"] = died
        self._write()
        os.close(self._lock)

    def _write(self) -> None:
        text = json.dumps({**self._about, "processes": [asdict(p) for p in self._processes]}, indent=1)
        replace(self.directory / "lab.json", text)


def is_state(directory: Path) -> bool:
    """Returns whether a lab made the directory: it is empty or contains a lock or lab.json. Hidden
    directories, which labs share, and links do not count.
    """
    hidden = directory.name.startswith(".")  # all labs share hidden directories, such as that of the leases
    if hidden or directory.is_symlink() or not directory.is_dir():
        return False
    names = {entry.name for entry in directory.iterdir()}
    return not names or bool(names & {"lock", "lab.json"})


def forget_root(root: Path) -> None:
    """Removes the directory of all labs' states if it is the default one and empty; does nothing if
    VNET_STATE_DIR is set.
    """
    if root == state_root() and "VNET_STATE_DIR" not in os.environ:
        with contextlib.suppress(OSError):  # another lab's state is in the directory
            root.rmdir()


def replace(path: Path, text: str) -> None:
    """Writes a whole file by renaming, so that a reader sees either the old or the new content, never a part
    of it.

    An OSError names the file, even if the write failed.
    """
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    part.rename(path)


def _lock(directory: Path, lab: str) -> int:
    """Makes and locks the lab's state directory; returns the lock's descriptor. Raises LabError if another
    lab has the name, if a process of a crashed lab still exists, or if the directory is not a lab's.
    """
    path = directory / "lock"
    _own(directory.parent)
    while True:
        try:
            directory.mkdir(mode=MODE, parents=True, exist_ok=True)
        except FileExistsError:
            raise LabError(_foreign(directory)) from None
        try:
            if directory.exists() and not is_state(directory):
                raise LabError(_foreign(directory))
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # the lab that used the directory last has just removed it
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LabError(_taken(directory, lab)) from None
        if _same_file(descriptor, path):
            break
        os.close(descriptor)  # the owner removed the directory between open and lock
    if living := [p for p in processes(directory) if p.alive]:
        os.close(descriptor)
        raise LabError(
            f"{_taken(directory, lab)} (its {living[0].role} process {living[0].pid} outlived a crash)"
        )
    return descriptor


def _own(root: Path) -> None:
    """Makes the directory of all labs' states; raises LabError if that fails. Also raises it if the directory
    is the default one and another user owns it or may write there (in /tmp).
    """
    try:
        root.mkdir(mode=MODE, parents=True, exist_ok=True)
    except OSError as error:
        remedy = "set VNET_STATE_DIR to a directory that can be written to"
        raise LabError(f"{root}: cannot be made: {error.strerror}; {remedy}") from error
    about = root.lstat()
    shared = stat.S_ISLNK(about.st_mode) or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if (
        root == state_root()
        and "VNET_STATE_DIR" not in os.environ
        and (about.st_uid != os.geteuid() or shared)
    ):
        raise LabError(
            f"{root}: belongs to another user, or others may write there; remove it, or set VNET_STATE_DIR"
        )


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _foreign(directory: Path) -> str:
    remedy = "name the lab otherwise (--lab), or set VNET_STATE_DIR to a directory of its own"
    return f"{directory}: is there, and holds nothing of a lab; {remedy}"


def _taken(directory: Path, lab: str) -> str:
    pids = [str(p.pid) for p in processes(directory) if p.role == "lab"]
    by = f" by process {pids[0]}" if pids else ""
    remedy = "wait until that lab has ended (`vnet ls` shows it), or give another name (--lab)"
    return f"lab {lab}: {NAME_IN_USE}{by} ({directory}); {remedy}"
