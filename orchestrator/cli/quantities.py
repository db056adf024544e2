"""Defines types of click options for values with units, which the parser of topology files reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from orchestrator.language.units import Quantity


class QuantityType(click.ParamType["int | float"]):
    """Converts texts such as `20 ms`, `1 %` or `250 kbit/s` to numbers; refuses a number without a unit.
    kind: name of the quantity; whole: return an integer.
    """

    def __init__(self, kind: str, whole: bool) -> None:
        self.name = kind
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """Returns the value in its internal unit: ns, bit/s, bytes, or a share of 1; click.BadParameter for
        other text.
        """
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
    """Converts an age, such as `30 d` or any duration, to nanoseconds."""

    def _kind(self) -> Quantity:
        from orchestrator.language import units

        return units.AGE


class CpuType(click.ParamType["tuple[float | None, float | None]"]):
    """Converts `500 MHz` or `0.5 cores` to a pair (MHz, cores), one of which is None."""

    name = "cpu"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | None, float | None]:
        """Returns (MHz, cores); the one that the text does not state is None."""
        from orchestrator.language import units

        try:
            amount = units.cpu(value)
        except units.UnitError as error:
            self.fail(f'"{value}" {error}', param, ctx)
        return (amount.mhz, amount.cores)


class DateType(click.ParamType["int"]):
    """Converts a date, or a date and a time in UTC, to Unix ns."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the moment in Unix ns; click.BadParameter for other text."""
        from orchestrator.language.dates import date_ns
        from orchestrator.language.units import UnitError

        try:
            return date_ns(value)
        except UnitError as error:
            self.fail(f'"{value}" {error}', param, ctx)


DATE = DateType()
DURATION = QuantityType("duration", whole=True)
RATE = QuantityType("rate", whole=True)
SHARE = QuantityType("share", whole=False)
SIZE = QuantityType("size", whole=True)
AGE = AgeType("age", whole=True)
CPU = CpuType()
