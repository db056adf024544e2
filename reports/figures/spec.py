"""Defines a figure: a function from a study to data, a function from the data to a chart, and the claims
about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from reports.study import Study

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart


class CannotDrawError(Exception):
    """Raised if the study lacks what a figure needs; the text has what is missing."""


@dataclass(frozen=True)
class Spec:
    """The definition of one figure. `data` computes the rows that `draw` shows and raises CannotDrawError if
    the study lacks them; both are pure functions.
    """

    key: str  # file name
    title: str
    caption: str
    data: Callable[[Study], pl.DataFrame]
    draw: Callable[[pl.DataFrame, Study], AnyChart]
    claims: tuple[str, ...] = ()  # keys of claims in a paper's claims.yaml
    wide: bool = False


@dataclass(frozen=True)
class Drawn:
    """A drawn figure: its rows, its Vega-Lite definition and its SVG."""

    spec: Spec
    frame: pl.DataFrame
    vega_lite: dict[str, Any]
    svg: str


@dataclass(frozen=True)
class Absent:
    """A figure that could not be drawn, with the reason."""

    spec: Spec
    reason: str
