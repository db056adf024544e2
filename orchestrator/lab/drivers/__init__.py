"""Maps the names of drivers to functions that make them; a driver's module is imported only when it is
requested.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.lab.driver import Driver, DriverContext


def _light(context: DriverContext) -> Driver:
    from orchestrator.lab.drivers.light import LightDriver

    return LightDriver(context)


def _vm(context: DriverContext) -> Driver:
    from orchestrator.lab.drivers.vm import VmDriver

    return VmDriver(context)


def _hosts(context: DriverContext) -> Driver:
    from orchestrator.lab.drivers.hosts import HostsDriver

    return HostsDriver(context)


def _fake(context: DriverContext) -> Driver:
    from orchestrator.lab.drivers.fake import FakeDriver

    return FakeDriver(context)


DRIVERS: dict[str, Callable[[DriverContext], Driver]] = {
    "light": _light,
    "vm": _vm,  # chosen for every plan with a node of kind vm
    "hosts": _hosts,  # chosen for every plan with hosts
    "fake": _fake,  # only chosen by the user's request, because its figures are invented
}
