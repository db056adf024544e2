"""Builds the initramfs of the built-in images.

It holds the files that the agent needs to start, and a squashfs image of /usr with all others. The agent
itself follows as an archive of its own (`agent_part`).
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from orchestrator.images import cpio
from orchestrator.images.errors import ImageError
from orchestrator.images.kernel import Modules
from orchestrator.images.recipe import Contents
from orchestrator.images.run import run

LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
LOADER = "lib64/ld-linux-x86-64.so.2"
AGENT = "vnet/agent"
FIRST_ACCOUNT = 100
# qemu-guest-agent calls this command; busybox has only poweroff and reboot.
SHUTDOWN = """#!/bin/sh
[ "$1" = -r ] && exec reboot
exec poweroff
"""
_LIBRARY = re.compile(r"^\s*(\S+) => (\S+)", re.MULTILINE)
_OWN = ("ip", "tc", "sh", "init", "linuxrc", "busybox")


def libraries(tree: Path, program: Path, more: Sequence[str] = ()) -> dict[str, Path]:
    """Returns the shared libraries that a program loads: the path of each in `tree`, by name.

    tree: the directory with the unpacked packages. more: directories in `tree` that are searched after the
    system's. Errors: ImageError if the loader would take a library from this machine instead.
    """
    search = ":".join(str(tree / directory) for directory in (*LIBRARIES, *more))
    loader = _loader(tree)
    answer = run([loader, "--library-path", search, "--list", program], why=f"{program.name}: libraries")
    found = {name: Path(path) for name, path in _LIBRARY.findall(answer) if not name.startswith("/")}
    for name, path in found.items():
        if not path.is_relative_to(tree):
            raise ImageError(
                f"{program.name}: library {name} is in none of the packages ({path} is this machine's own)"
            )
    return found


def _loader(tree: Path) -> Path:
    places = [tree / LOADER, tree / "usr" / LOADER]
    return next((p for p in places if p.exists()), places[0])


def usr(tree: Path, contents: Contents, agent: Path, modules: Modules | None, target: Path) -> None:
    """Writes the squashfs image of /usr to `target`.

    It holds the programs and their libraries, busybox's commands, netem's tables and the kernel modules
    (None: the kernel has no modules). The agent's libraries are not in it; `base` puts them into the
    initramfs.
    """
    root = target.with_suffix(".tree")
    lying_open = libraries(tree, agent)
    for place, source in contents.programs.items():
        program = _find(tree, source)
        _copy(program, root / place)
        if source != contents.programs["bin/busybox"]:
            for name, path in libraries(tree, program, contents.libraries).items():
                if name not in lying_open:
                    _copy(path, root / LIBRARIES[0] / name)
    for table in _find(tree, "usr/lib/x86_64-linux-gnu/tc/normal.dist").parent.glob("*.dist"):
        _copy(table, root / "lib/x86_64-linux-gnu/tc" / table.name)
    (root / "lib/tc").symlink_to("x86_64-linux-gnu/tc")
    _busybox(root)
    (root / "sbin/vnet-agent").symlink_to("/" + AGENT)
    (root / "sbin/shutdown").write_text(SHUTDOWN)
    (root / "sbin/shutdown").chmod(0o755)
    if modules:
        _modules(root, modules)
    pack(root, target)
    shutil.rmtree(root)


def _modules(root: Path, modules: Modules) -> None:
    """Copies the modules and their index to the paths below lib/modules at which modprobe expects them."""
    for path in (*modules.all, *modules.index):
        _copy(path, root / "lib/modules" / str(path).split("/lib/modules/", 1)[1])


def _find(tree: Path, path: str) -> Path:
    places = [tree / path, tree / "usr" / path, tree / path.removeprefix("usr/")]
    for place in places:
        if place.exists():
            return place
    raise ImageError(f"{path}: in none of the packages; images/guest/recipes.toml names another place")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


def _busybox(root: Path) -> None:
    """Links each of busybox's commands to busybox, except those in `_OWN` and names that already exist."""
    for path in run([root / "bin/busybox", "--list-full"], why="busybox").split():
        name = Path(path).name
        place = root / ("sbin" if "sbin" in path else "bin") / name
        if name not in _OWN and not place.exists():
            place.symlink_to("/usr/bin/busybox")


