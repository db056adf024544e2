"""Connects to libvirt: to the embedded driver in the lab's state directory, or to a given URI."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

from orchestrator.lab import cgroup
from orchestrator.lab.errors import LabError
from orchestrator.lab.vm.domain import EMULATOR
from orchestrator.project import BINDINGS

EMBED = "qemu:///embed"
_CONF = """\
# Written by vNET for the lab whose state directory this is.
# Who asks QEMU what it can do, without a machine. Each machine runs as the account that its domain names.
stdio_handler = "file"
user = "root"
group = "root"
dynamic_ownership = 1
remember_owner = 0
cgroup_controllers = [{controllers}]
"""
LONGEST_ROOT = 52
_EVENTS = threading.Lock()
_running = False


def uri_of(uri: str, state_dir: Path) -> str:
    """Returns the URI for libvirt: for `qemu:///embed` one with a root in the lab's state directory, else the
    given one.
    """
    return f"{EMBED}?root={state_dir}/v" if uri == EMBED else uri


def controllers() -> list[str]:
    """Returns the control group controllers by which libvirt limits a domain's CPU; empty if this machine has
    no cpu controller.
    """
    mounts = cgroup.this_machine().mounts
    return [c for c in ("cpu", "cpuacct") if c in mounts] if "cpu" in mounts else []


def library() -> Any:
    """Returns libvirt's module, with its event loop running in a thread; raises LabError if it is not
    installed.
    """
    try:
        import libvirt  # type: ignore[import-untyped]
    except ImportError as error:
        raise LabError(
            f"virtual machines: libvirt's Python binding is missing ({error}); apt-get install libvirt-dev "
            f"pkg-config gcc python3-dev, then {BINDINGS}"
        ) from error
    _serve_events(libvirt)
    return libvirt


def _serve_events(libvirt: Any) -> None:
    """Starts libvirt's event loop in a thread, once; libvirt needs it before it connects to QEMU's
    monitors.
    """
    global _running
    with _EVENTS:
        if _running:
            return
        libvirt.registerErrorHandler(lambda *_: None, None)  # libvirt raises errors, and would print them too
        libvirt.virEventRegisterDefaultImpl()

        def serve() -> None:
            while True:
                libvirt.virEventRunDefaultImpl()

        threading.Thread(target=serve, name="libvirt events", daemon=True).start()
        _running = True


def cache_directory() -> Path:
    """Returns the directory that caches facts about this machine between labs: `vnet` in XDG_CACHE_HOME, else
    in ~/.cache.
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "vnet"


class Connection:
    """An open connection to libvirt; `embedded` is true if domains start in the caller's own network
    namespace. Raises LabError if libvirt does not answer, runs on another machine, or has no QEMU.
    """

    def __init__(self, uri: str, state_dir: Path) -> None:
        self.uri = uri_of(uri, state_dir)
        self.embedded = uri.startswith(EMBED)
        self.libvirt = library()
        if uri == EMBED:
            _insist_on_room(state_dir / "v")
            _prepare(state_dir / "v")
        try:
            self.handle = self.libvirt.open(self.uri)
        except self.libvirt.libvirtError as error:
            raise LabError(
                f"libvirt {uri}: {said(error)}; name one that answers (`libvirt:` in the file; "
                f"`virsh -c {uri} version` tries it), or leave it out for {EMBED}, which needs no daemon"
            ) from error

        if self.embedded:
            self._learn()
        else:
            self._insist_it_is_here(uri)

    def _learn(self) -> None:
        """Makes libvirt read QEMU's capabilities, from its cache if it is valid; raises LabError if that
        fails.

        Runs on one fixed core, because libvirt compares the cached cpuid with that of the current core, and
        cores may differ.
        """
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            self.handle.getDomainCapabilities(EMULATOR, None, None, None, 0)
        except self.libvirt.libvirtError as error:
            raise LabError(f"libvirt: {said(error)}; apt-get install qemu-system-x86") from error
        finally:
            os.sched_setaffinity(0, allowed)

    def _insist_it_is_here(self, uri: str) -> None:
        """Raises LabError unless libvirt runs on this machine, where the lab's bridges are."""
        host, here = str(self.handle.getHostname()), os.uname().nodename
        if host.partition(".")[0] != here.partition(".")[0]:
            self.handle.close()
            raise LabError(
                f"libvirt {uri}: its daemon runs on {host}, the lab's bridges are on {here}; nodes on other "
                f"hosts are not built yet: run vnet on {host}, with qemu:///system"
            )

    def close(self) -> None:
        self.handle.close()

    def domain(self, name: str) -> Any | None:
        """Returns the domain of that name; None if there is none. Raises LabError for other errors of
        libvirt.
        """
        try:
            return self.handle.lookupByName(name)
        except self.libvirt.libvirtError as error:
            if error.get_error_code() == self.libvirt.VIR_ERR_NO_DOMAIN:
                return None
            raise LabError(f"libvirt: {name}: {said(error)}") from error


def _insist_on_room(root: Path) -> None:
    """Raises LabError if libvirt's root is too long for the sockets below it, such as
    lib/qemu/domain-12-<20 characters>/monitor.sock.
    """
    if len(str(root)) > LONGEST_ROOT:
        raise LabError(
            f"{root.parent}: has {len(str(root.parent))} characters; libvirt makes sockets below it, whose "
            f"paths have at most 107: choose a state directory of at most {LONGEST_ROOT - 2} "
            "(VNET_STATE_DIR), or a shorter name for the lab (--lab)"
        )


def _prepare(root: Path) -> None:
    """Writes libvirt's settings and links its cache of QEMU's capabilities to one that labs share, which
    saves over a second in each lab; without a writable cache no link is made.

    libvirt checks that the cache is for this QEMU, this kernel and this processor. It reads the capabilities
    as root, like this process: for another account it forks at each check and, if /dev/kvm is closed to that
    account, rejects the cache (each call then took seconds).
    """
    (root / "etc").mkdir(parents=True, exist_ok=True)
    known, link = cache_directory() / "libvirt", root / "cache"
    with contextlib.suppress(OSError):  # without the cache, each lab reads the capabilities again
        known.mkdir(parents=True, exist_ok=True)
    if os.access(known, os.W_OK) and not link.is_symlink():
        link.symlink_to(known)
    names = ", ".join(f'"{c}"' for c in controllers())
    (root / "etc" / "qemu.conf").write_text(_CONF.format(controllers=names))


def said(error: Exception) -> str:
    """Returns libvirt's error text in one line."""
    return " ".join(str(error).split())
