"""Gives a PCI function back to its former driver, even after a guest that ended without libvirt, and loads
vfio-pci.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.nics import sysfs
from orchestrator.nics.model import NicError, PciNic
from orchestrator.nics.netdevs import run

OURS_S = 3.0  # s that libvirt may take to return a managed device
DEADLINE_S = 15.0
POLL_S = 0.05


def load_vfio(root: Path = Path("/")) -> None:
    """Loads vfio-pci before a guest starts, unless it is loaded, because libvirt does not load it and then
    reports that passthrough is unsupported. Raises NicError if that fails.
    """
    if not (root / "sys/bus/pci/drivers" / sysfs.VFIO).is_dir():
        run(["modprobe", sysfs.VFIO])


def give_back(
    address: str, driver: str | None, patience_s: float = OURS_S, root: Path = Path("/")
) -> str | None:
    """Waits `patience_s` until libvirt gives the function back to `driver` (None: no driver), else does so
    itself; returns the name of its first interface, or None without one.

    Raises NicError if the function has vanished, sysfs cannot be written, or the driver does not take the
    function back within 15 s.
    """
    if _settled(address, driver, root, patience_s):
        return _interface(address, root)
    device = root / "sys/bus/pci/devices" / address
    if not device.is_dir():
        raise NicError(f"{address}: the PCI function has vanished; echo 1 > /sys/bus/pci/rescan looks for it")
    _write(device / "driver_override", "\n")
    if (device / "driver").is_symlink():
        _write(device / "driver" / "unbind", address)
    if driver is not None:
        _write(root / "sys/bus/pci/drivers_probe", address)
    if not _settled(address, driver, root, DEADLINE_S):
        now = sysfs.function(root, address).driver or "none"
        remedy = f"echo {address} > /sys/bus/pci/drivers/{driver}/bind"
        raise NicError(
            f"{address}: driver {driver} did not take it back within {DEADLINE_S:g} s (now {now}); {remedy}"
        )
    return _interface(address, root)


def _settled(address: str, driver: str | None, root: Path, seconds: float) -> bool:
    """Waits up to `seconds` until the function has its driver and an interface, and returns whether it has
    both. Without a driver, or with vfio-pci, no interface is needed. The interface appears a moment after the
    driver.
    """

    def back(function: PciNic) -> bool:
        return function.driver == driver and (driver in (None, sysfs.VFIO) or bool(function.netdevs))

    return _until(seconds, lambda: back(sysfs.function(root, address)))


def _until(seconds: float, probe: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _interface(address: str, root: Path) -> str | None:
    names = sysfs.function(root, address).netdevs
    return names[0] if names else None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise NicError(f"{path}: {error.strerror}; run as root") from error
