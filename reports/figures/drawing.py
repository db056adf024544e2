"""Draws figures and writes them as SVG, Vega-Lite and CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import altair as alt
import polars as pl
import vl_convert
from altair.utils.schemapi import debug_mode

from contract import regular
from reports.figures.spec import Absent, CannotDrawError, Drawn, Spec
from reports.figures.theme import finish
from reports.spreadsheet import write_table
from reports.study import Study
from reports.svg import slim

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
DIGITS = 6  # significant digits of a plotted value; even four give a tenth of a pixel


def wake() -> None:
    """Draws an empty chart, so that the drawing library is loaded (half a second) before the first real
    chart.
    """
    vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"}, vl_version=VEGA_LITE)


def draw(spec: Spec, study: Study) -> Drawn | Absent:
    """Returns the figure, checked against Vega-Lite's schema, or the reason why it cannot be drawn."""
    with ThreadPoolExecutor(1) as pen:
        return _begin(spec, study, pen, checked=True)()


def draw_all(specs: Iterable[Spec], study: Study) -> list[Drawn | Absent]:
    """Returns each figure, or the reason why it cannot be drawn; a second thread draws while the next data
    are computed.

    The charts are not checked against Vega-Lite's schema, because that takes a fifth of a page's time; `draw`
    checks them.
    """
    with ThreadPoolExecutor(1) as pen:
        begun = [_begin(spec, study, pen, checked=False) for spec in specs]
        return [finished() for finished in begun]


def _begin(spec: Spec, study: Study, pen: Executor, checked: bool) -> Callable[[], Drawn | Absent]:
    try:
        frame = rounded(spec.data(study))
        with alt.data_transformers.enable("default", max_rows=None), debug_mode(checked):
            vega_lite = finish(spec.draw(frame, study), f"{spec.title}. {spec.caption}", checked)
    except CannotDrawError as error:
        absent = Absent(spec, str(error))
        return lambda: absent
    svg = pen.submit(lambda: slim(vl_convert.vegalite_to_svg(vega_lite, vl_version=VEGA_LITE)))
    return lambda: Drawn(spec, frame, vega_lite, svg.result())


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the frame with its 64-bit floats rounded to DIGITS significant digits."""
    return frame.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS))


def save(drawn: Drawn, report_dir: Path) -> None:
    """Writes figures/KEY.svg, figures/KEY.vl.json and tables/KEY.csv below the report's directory, and makes
    the directories.
    """
    figures, tables = report_dir / "figures", report_dir / "tables"
    figures.mkdir(parents=True, exist_ok=True)
    tables.mkdir(parents=True, exist_ok=True)
    key = drawn.spec.key
    regular.write(figures / f"{key}.svg", drawn.svg)
    regular.write(figures / f"{key}.vl.json", json.dumps(drawn.vega_lite, separators=(",", ":")))
    write_table(drawn.frame, tables / f"{key}.csv")