def pack(root: Path, target: Path) -> None:
    """Writes a directory tree as a squashfs image to `target`; the same tree always gives the same bytes."""
    form = "-comp zstd -Xcompression-level 19 -b 64K -no-xattrs -all-root -no-exports"
    fixed = "-mkfs-time 0 -all-time 0 -processors 1 -noappend -no-progress -quiet"
    argv: list[str | Path] = ["mksquashfs", root, target, *form.split(), *fixed.split()]
    run(argv, why=f"{target.name} cannot be packed")


def base(tree: Path, contents: Contents, agent: Path, modules: Modules | None, packed: Path) -> bytes:
    """Returns the initramfs without the agent and without the files of a particular node.

    packed: the squashfs image of /usr, which it contains. Further archives may be appended.
    """
    small = _open_files(tree, contents, agent, modules)
    # The result is a compressed archive of the small files, followed by an uncompressed one with the
    # squashfs, which is compressed already.
    first = gzip.compress(cpio.archive(small), 9, mtime=0)
    return _padded(first) + cpio.archive([cpio.file("vnet/usr.squashfs", packed.read_bytes())])


def _passwd(accounts: Sequence[str]) -> str:
    """Returns /etc/passwd with root, nobody and the accounts that programs change to."""
    own = "".join(f"{name}:x:{n}:{n}::/:/bin/false\n" for n, name in enumerate(accounts, FIRST_ACCOUNT))
    return f"root:x:0:0:root:/root:/bin/sh\n{own}nobody:x:65534:65534::/:/bin/false\n"


def _group(contents: Contents) -> str:
    own = "".join(
        f"{name}:x:{n}:{','.join(contents.members.get(name, ()))}\n"
        for n, name in enumerate(contents.accounts, FIRST_ACCOUNT)
    )
    return f"root:x:0:\n{own}nogroup:x:65534:\n"


def _open_files(tree: Path, contents: Contents, agent: Path, modules: Modules | None) -> list[cpio.Entry]:
    entries = [
        cpio.directory(d) for d in ("dev", "proc", "sys", "run", "tmp", "root", "usr", "etc/vnet", "var/log")
    ]
    entries += [cpio.link(f, f"usr/{f}") for f in ("bin", "sbin")]
    entries += [
        cpio.link("var/run", "/run"),
        cpio.link("var/tmp", "/tmp"),
        cpio.link("lib/modules", "/usr/lib/modules"),
    ]
    entries += [
        cpio.link("init", AGENT),
        cpio.file("etc/passwd", _passwd(contents.accounts).encode()),
        cpio.file("etc/group", _group(contents).encode()),
    ]
    entries.append(cpio.file(LOADER, _loader(tree).read_bytes(), 0o755))
    for name, path in libraries(tree, agent).items():
        entries.append(cpio.file(f"lib/x86_64-linux-gnu/{name}", path.read_bytes(), 0o755))
    if modules:
        early = [f"/vnet/modules/{path.name}" for path in modules.early]
        entries += [
            cpio.file(place, path.read_bytes()) for place, path in zip(early, modules.early, strict=True)
        ]
        entries.append(cpio.file("etc/vnet/modules", "".join(f"{place}\n" for place in early).encode()))
    return entries


def agent_part(agent: Path) -> bytes:
    """Returns the compressed archive with the agent's program, to be appended to the initramfs."""
    return _padded(gzip.compress(cpio.archive([cpio.file(AGENT, agent.read_bytes(), 0o755)]), 6, mtime=0))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
