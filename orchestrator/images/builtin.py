"""Builds the built-in images: a kernel (Debian's or vNET's tiny one) and an initramfs of Debian packages."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from contract.seal import digest as sha256
from orchestrator.images import cache, initramfs, packages
from orchestrator.images.cache import write_description
from orchestrator.images.kernel import TINY_INPUTS, Modules, build_tiny, modules, release_of, vmlinux
from orchestrator.images.model import Image, read_image
from orchestrator.images.recipe import Recipe, contents, digest
from orchestrator.images.run import require

HERE = Path(__file__).resolve().parent
SOURCES = [HERE / name for name in ("builtin.py", "cpio.py", "initramfs.py", "kernel.py", "packages.py")]
TOOLS = {"mksquashfs": "squashfs-tools", "lz4": "lz4", "depmod": "kmod", "modprobe": "kmod"}
Say = Callable[[str], None]


def input_hash(recipe: Recipe) -> str:
    """Returns the hash of the recipe, its contents and the code that builds the image.

    The agent is not part of the hash, since find.py appends it to a copy of the initramfs.
    """
    files = [*SOURCES, *(TINY_INPUTS if recipe.kernel == "tiny" else ())]
    return digest(files, repr(recipe), repr(contents(recipe.more)))


def build(recipe: Recipe, agent: Path, say: Say) -> Image:
    """Builds the image of a recipe in the cache and returns it. Errors: ImageError.

    agent: the agent's program; the image receives the shared libraries that it loads. say: receives one line
    of progress for each step.
    """
    require(TOOLS)
    parts = contents(recipe.more)
    say("packages: resolving")
    wanted = [*parts.packages, *([] if recipe.kernel == "tiny" else [recipe.kernel])]
    found = packages.resolve(
        wanted, lambda name: name.startswith(("lib", "zlib", "linux-image-")) and "perl" not in name
    )
    say(f"packages: {len(found)} of Debian, fetching those that are new")
    debs = packages.fetch(found)
    name = input_hash(recipe)
    with cache.publish(recipe.name, name) as directory, tempfile.TemporaryDirectory(dir=directory) as scratch:
        tree = Path(scratch) / "tree"
        packages.unpack(debs.values(), tree)
        say("kernel and modules")
        chosen = _kernel(recipe, tree, directory, say)
        say("initramfs")
        packed = Path(scratch) / "usr.squashfs"
        initramfs.usr(tree, parts, agent, chosen, packed)
        (directory / "initrd").write_bytes(initramfs.base(tree, parts, agent, chosen, packed))
        made = {package.name: f"{package.version} {sha256(deb)}" for package, deb in debs.items()}
        write_description(_image(recipe, directory, {"inputs": name, **made}))
    return read_image(cache.cache_dir() / f"{recipe.name}-{name}")


def _kernel(recipe: Recipe, tree: Path, directory: Path, say: Say) -> Modules | None:
    if recipe.kernel == "tiny":
        build_tiny(directory / "kernel", say)
        return None
    release = release_of(tree)
    vmlinux(tree / "boot" / f"vmlinuz-{release}", directory / "kernel")
    return modules(tree, release, recipe.early, recipe.late)


def _image(recipe: Recipe, directory: Path, made: dict[str, str]) -> Image:
    return Image(
        name=recipe.name,
        kind="initramfs",
        directory=directory,
        kernel=directory / "kernel",
        initrd=directory / "initrd",
        append=recipe.append,
        disk=None,
        memory_bytes=recipe.memory_mib * 2**20,
        agent=f"/{initramfs.AGENT}",
        guest_agent=True,
        made=made,
    )
