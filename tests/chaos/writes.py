"""Reads the steps of a command's writes below a directory from `strace`, and makes the directory after each.

After a power cut, a disk holds a prefix of these steps; the contents of files for which fsync was not called
may be lost. `replayed` makes every such directory, one after the other.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

CALLS = (
    "openat,open,creat,write,pwrite64,writev,lseek,ftruncate,truncate,rename,renameat,renameat2,unlink,unlinkat,"
    "mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,fsync,fdatasync,syncfs,sendfile,copy_file_range,fallocate"
)
ALL = ""  # the path that stands for the whole file system in a sync
LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?")
UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
DESCRIPTOR = re.compile(r"^(\d+|AT_FDCWD)<([^>]*)>")


@dataclass(frozen=True)
class Step:
    """One change of the directory: `name` is the operation, `path` is relative to the directory."""

    name: str
    path: str
    data: bytes = b""
    offset: int = 0
    target: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.path} {self.target or f'{len(self.data)} B at {self.offset}'}"


@dataclass
class Recorder:
    """Turns lines of strace into steps; keeps the place in each file."""

    top: Path
    steps: list[Step] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    appends: set[str] = field(default_factory=set)
    reading: set[tuple[int, str]] = field(default_factory=set)  # descriptors that are open only for reading

    def take(self, call: str, arguments: str, result: int, opened: str | None) -> None:
        if result < 0:
            return
        if call in ("openat", "open", "creat"):
            self._opened(arguments, result, plain(opened or ""))
        elif call == "syncfs":
            self.steps.append(Step("sync", ALL))
        elif call in ("write", "pwrite64", "lseek", "ftruncate", "fsync", "fdatasync"):
            self._on_descriptor(call, arguments, result)
        elif call in ("mkdir", "mkdirat", "rmdir", "unlink", "unlinkat"):
            if (path := self._below(self._paths(arguments)[0])) is not None:
                self.steps.append(Step("mkdir" if call.startswith("mkdir") else "remove", path))
                for known in (self.sizes, self.places):
                    known.pop(path, None)
        elif call in ("rename", "renameat", "renameat2"):
            self._renamed(*self._paths(arguments))
        elif any(self._below(path) is not None for path in self._paths(arguments)):
            raise ValueError(f"{call}({arguments[:200]}): nobody has said how to do that again")

    def _opened(self, arguments: str, descriptor: int, path: str) -> None:
        if (name := self._below(path)) is None or "O_DIRECTORY" in arguments:
            return
        if "O_CREAT" in arguments and name not in self.sizes:
            self.steps.append(Step("create", name))
            self.sizes[name] = 0
        if "O_TRUNC" in arguments and self.sizes.get(name):
            self.steps.append(Step("truncate", name))
            self.sizes[name] = self.places[name] = 0
        if "O_WRONLY" in arguments or "O_RDWR" in arguments:
            self.reading.discard((descriptor, name))
            self.places.setdefault(name, 0)  # the position of the file's only writer
            self.appends |= {name} if "O_APPEND" in arguments else set()
        else:
            self.reading.add((descriptor, name))

    def _on_descriptor(self, call: str, arguments: str, result: int) -> None:
        found = DESCRIPTOR.match(arguments)
        if not found or (name := self._below(plain(found[2]))) is None or name not in self.sizes:
            return
        if call == "lseek":
            if (int(found[1]), name) not in self.reading:
                self.places[name] = result
        elif call == "ftruncate":
            self.sizes[name] = int(arguments.rsplit(", ", 1)[1])
            self.steps.append(Step("truncate", name, offset=self.sizes[name]))
        elif call in ("fsync", "fdatasync"):
            self.steps.append(Step("sync", name))
        else:
            data = text(TEXT.search(arguments))[:result]
            at = self.sizes[name] if name in self.appends else self.places.get(name, 0)
            at = int(arguments.rsplit(", ", 1)[1]) if call == "pwrite64" else at
            self.places[name] = at + len(data)
            self.sizes[name] = max(self.sizes[name], at + len(data))
            self.steps.append(Step("write", name, data, at))

    def _renamed(self, old: str, new: str) -> None:
        source, target = self._below(old), self._below(new)
        if source is None and target is None:
            return
        if source is None or target is None:
            raise ValueError(f"rename {old} {new}: leads over the directory's edge")
        self.steps.append(Step("rename", source, target=target))
        for known in (self.sizes, self.places):
            moved = {name: known.pop(name) for name in list(known) if inside(name, source)}
            known.update({target + name[len(source) :]: value for name, value in moved.items()})

    def _paths(self, arguments: str) -> list[str]:
        """Returns the absolute paths in a call; a relative path begins at the directory of the descriptor
        that stands before it.
        """
        found, base = [], ""
        for part in re.split(r", ", arguments):
            if directory := DESCRIPTOR.match(part):
                base = plain(directory[2])
            elif name := TEXT.match(part):
                found.append(os.path.normpath(Path(base or Path.cwd(), text(name).decode())))
        return found

    def _below(self, path: str) -> str | None:
        name = os.path.relpath(path, self.top) if path.startswith(f"{self.top}/") else None
        return None if name is None or path.endswith("(deleted)") else name


def inside(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}/")


def plain(hexadecimal: str) -> str:
    """Returns a path that `strace -xx` writes between angle brackets, without its escape sequences."""
    return re.sub(
        r"(?:\\x[0-9a-f]{2})+", lambda run: bytes.fromhex(run[0].replace("\\x", "")).decode(), hexadecimal
    )


def text(found: re.Match[str] | None) -> bytes:
    return bytes.fromhex(found[1].replace("\\x", "")) if found else b""


def recorded(argv: Sequence[str], top: Path, log: Path, environment: Mapping[str, str]) -> list[Step]:
    """Runs a command and returns the changes that it made below `top`; raises CalledProcessError if
    it fails.
    """
    traced = ("strace", "-f", "-qqq", "-y", "-xx", "-s", "100000000", "--seccomp-bpf", "-o", str(log))
    subprocess.run([*traced, "-e", f"trace={CALLS}", *argv], check=True, env=environment, capture_output=True)
    recorder, pending = Recorder(top), dict[str, str]()
    for line in log.read_text(errors="replace").splitlines():
        if begun := UNFINISHED.match(line):
            pending[begun[1]] = begun[2]
            continue
        if rest := RESUMED.match(line):
            line = f"{rest[1]} {pending.pop(rest[1], '')}{rest[2]}"
        if found := LINE.match(line):
            recorder.take(found[2], found[3], int(found[4]), found[5])
    return recorder.steps


def replayed(steps: Sequence[Step], top: Path) -> Iterator[Step]:
    """Carries out the steps in an empty directory and yields after each, so that the caller can examine the
    directory.
    """
    for step in steps:
        path = top / step.path
        if step.name == "mkdir":
            path.mkdir()
        elif step.name == "create":
            path.touch()
        elif step.name == "remove":
            path.rmdir() if path.is_dir() else path.unlink()
        elif step.name == "rename":
            path.rename(top / step.target)
        elif step.name == "truncate":
            os.truncate(path, step.offset)
        elif step.name == "write":
            with path.open("r+b") as file:
                file.seek(step.offset)
                file.write(step.data)
        yield step


def unsynced(steps: Sequence[Step]) -> list[Step]:
    """Returns the same steps, with each content as late as a disk may have it: at the fsync of its file, or
    never. After every prefix the directory is one that a power cut can leave: the names are there, and the
    contents only of files that were synced.
    """
    kept, waiting = list[Step](), dict[str, list[Step]]()
    for step in steps:
        if step.name in ("write", "truncate"):
            waiting.setdefault(step.path, []).append(step)
            continue
        if step.name == "sync":
            for path in list(waiting) if step.path == ALL else [step.path]:
                kept += waiting.pop(path, [])
        elif step.name == "remove":
            waiting.pop(step.path, None)
        kept.append(step)
        if step.name == "rename":
            waiting.pop(step.target, None)
            for path in [path for path in waiting if inside(path, step.path)]:
                moved = step.target + path[len(step.path) :]
                waiting[moved] = [replace(one, path=moved) for one in waiting.pop(path)]
    return kept
