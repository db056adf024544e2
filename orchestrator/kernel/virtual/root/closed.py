"""Makes the closed root of a plan: its packages and files, as archives for the lab's kernel."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from contract.plan import Plan
from orchestrator.images import cpio
from orchestrator.images.cpio import Entry
from orchestrator.kernel.protocol import Missing
from orchestrator.kernel.virtual.root import generated, tree
from orchestrator.kernel.virtual.root.bytecode import compiled
from orchestrator.kernel.virtual.root.closure import close
from orchestrator.kernel.virtual.root.dpkg import Database
from orchestrator.kernel.virtual.root.kept import Kept, Known, signature, stamp
from orchestrator.kernel.virtual.root.places import LIBRARIES, LOCAL_LIBRARY, Closure
from orchestrator.kernel.virtual.root.wanted import Wanted, of_plan

FORM = "1"  # version of this code's output; a change makes new archives of the same files
# Programs that every node has: a shell, the usual small programs, and the programs that build and capture a
# lab.
_BASE = (
    "base-files base-passwd bash coreutils dash findutils grep gzip hostname iproute2 iputils-ping "
    "libc-bin mawk ncurses-base netbase procps sed tar tcpdump util-linux"
)
BASE = tuple(_BASE.split())
_PYTHON = re.compile(r"usr/bin/python3\.\d+")


@dataclass(frozen=True, slots=True)
class ClosedRoot:
    """The files of a lab.

    archive: the packages' files; named: files that the topology names in addition; inputs: hashes of the
    packages and the named sources by name.
    """

    archive: Path
    named: tuple[Entry, ...]
    inputs: dict[str, str]

    @property
    def bytes(self) -> int:
        """The number of bytes that the files take in a lab's memory."""
        files = (one.source.stat().st_size if one.source else len(one.data) for one in self.named)
        return self.archive.stat().st_size + sum(files)


def interpreter() -> str:
    """Returns the real path of this interpreter; the path in a virtual environment would differ from checkout
    to checkout.
    """
    return os.path.realpath(sys.executable)


def missing(database: Database) -> list[Missing]:
    """Returns the reason why this machine cannot build a closed root (no dpkg database); empty if it can."""
    if (database.admin / "status").exists():
        return []
    reason = f"{database.admin}/status is not there: this is no Debian, so no package can be found for a file"
    remedy = "use --time real, or a Debian machine (--kernel ssh://HOST)"
    return [Missing("Debian's database of packages", reason, remedy)]


def closed_root(plan: Plan, agent: Path | None, kept: Kept, database: Database | None = None) -> ClosedRoot:
    """Returns the closed root of a plan, from the cache or newly made. Raises Unclosed with the keys of the
    topology that prevent it.
    """
    database = database or Database()
    wanted = [*of_the_lab(agent), *of_plan(plan)]
    code = sorted(Path(__file__).parent.glob("*.py"))
    asked = signature(database, wanted, (str(stamp(path)) for path in code))
    known = kept.known(asked)
    if known is None:
        known = _make(database, close(database, wanted, BASE), kept)
        kept.know(asked, known)
    library = sysconfig.get_path("stdlib")
    named = tree.of_paths(database, Closure(paths=known.paths), passed_over=str(agent), library=library)
    entries = [entry for source in named for entry in source.entries]
    if any(entry.path.startswith(f"{LOCAL_LIBRARY}/lib".lstrip("/")) for entry in entries):
        own = generated.libraries({entry.path: entry for entry in entries}, LIBRARIES)
        entries.append(generated.loader_cache(known.libraries | own))
    bytecode = compiled(entries, interpreter(), kept.directory / "bytecode")
    inputs = known.inputs | {source.name: source.described for source in named}
    return ClosedRoot(kept.directory / known.archive, (*entries, *bytecode), inputs)


def of_the_lab(agent: Path | None) -> Iterator[Wanted]:
    """Yields the lab process's own files: this interpreter, its library, and the agent unless that
    is None.
    """
    key = "the lab process"
    yield Wanted(interpreter(), "path", key, must=True)
    library = sysconfig.get_path("stdlib")
    if library.startswith("/usr/lib/python"):  # Debian's Python is in two packages
        yield Wanted(f"{library}/os.py", "path", key, must=True)
        yield Wanted(f"{library}/asyncio/__init__.py", "path", key, must=True)
    else:
        yield Wanted(library, "path", key, must=True)
    if agent is not None:
        yield Wanted(str(agent), "path", "the agent", must=True)


def _make(database: Database, closure: Closure, kept: Kept) -> Known:
    packages = tree.of_packages(database, closure)
    accounts = generated.accounts(database, closure.packages)
    there = {entry.path: entry for source in packages for entry in source.entries}
    there |= {entry.path: entry for entry in generated.made_at_installation(there, closure.packages)}
    there |= {entry.path: entry for entry in generated.merged(database)}
    there |= {entry.path: entry for entry in generated.settings(accounts)}
    there |= {entry.path: entry for entry in generated.alternatives(database, there)}
    libraries = generated.libraries(there, LIBRARIES)
    cache = generated.loader_cache(libraries)
    there[cache.path] = cache
    inputs = {source.name: source.described for source in packages}
    inputs["closed root"] = _digest([FORM, tree.digest(there[path] for path in sorted(there))])
    sources = [one.source for one in there.values() if one.source is not None]
    files = {str(path): list(stamp(path) or ()) for path in (*sources, *sorted(closure.looked))}
    entries = [*there.values(), *_bytecode(there, kept)]
    archive = kept.archive(f"{inputs['closed root']}.cpio", lambda to: cpio.write(entries, to))
    return Known(archive.name, inputs, closure.paths, files, libraries)


def _bytecode(there: dict[str, Entry], kept: Kept) -> Iterator[Entry]:
    """Yields bytecode for each Python of the closed root, for its library and its installed packages."""
    pythons = sorted(path for path in there if _PYTHON.fullmatch(path))
    for python in pythons:
        version = python.removeprefix("usr/bin/")
        own = f"usr/lib/{version}/"
        of_all = "usr/lib/python3/" if python == pythons[0] else own
        entries = [entry for path, entry in there.items() if path.startswith((own, of_all))]
        yield from compiled(entries, f"/{python}", kept.directory / "bytecode")


def _digest(said: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(list(said)).encode()).hexdigest()[:32]
