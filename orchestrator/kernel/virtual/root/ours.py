"""Builds the archives that do not come from packages: the lab process's code, and unpacked
container images.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from contract.plan import Plan
from orchestrator.images import cpio
from orchestrator.images.cpio import Entry
from orchestrator.kernel.virtual.root.bytecode import compiled
from orchestrator.kernel.virtual.root.closed import interpreter
from orchestrator.kernel.virtual.root.kept import Kept, stamp

PACKAGES = ("orchestrator", "capture", "contract")  # packages that the lab process imports
# Suffixes of vNET's code, and of files that nodes run from it; other files beside them are no input of a run.
SUFFIXES = {".py", ".sh", ".erl", ".j2", ".json", ".yaml"}
CODE, IMAGES = "vnet/code", "vnet/images"  # directories in the guest


def code_archive(code: Path, project: Path, kept: Kept) -> Path:
    """Returns the archive of vNET's code as it is now: the files of PACKAGES with one of SUFFIXES, their
    bytecode, and pyproject.toml. Makes it if the cache does not have it.
    """
    files = [path for package in PACKAGES for path in sorted((code / package).rglob("*")) if _is_code(path)]
    name = _name(files, interpreter())

    def entries() -> Iterator[Entry]:
        found = [
            Entry(f"{CODE}/{path.relative_to(code)}", stat.S_IFREG | 0o644, source=path) for path in files
        ]
        yield from found
        yield from compiled(found, interpreter(), kept.directory / "bytecode")
        yield Entry(f"{CODE}/pyproject.toml", stat.S_IFREG | 0o644, source=project / "pyproject.toml")

    return kept.archive(f"code-{name}.cpio", lambda to: cpio.write(entries(), to))


def image_archive(images: Path, plan: Plan, kept: Kept) -> Path:
    """Returns the archive of a plan's container images, which are unpacked below `images` in directories
    named by their hashes.
    """
    names = sorted({Path(node.image_root).name for node in plan.nodes if node.image_root})

    def entries() -> Iterator[Entry]:
        for name in names:
            yield from _tree(images / name, f"{IMAGES}/{name}")

    return kept.archive(
        f"images-{_digest([*names, str(os.geteuid() == 0)])}.cpio", lambda to: cpio.write(entries(), to)
    )


def _is_code(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.is_file()


def _name(files: Iterable[Path], interpreter_: str) -> str:
    return _digest([interpreter_, *(f"{path} {stamp(path)}" for path in files)])


def _digest(said: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]


def _tree(real: Path, place: str) -> Iterator[Entry]:
    """Yields everything below a directory, without sockets. Files that an ordinary user unpacked belong to
    root, since this user cannot give files away.
    """
    mine = os.geteuid()
    for top, directories, files in os.walk(real):
        for name in [".", *directories, *files] if top == str(real) else [*directories, *files]:
            path = Path(top, name)
            about = path.lstat()
            inside = os.path.normpath(f"{place}/{path.relative_to(real)}")
            owner = [0 if number == mine or mine else number for number in (about.st_uid, about.st_gid)]
            entry = Entry(inside, about.st_mode, uid=owner[0], gid=owner[1], device=about.st_rdev)
            if stat.S_ISLNK(about.st_mode):
                yield Entry(inside, about.st_mode, os.fsencode(path.readlink()), None, *owner)
            elif stat.S_ISREG(about.st_mode):
                yield Entry(inside, about.st_mode, b"", path, *owner)
            elif not stat.S_ISSOCK(about.st_mode):
                yield entry
