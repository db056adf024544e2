"""Takes the parts of Debian's kernel package that a guest needs, or builds vNET's own small kernel.

The parts are the uncompressed kernel (vmlinux), which boots faster than the compressed one, and the modules
that the recipe names.
"""

from __future__ import annotations

import lzma
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.images.errors import ImageError
from orchestrator.images.recipe import GUEST
from orchestrator.images.run import run
from orchestrator.project import PROJECT

# vNET's own small kernel, for many VMs on one machine: its script, which caches it, and the inputs.
TINY_SCRIPT = GUEST / "kernel.sh"
TINY_INPUTS = [TINY_SCRIPT, GUEST / "tiny.config", PROJECT / "images" / "kernel" / "source.lock"]

# Offsets in a bzImage (Documentation/arch/x86/boot.rst): the number of sectors of the real-mode part; the
# place and length of the compressed kernel.
_SETUP_SECTORS, _PAYLOAD = 0x1F1, 0x248
_LZ4, _XZ, _GZIP, _ZSTD = b"\x02\x21\x4c\x18", b"\xfd7zXZ\x00", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Modules:
    """The modules of one kernel, as paths of files in the unpacked packages.

    early: the modules that the agent loads at boot, in load order. all: these and the recipe's `late`
    ones, with their dependencies.
    """

    release: str
    early: tuple[Path, ...]
    all: tuple[Path, ...]
    index: tuple[Path, ...]  # files that modprobe reads, such as modules.dep


def vmlinux(vmlinuz: Path, target: Path) -> None:
    """Writes the uncompressed kernel (an ELF file) of a bzImage to `target`.

    Errors: ImageError if the compression is unknown or the result is not an ELF file.
    """
    image = vmlinuz.read_bytes()
    start, length = struct.unpack_from("<II", image, _PAYLOAD)
    start += ((image[_SETUP_SECTORS] or 4) + 1) * 512
    packed = image[start : start + length]
    if packed.startswith(_XZ):
        target.write_bytes(lzma.LZMADecompressor().decompress(packed))
    elif packed.startswith(_GZIP):
        target.write_bytes(zlib.decompressobj(wbits=31).decompress(packed))
    elif packed.startswith((_LZ4, _ZSTD)):
        # The last four bytes are the unpacked length.
        part = target.with_suffix(".packed")
        part.write_bytes(packed[:-4])
        tool = "lz4" if packed.startswith(_LZ4) else "zstd"
        run([tool, "-d", "-q", "-f", part, target], why=f"{vmlinuz.name}: cannot be unpacked")
        part.unlink()
    else:
        raise ImageError(f"{vmlinuz.name}: packed in an unknown way ({packed[:4].hex()}); report this kernel")
    if target.read_bytes()[:4] != b"\x7fELF":
        raise ImageError(f"{vmlinuz.name}: what it unpacks to is no ELF file; report this kernel")


def release_of(tree: Path) -> str:
    """Returns the release of the kernel in the unpacked packages. Raises ImageError unless there is exactly
    one.
    """
    found = [path.name.removeprefix("vmlinuz-") for path in (tree / "boot").glob("vmlinuz-*")]
    if len(found) != 1:
        raise ImageError(f"kernel packages: {len(found)} kernels where one is expected: {' '.join(found)}")
    return found[0]


def modules(tree: Path, release: str, early: tuple[str, ...], late: tuple[str, ...]) -> Modules:
    """Returns the modules `early` and `late` with all modules that they depend on, and writes their index.

    tree: the directory with the unpacked packages. Errors: ImageError if the kernel has no such module.
    """
    merged = tree / "lib" / "modules"
    if not merged.is_dir():
        (tree / "lib").mkdir(exist_ok=True)
        merged.symlink_to(tree / "usr" / "lib" / "modules")
    run(["depmod", "-b", tree, release], why="modules cannot be indexed")
    first = _with_needs(tree, release, early)
    every = dict.fromkeys([*first, *_with_needs(tree, release, late)])
    directory = merged / release
    index = [directory / f"modules.{kind}" for kind in ("dep", "alias", "softdep", "order", "builtin")]
    return Modules(release, tuple(first), tuple(every), tuple(p for p in index if p.exists()))


def _with_needs(tree: Path, release: str, names: tuple[str, ...]) -> list[Path]:
    found: dict[Path, None] = {}
    for name in names:
        argv: list[str | Path] = ["modprobe", "-d", tree, "-S", release, "--show-depends", name]
        for line in run(argv, why=f"module {name}: not in kernel {release}").splitlines():
            if match := re.match(r"insmod (\S+)", line):
                found[Path(match[1])] = None
    return list(found)


def build_tiny(target: Path, say: Callable[[str], None]) -> None:
    """Writes vNET's small kernel to `target`; builds it if its inputs changed (minutes).

    Raises ImageError with the build's last lines.
    """
    say("tiny kernel: about 4 minutes of two cores where it is new")
    done = subprocess.run([TINY_SCRIPT], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImageError("\n".join((done.stderr or done.stdout).strip().splitlines()[-10:]))
    shutil.copyfile(Path(done.stdout.strip().splitlines()[-1]), target)
