"""Option values with units, read by the same parser as topology files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from orchestrator.language.units import Quantity


class QuantityType(click.ParamType["int | float"]):
    """Converts `20 ms`, `1 %`, `250 kbit/s`; a number without a unit is refused, as in a file."""

    def __init__(self, kind: str, whole: bool) -> None:
        self.name = kind
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """The value in its internal unit."""
        from orchestrator.language import units

        kind = self._kind()
        try:
            return units.whole(kind, value) if self._whole else units.real(kind, value)
        except units.UnitError as error:
            self.fail(f'"{value}" {error}', param, ctx)

    def _kind(self) -> Quantity:
        from orchestrator.language import units

        return units.QUANTITIES[self.name]


class AgeType(QuantityType):
    """Converts `30 d` and the units of a duration to nanoseconds; no topology file has ages."""

    def _kind(self) -> Quantity:
        from orchestrator.language import units

        return units.AGE


class CpuType(click.ParamType["tuple[float | None, float | None]"]):
    """Converts `500 MHz` or `0.5 cores` to a pair (mhz, cores); one of them is None."""

    name = "cpu"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | None, float | None]:
        """MHz or cores."""
        from orchestrator.language import units

        try:
            amount = units.cpu(value)
        except units.UnitError as error:
            self.fail(f'"{value}" {error}', param, ctx)
        return (amount.mhz, amount.cores)


DURATION = QuantityType("duration", whole=True)
RATE = QuantityType("rate", whole=True)
SHARE = QuantityType("share", whole=False)
SIZE = QuantityType("size", whole=True)
AGE = AgeType("age", whole=True)
CPU = CpuType()
