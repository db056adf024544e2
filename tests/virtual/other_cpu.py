"""Runs a golden experiment on processors that this machine does not have, and tests that it gives the same
bytes there.

    python tests/virtual/other_cpu.py [--lab NAME] [CPU...]    # qemu-system-x86_64 -cpu help lists them

It is run here, then on machines that QEMU emulates: they boot Debian's kernel and see this machine's files,
read only, under a tmpfs. Needs the set vm of images/packages.sh, the lab's own kernel and minutes a
processor. Exit status 1 where bytes differ, memory apart; the first packet, message or row is shown.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "goldens"))
import golden_labs as golden

from orchestrator.images import cpio, kernel, packages
from orchestrator.kernel.lab_command import machine
from orchestrator.kernel.uml.binaries import cache_dir
from orchestrator.kernel.virtual.kernel import VirtualKernel
from orchestrator.verify.verify import compare, recorded

CPUS = (
    "SandyBridge,-avx",
    "SandyBridge",
    "EPYC",
    "max",
)  # processors: Intel's without and with AVX, AMD's, and one with all features
FLAGS = ("sse4_2", "avx", "avx2", "rdrand", "fsgsbase")
# Processor features that are tested: QEMU only warns if it cannot emulate one (before version 7.2: AVX).
MUST = {"SandyBridge": ("avx",), "EPYC": ("avx", "avx2")}
DEBIAN = "linux-image-amd64"  # Debian's cloud kernel has no 9p
SHELL = "busybox-static"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
INIT = Path(__file__).with_name("other_cpu_init.sh")
APPEND = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check tsc=reliable"
LIMIT_S = 1800


@dataclass(frozen=True)
class Boot:
    """The files that an emulated machine boots."""

    kernel: Path
    initrd: Path


def boot_files(scratch: Path) -> Boot:
    """Returns Debian's kernel and an initial root of busybox, MODULES and INIT."""
    tree = scratch / "tree"
    found = packages.resolve([DEBIAN, SHELL], lambda name: name.startswith("linux-image-"))
    packages.unpack(packages.fetch(found).values(), tree)
    release = kernel.release_of(tree)
    kernel.vmlinux(tree / "boot" / f"vmlinuz-{release}", scratch / "vmlinux")
    modules = kernel.modules(tree, release, MODULES, ()).early
    entries = [cpio.file(f"modules/{path.name}", path.read_bytes()) for path in modules]
    entries += [cpio.file("modules/list", "".join(f"{path.name}\n" for path in modules).encode())]
    entries += [cpio.file("init", INIT.read_bytes(), 0o755)]
    entries += [cpio.file("bin/busybox", (tree / "bin/busybox").read_bytes(), 0o755)]
    (scratch / "initrd").write_bytes(cpio.archive(entries))
    return Boot(scratch / "vmlinux", scratch / "initrd")


def emulate(boot: Boot, cpu: str, share: Path) -> None:
    """Runs share/command on the emulated processor with this machine's files; the console goes to
    share/console.
    """
    argv = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,tb-size=512", "-cpu", cpu]
    argv += ["-m", "2048", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    for tag, path, rights in (("machine", "/", ",readonly=on"), ("share", share, "")):
        argv += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{rights}"]
        argv += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    argv += ["-kernel", str(boot.kernel), "-initrd", str(boot.initrd), "-append", APPEND]
    argv += ["-serial", f"file:{share / 'console'}"]
    subprocess.run(argv, check=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)


def words(lab: golden.Lab, out: str) -> list[str]:
    """Returns the command of the golden's run without reduction: the tables' libraries need a newer
    processor, so they run outside.
    """
    return [sys.executable, *golden.arguments(lab), "--raw", "--results", out]


def here(lab: golden.Lab, binary: Path, scratch: Path) -> Path:
    """Returns the run directory of the lab on this machine's own processor."""
    env = {**os.environ, "VNET_STATE_DIR": str(scratch / "state"), "VNET_UML_KERNEL": str(binary)}
    argv = words(lab, str(scratch / "here"))
    subprocess.run(argv, cwd=golden.PROJECT, env=env, check=True, capture_output=True)
    return next(scratch.glob("here/*/*/manifest.json")).parent


def command(lab: golden.Lab, binary: Path) -> str:
    """Returns the shell command for the emulated machine: the same run, with this machine's cache of compiled
    files.
    """
    return (
        f"export XDG_CACHE_HOME={shlex.quote(str(cache_dir().parent.parent))}\n"
        "export HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=1\n"
        f"export VNET_STATE_DIR=/run/vnet VNET_UML_KERNEL={shlex.quote(str(binary))}\n"
        f"cd {shlex.quote(str(golden.PROJECT))}\n"
        f"{shlex.join(words(lab, '/share/out'))} >/share/said 2>&1 && touch /share/done\n"
    )


def there(boot: Boot, cpu: str, text: str, known: Path) -> tuple[str, str | None]:
    """Returns the processor, the time that it took, and the differences between its run and the `known`
    one.
    """
    with tempfile.TemporaryDirectory(prefix="vnet-cpu-") as directory:
        share = Path(directory)
        (share / "command").write_text(text)
        begin = time.monotonic()
        emulate(boot, cpu, share)
        cpuinfo = (share / "cpuinfo").read_text()
        absent = [flag for flag in MUST.get(cpu, ()) if f" {flag}" not in cpuinfo]
        flags = ", ".join(flag for flag in FLAGS if f" {flag}" in cpuinfo)
        what = f"{cpu}: {machine(cpuinfo)['cpu']} ({flags}), {time.monotonic() - begin:.0f} s"
        if absent:
            return what, f"cannot tell: this QEMU does not emulate {', '.join(absent)}"
        if not (share / "done").exists():
            return what, f"no run: {(share / 'said').read_text()}"
        manifest = recorded(known)
        again = next(share.glob("out/*/*/manifest.json")).parent
        verdict = compare(known, manifest, again, {})
        memory = "raw/nodes.csv" in verdict.differing and same_but_memory(known, again)
        differing = [name for name in verdict.differing if not (memory and name == "raw/nodes.csv")]
        what += f", {verdict.files} files" + ", memory apart" * memory
        return what, f"{', '.join(differing)}; {verdict.first}" if differing else None


def same_but_memory(*run_dirs: Path) -> bool:
    """Kernels keep a processor's registers with each thread, so that a node's memory may differ by pages."""
    one, other = (golden.without_memory((run_dir / "raw" / "nodes.csv").read_text()) for run_dir in run_dirs)
    return one == other


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lab", default=golden.LABS[0].name, choices=[lab.name for lab in golden.LABS])
    parser.add_argument("cpus", nargs="*", default=CPUS, metavar="CPU")
    options = parser.parse_args(arguments)
    lab = next(lab for lab in golden.LABS if lab.name == options.lab)
    binary = VirtualKernel().binary
    if binary is None:
        raise SystemExit("other_cpu.py: the lab's own kernel is not built; make kernel")
    differ = 0
    with tempfile.TemporaryDirectory(prefix="vnet-cpu-") as directory:
        scratch = Path(directory)
        boot, known = boot_files(scratch), here(lab, binary.path, scratch)
        for cpu in options.cpus:
            what, difference = there(boot, cpu, command(lab, binary.path), known)
            print(f"{what}: {difference or 'identical'}", flush=True)
            differ += difference is not None
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
