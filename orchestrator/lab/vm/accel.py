"""Tests whether KVM runs guests on this machine, once per host and boot, and caches the result.

An open /dev/kvm may still hang with every ordinary kernel. So the test runs one instruction, and then boots a
whole guest until its agent answers.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.images import Image, ImageError, locate
from orchestrator.lab.state import replace
from orchestrator.lab.vm import kvm_probe
from orchestrator.lab.vm.account import Account
from orchestrator.lab.vm.connection import cache_directory
from orchestrator.lab.vm.domain import EMULATOR

PR_SET_THP_DISABLE = 41  # linux/prctl.h

KVM = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
INSTRUCTION_S = 5.0
BOOT_S = 30.0
POLL_S = 0.05
HARDWARE = ("-accel", "kvm", "-cpu", "host")


@dataclass(frozen=True, slots=True)
class Acceleration:
    """The result of the test: whether KVM runs guests, and the reason as text for the user."""

    kvm: bool
    why: str


def verdict(
    image: Image, account: Account | None = None, shown: Callable[[Image], Image] = lambda image: image
) -> Acceleration:
    """Returns the acceleration of this machine, from the cache if it was tested since the last boot.

    `account` is the account that QEMU runs as: if /dev/kvm is closed to it, the result is negative and not
    cached. `shown` makes an image readable for it. The built-in image is booted in place of a disk image,
    which boots too slowly; without either, only one instruction is run and the result is not cached.
    """
    if account is not None and KVM.exists() and not account.reads(KVM):
        remedy = f"chgrp kvm {KVM}; chmod 660 {KVM}; adduser {account.name} kvm"
        return Acceleration(False, f"{KVM} is closed to {account.name}, which QEMU runs as ({remedy})")
    if (known := remembered()) is not None:
        return known
    path, boot = _cache(), BOOT_ID.read_text().strip()
    found = _probe(image if image.kernel is not None else shown(_other(image)), account)
    if image.kernel is None and _other(image).kernel is None:
        return found
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps({"boot_id": boot, "host": os.uname().nodename, **asdict(found)}) + "\n")
    return found


def remembered() -> Acceleration | None:
    """Returns the cached result of this boot of this host; None if there is none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(_cache().read_text())
        if known["boot_id"] == BOOT_ID.read_text().strip() and known["host"] == os.uname().nodename:
            return Acceleration(known["kvm"], known["why"])
    return None


def _other(image: Image) -> Image:
    """Returns the built-in image; if it is not built, the given one."""
    try:
        return locate("builtin")
    except ImageError:
        return image


def _cache() -> Path:
    return cache_directory() / "kvm.json"


def _probe(image: Image, account: Account | None) -> Acceleration:
    """Tests access to /dev/kvm, one instruction, and the boot of the image if it has a kernel; returns the
    first failure or success.
    """
    if not os.access(KVM, os.R_OK | os.W_OK):
        return Acceleration(False, f"{KVM} is not there or not ours to open")
    if (said := kvm_probe.ask(INSTRUCTION_S)) != "ok":
        return Acceleration(False, f"{KVM} is there, but one instruction in a guest failed: {said}")
    if image.kernel is None:
        return Acceleration(True, "one instruction ran in a guest; the image boots itself and was not tried")
    if not boots(image, account):
        return Acceleration(False, f"{KVM} is there, but a whole guest did not come up with it")
    return Acceleration(True, "a guest came up with it")


def boots(image: Image, account: Account | None = None, accelerator: Sequence[str] = HARDWARE) -> bool:
    """Boots a guest without libvirt, as the account or as the caller, and ends it; returns whether its agent
    answers within 30 s. The guest has a serial line that nothing reads: without a console the tiny image's
    first program ends at once.
    """
    with tempfile.TemporaryDirectory(prefix="vnet-kvm-") as directory:
        path = f"{directory}/agent.sock"
        command = [
            EMULATOR, *accelerator, "-machine", "q35", "-m", "128", "-nodefaults", "-serial", "null",
            "-display", "none", "-no-reboot", "-kernel", str(image.kernel), "-append", image.append,
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=a,path={path},server=on,wait=off",
            "-device", "virtserialport,chardev=a,name=vnet.agent",
            *(["-initrd", str(image.initrd)] if image.initrd else []),
        ]  # fmt: skip
        quiet = subprocess.DEVNULL
        who: dict[str, Any] = {}
        if account is not None:
            os.chown(directory, account.user, account.group)
            who = {"user": account.user, "group": account.group, "extra_groups": account.groups}
        guest = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, **who)
        try:
            return _answers(path, guest)
        finally:
            guest.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                guest.wait(5)  # a process that hangs in the kernel cannot be killed


def _answers(path: str, guest: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and guest.poll() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.settimeout(max(0.1, deadline - time.monotonic()))
            connection.sendall(b'{"id": 1, "op": "hello"}\n')
            return b'"ok":true' in connection.recv(4096).replace(b" ", b"")
        time.sleep(POLL_S)  # waits for QEMU's socket; the deadline is checked above
    return False


def no_huge_pages() -> None:
    """Disables transparent huge pages for this process and those it starts later (prctl(2)), so that the host
    gets back the memory that a guest frees; raises OSError if refused.

    khugepaged makes a huge page of one used small page and 511 that a guest freed, so machines would grow up
    to all of their memory. Emulation does not gain from huge pages; KVM does, so callers omit this with KVM.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl(PR_SET_THP_DISABLE)")
