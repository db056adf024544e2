"""The drivers: one file each, one line each in `DRIVERS`. Each is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.lab.driver import Driver, Surroundings


def _light(surroundings: Surroundings) -> Driver:
    from orchestrator.lab.drivers.light import LightDriver

    return LightDriver(surroundings)


def _vm(surroundings: Surroundings) -> Driver:
    from orchestrator.lab.drivers.vm import VmDriver

    return VmDriver(surroundings)


def _fake(surroundings: Surroundings) -> Driver:
    from orchestrator.lab.drivers.fake import FakeDriver

    return FakeDriver(surroundings)


DRIVERS: dict[str, Callable[[Surroundings], Driver]] = {
    "light": _light,
    "vm": _vm,  # taken for every plan with a node of kind vm
    "fake": _fake,  # never chosen by itself: its figures are invented
}
