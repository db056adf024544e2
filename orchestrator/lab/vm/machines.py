"""Creates the domains of a lab's machines from node and image; starts, saves, restores and ends them, and
disconnects wires.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contract.plan import Interface, Plan
from orchestrator.lab.errors import LabError
from orchestrator.lab.operations import Quit
from orchestrator.lab.vm import files, handover, limits
from orchestrator.lab.vm.account import Account
from orchestrator.lab.vm.connection import Connection, said
from orchestrator.lab.vm.domain import QBOOT, Card, Disk, Domain, render
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.limits import VmLimits
from orchestrator.lab.vm.wires import set_carrier
from orchestrator.nics import explain

GONE_S = 10.0
POLL_S = 0.01
# a link to the console file of the run, so that the domain is the same in every run of a lab
CONSOLE = "console.log"


class Machines:
    """Makes the calls of libvirt for a lab's machines. The calls are slow; workers' threads run
    most of them.
    """

    def __init__(
        self, plan: Plan, state_dir: Path, connection: Connection, bounds: VmLimits, kvm: bool,
        account: Account,
    ) -> None:  # fmt: skip
        self._account = account
        self._plan, self._state_dir, self._connection = plan, state_dir, connection
        self._limits, self._kvm = bounds, kvm
        self._libvirt = connection.libvirt
        self._lending = threading.Lock()
        self._partition = connection.embedded and limits.make_partition(plan.lab)

    def xml(self, guest: Guest, disks: tuple[Disk, ...] = ()) -> str:
        """Returns the XML of a guest's domain with its present limits and carriers."""
        node, image, vm = guest.node, guest.image, guest.node.vm
        assert vm is not None
        quota, shares = self._limits.asked.get(guest.name, (None, None))
        fast = image.kind == "initramfs" and QBOOT.exists()
        return render(Domain(
            name=node.netns, lab=self._plan.lab, node=guest.name, state=str(self._state_dir),
            directory=str(guest.directory), console_log=str(guest.directory / CONSOLE), kvm=self._kvm,
            memory_bytes=vm.memory_bytes, vcpus=vm.vcpus,
            append=f"{image.append} vnet.lab={self._plan.lab} vnet.node={guest.name}",
            kernel=str(image.kernel) if image.kernel else None,
            initrd=str(image.initrd) if image.initrd else None,
            cards=tuple(Card(i.mac, self._tap(i), i.port not in guest.down) for i in taps(node.interfaces)),
            disks=disks, hostdevs=tuple(i.pci for i in node.interfaces if i.pci),
            quota=quota, shares=shares,
            partition=limits.partition(self._plan.lab) if self._partition else None,
            firmware=str(QBOOT) if fast else None, owner=self._account.label,
        ))  # fmt: skip

    def _tap(self, card: Interface) -> str:
        return card.port if self._connection.embedded else handover.lent_name(self._plan.lab, card.port)

    def prepare(self, guest: Guest) -> str:
        """Makes the guest's directories, console link and disks, which QEMU's account may use; returns the
        domain's XML, which is also written to domain.xml.
        """
        for directory in (guest.directory, guest.storage):
            directory.mkdir(parents=True, exist_ok=True)
            self._account.enters(directory.parent)
            self._account.enters(directory)
        link = guest.directory / CONSOLE
        link.unlink(missing_ok=True)
        link.symlink_to(guest.console_log)
        disks = files.disks(self._plan.lab, guest)
        for disk in disks:
            self._account.owns(Path(disk.path))
        text = self.xml(guest, disks)
        (guest.directory / "domain.xml").write_text(text)
        return text

    def create(self, guest: Guest) -> Any:
        """Makes the machine's files, starts it and returns its domain. Raises LabError with libvirt's text,
        and a remedy for known errors.
        """
        text, libvirt = self.prepare(guest), self._libvirt
        held = libvirt.VIR_DOMAIN_START_PAUSED
        return self._begin(guest, held, lambda flags: self._connection.handle.createXML(text, flags))

    def save(self, guest: Guest, memory: Path) -> None:
        """Saves the machine's memory and devices to a file, which ends the machine; raises LabError if that
        fails.
        """
        try:
            guest.domain.save(str(memory))
        except self._libvirt.libvirtError as error:
            raise LabError(f"nodes.{guest.name}: libvirt cannot save it: {said(error)}") from error
        guest.domain = None

    def restore(self, guest: Guest, memory: Path) -> Any:
        """Restores a machine from a saved file and returns its domain; raises LabError as `create` does.

        The disk must be in the state that it had when the file was saved.
        """

        def begin(flags: int) -> Any:
            self._connection.handle.restoreFlags(str(memory), None, flags)
            return self._connection.domain(guest.node.netns)

        return self._begin(guest, self._libvirt.VIR_DOMAIN_SAVE_PAUSED, begin)

    def _begin(self, guest: Guest, held: int, begin: Callable[[int], Any]) -> Any:
        """Starts the domain and closes its sockets to other users. With taps lent to a daemon, the domain
        stays paused (flag `held`) until they are back.
        """
        try:
            domain = begin(0) if self._connection.embedded else self._lent(guest, held, begin)
            for sock in guest.directory.glob("*.sock"):
                sock.chmod(0o600)  # libvirt leaves the socket open to every user who can enter the directory
            return domain
        except self._libvirt.libvirtError as error:
            meaning = explain.explain(said(error))
            more = f"; that is: {meaning}" if meaning else ""
            raise LabError(f"nodes.{guest.name}: libvirt refuses: {said(error)}{more}") from error

    def _lent(self, guest: Guest, held: int, begin: Callable[[int], Any]) -> Any:
        wires = taps(guest.node.interfaces)
        with self._lending:  # one machine at a time: between two `ip` calls a tap is in neither namespace
            handover.lend(self._plan, wires)
            try:
                domain = begin(held)
            finally:
                handover.take_back(self._plan, guest.name, wires)
        domain.resume()
        return domain

    def destroy(self, guest: Guest) -> None:
        """Ends the machine at once and waits up to 10 s for its end; does nothing if it has no domain."""
        if guest.domain is None:
            return
        with contextlib.suppress(self._libvirt.libvirtError):
            guest.domain.destroy()
        self.await_end(guest, GONE_S)
        guest.domain = None

    def ask_to_end(self, guest: Guest) -> None:
        """Requests the machine to power off, without waiting: by the power button for a disk image, by the
        agent's `quit` for a built-in image.
        """
        if guest.image.kind == "disk":
            with contextlib.suppress(self._libvirt.libvirtError):
                guest.domain.shutdown()
        elif guest.channel is not None:
            guest.channel.submit(Quit(), lambda _: None)

    def await_end(self, guest: Guest, seconds: float) -> bool:
        """Waits until the domain has ended, at most `seconds`; returns whether it has."""
        deadline = time.monotonic() + seconds
        while guest.domain is not None and self._alive(guest):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _alive(self, guest: Guest) -> bool:
        try:
            return bool(guest.domain.isActive())
        except self._libvirt.libvirtError:
            return False

    def carrier(self, guest: Guest, port: str, up: bool) -> None:
        """Connects or disconnects one of the machine's wires, which changes the guest's carrier; for a
        machine that is not ready, the state is stored for its next start.
        """
        (guest.down.discard if up else guest.down.add)(port)
        if guest.domain is None or not guest.ready:
            return  # the carrier is stored for the next start
        for card in taps(guest.node.interfaces):
            if card.port == port:
                set_carrier(self._libvirt, guest, card, up)

    def pid(self, guest: Guest) -> int | None:
        """Returns the process id of the machine's QEMU from its pid file, else from the process list by the
        domain's UUID; None if there is none.
        """
        run = self._state_dir / "v" / "run" if self._connection.embedded else Path("/run/libvirt")
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((run / "qemu" / f"{guest.node.netns}.pid").read_text())
        uuid = str(guest.domain.UUIDString()).encode()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and uuid in (entry / "cmdline").read_bytes().split(b"\0"):
                    return int(entry.name)
        return None

    def weigh(self, machines: int) -> None:
        """Sets the common weight of the lab's machines for their number; does nothing without a partition."""
        if self._partition:
            limits.weigh_partition(self._plan.lab, machines)

    def close(self) -> None:
        if self._partition:
            limits.remove_partition(self._plan.lab)


def taps(cards: Sequence[Interface]) -> list[Interface]:
    """Returns the interfaces that are taps, without NICs of the host."""
    return [card for card in cards if card.nic is None]
