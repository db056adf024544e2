"""Exports a built lab kernel into one file, named by its hash, and imports it on a machine that cannot build
one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.uml.binaries import cache_dir, find_binaries, release_of
from orchestrator.kernel.uml.recipe import DIRECTORY, RECORD, record

KERNEL = "linux"
MOST_BYTES = 64 << 20  # bytes; a lab kernel has 9 MB
_HASH = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Carried:
    """An exported or imported kernel. known: True if images/kernel/known-builds lists these bytes for its
    inputs.
    """

    path: Path
    name: str  # hash of all inputs of the kernel's build
    sha256: str
    known: bool


def export_kernel(target: Path, env: Mapping[str, str] = os.environ) -> Carried:
    """Writes the best built kernel into a new file `target`, or into lab-kernel-NAME.tar.gz if `target` is
    a directory. Raises KernelError if none is built, if the kernel differs from its record, or if the file
    exists or cannot be written.
    """
    built = [binary.path for binary in find_binaries(env) if binary.origin == "built"]
    if not built:
        raise KernelError("lab-kernel: none is built here; vnet images build lab-kernel")
    kernel = built[0]
    name, content = kernel.parent.name, kernel.read_bytes()
    told = record(kernel)
    if told.get("sha256") != (sha256 := _sha256(content)):
        raise KernelError(
            f"{kernel}: is not what its {RECORD} says; vnet images rm lab-kernel, and build it again"
        )
    if target.is_dir():
        target /= f"lab-kernel-{name}.tar.gz"
    try:
        with target.open("xb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            for member, data, mode in (
                (RECORD, json.dumps(told).encode(), 0o644),
                (KERNEL, content, 0o755),
            ):
                about = tarfile.TarInfo(f"{name}/{member}")
                about.size, about.mode = len(data), mode
                tar.addfile(about, io.BytesIO(data))
    except FileExistsError:
        raise KernelError(f"{target}: is there already; name another file") from None
    except OSError as error:
        raise KernelError(f"{target}: cannot be written ({error.strerror})") from error
    return Carried(target, name, sha256, _known(name, sha256))


def import_kernel(source: Path, env: Mapping[str, str] = os.environ) -> Carried:
    """Installs the kernel of an exported file in the cache of built kernels. Raises KernelError, and changes
    nothing, if the file is invalid or the kernel does not run here.
    """
    try:
        name, told, content = _read(source)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise KernelError(
            f"{source}: no file of vnet images export ({error}); export it again where it was built"
        ) from None
    sha256 = _sha256(content)
    listed = _listed(name)
    for rule, wanted in (("its own record", told.get("sha256")), ("known-builds", listed or sha256)):
        if sha256 != wanted:
            raise KernelError(
                f"{source}: the kernel (sha256 {sha256}) is not that of {rule} ({wanted}); it was changed on "
                "its way: carry it again"
            )
    place = cache_dir(env) / name
    part = place / f"{KERNEL}.part-{os.getpid()}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.chmod(0o755)
        if release_of(part) is None:
            raise KernelError(
                f"{source}: the kernel does not run here; build one: vnet images build lab-kernel"
            )
        (place / RECORD).write_text(json.dumps(told) + "\n")
        part.replace(place / KERNEL)
    except OSError as error:
        raise KernelError(f"{place}: cannot be written ({error.strerror})") from error
    finally:
        part.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            place.rmdir()  # removes the directory only if it is empty: nothing was installed
    return Carried(place / KERNEL, name, sha256, listed is not None)


def _read(source: Path) -> tuple[str, dict[str, str], bytes]:
    """Returns hash, record and kernel of an exported file; raises ValueError if it contains anything else.
    Unpacks no file to disk.
    """
    with tarfile.open(source, "r:gz") as tar:
        found: dict[str, bytes] = {}
        names: set[str] = set()
        for member in tar:
            name, _, inner = member.name.partition("/")
            if not _HASH.fullmatch(name) or inner not in (KERNEL, RECORD) or not member.isreg():
                raise ValueError(f"{member.name!r} is neither HASH/{KERNEL} nor HASH/{RECORD}")
            if member.size > MOST_BYTES or inner in found:
                raise ValueError(f"{member.name!r} has {member.size} bytes, or is there twice")
            names.add(name)
            file = tar.extractfile(member)
            found[inner] = file.read() if file else b""
    if len(names) != 1 or len(found) != 2:
        raise ValueError("one kernel and its record are not in it")
    told = json.loads(found[RECORD])
    if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
        raise ValueError(f"{RECORD} is not a mapping of texts")
    return names.pop(), told, found[KERNEL]


def _known(name: str, sha256: str) -> bool:
    return _listed(name) == sha256


def _listed(name: str) -> str | None:
    """Returns the SHA-256 that images/kernel/known-builds lists for the same inputs; None if it
    lists none.
    """
    lines = (line.split() for line in (DIRECTORY / "known-builds").read_text().splitlines())
    return next((words[1] for words in lines if words[:1] == [name]), None)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
