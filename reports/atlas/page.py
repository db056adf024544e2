"""Writes the atlas as one self-contained page: maps of the best model, the uncertainty of each estimate, and
the measured runs.
"""

from __future__ import annotations

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from scipy.spatial.distance import cdist

from reports.atlas.answer import price_surface, reach_of, share_surface, shares_in_time
from reports.atlas.axes import (
    AXES,
    DEADLINES_S,
    Floats,
    Place,
    coordinates,
    duration_words,
    rate_words,
    share_words,
    size_words,
)
from reports.atlas.contents import contents
from reports.atlas.dataset import Atlas
from reports.atlas.score import choices, scores
from reports.atlas.surface import FEWEST
from reports.figures.theme import PALETTE

HERE = Path(__file__).parent
CSS = HERE.parent / "page.css"
# The grid that the page shows, inside the designed ranges; loss and rate are the axes of each map.
LOSSES = tuple(step / 100 for step in range(0, 41, 5))
RATES = (50e3, 100e3, 200e3, 400e3, 800e3, 1.6e6, 3.2e6, 6.4e6, 10e6)
RECEIVERS = (1, 3, 10, 30, 100, 300)
DELAYS = (0.02, 0.15, 0.4)
SIZES = (700, 2500, 9000)
DUPLEX = ("full", "half")
DEADLINES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
# Grey means that no model meets the condition. The colours are Okabe and Ito's palette; the ninth is not in
# it.
COLOURS = (*PALETTE[:6], PALETTE[7], "#F0E442", "#5B2A86")
BYTE = 255
FURTHEST = 2.0  # the largest distance that one byte of the page can encode


def write_page(atlas: Atlas, out: Path) -> None:
    """Writes the page of the atlas to `out`, replaces an earlier file, and makes the directory."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    text = environment.get_template("page.html.j2").render(
        css=Markup(CSS.read_text(encoding="utf-8") + (HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),
        data=Markup(_embedded(drawn(atlas))),
        contents=contents(atlas),
        scores=[score.words() for score in scores(atlas)],
        choices=[
            [
                duration_words(choice.deadline_s),
                str(choice.points),
                share_words(choice.lost),
                f"{choice.lost_always[0]}: {share_words(choice.lost_always[1])}",
            ]
            for choice in choices(atlas)
        ],
        runs=atlas.rows.height,
        points=atlas.rows["point"].n_unique(),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")


def _embedded(value: Any) -> str:
    """Returns the value as JSON in which `<` is escaped, for use inside a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def drawn(atlas: Atlas) -> dict[str, Any]:
    """Returns the data of the page's script: estimates on the grid for each model with at least FEWEST runs,
    as base64 bytes, and all measured runs.
    """
    models = [model for model in atlas.models if atlas.of(model).height >= FEWEST]
    places = _grid()
    shares, offs, away, prices = [], [], [], []
    for model in models:
        rows = atlas.of(model)
        points = coordinates(rows)
        for deadline_s in DEADLINES:
            in_time = shares_in_time(rows, deadline_s)
            assert in_time is not None  # every model has measured deliveries
            surface = share_surface(points, in_time)
            shares.append(_bytes(surface.at(places)))
            offs.append(_bytes(surface.offs(places)))
        nearest = cdist(places, points).min(axis=1)
        away.append(_bytes(nearest / FURTHEST))
        prices += [round(float(v)) for v in np.exp(price_surface(points, rows).at(places))]
    return {
        "models": models,
        "colours": [COLOURS[index % len(COLOURS)] for index in range(len(models))],
        "losses": LOSSES,
        "rates": RATES,
        "rate_words": [rate_words(rate) for rate in RATES],
        "receivers": RECEIVERS,
        "delays": [duration_words(delay) for delay in DELAYS],
        "sizes": [size_words(size) for size in SIZES],
        "duplex": DUPLEX,
        "deadlines": [duration_words(deadline) for deadline in DEADLINES],
        "furthest": FURTHEST,
        "reach": reach_of(atlas),
        "shares": _text(shares),
        "offs": _text(offs),
        "away": _text(away),
        "prices": prices,
        "axes": [axis.name for axis in AXES],
        "runs": _runs(atlas.rows),
        "measured_deadlines": DEADLINES_S,
    }


def _grid() -> Floats:
    """Returns the scaled coordinates of every place of the page, ordered by duplex, size, delay, receivers,
    rate, loss with loss the fastest; page.js counts in the same order.
    """
    product = itertools.product(DUPLEX, SIZES, DELAYS, RECEIVERS, RATES, LOSSES)
    return np.array(
        [
            Place(loss, rate, delay, receivers, size, duplex).scaled()
            for duplex, size, delay, receivers, rate, loss in product
        ]
    )


def _bytes(shares: Floats) -> bytes:
    return np.round(np.clip(shares, 0, 1) * BYTE).astype(np.uint8).tobytes()


def _text(parts: list[bytes]) -> str:
    return base64.b64encode(b"".join(parts)).decode()


def _runs(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Returns every measured run as an object of the page, with its place both as text and as coordinates."""
    points = coordinates(rows)
    found = []
    for row, at in zip(rows.iter_rows(named=True), points, strict=True):
        place = Place(**{name: row[name] for name in Place.__dataclass_fields__})
        found.append(
            {
                "model": row["model"],
                "point": row["point"],
                "seed": row["seed"],
                "at": [round(float(v), 4) for v in at],
                "place": place.words(),
                "receivers": row["receivers"],
                "within": [round(float(v), 4) for v in row["delivered_within"]],
                "delivered": row["delivered"],
                "owed": row["owed"],
                "confirmed": row["confirmed"],
                "p50_s": row["latency_p50_s"],
                "p99_s": row["latency_p99_s"],
                "bytes": round(row["bytes_per_update"]),
                "again": row["retransmissions"],
                "suspect": row["suspect"],
                "command": command(row["model"], json.loads(row["parameters"]), row["seed"]),
            }
        )
    return found


def command(model: str, parameters: dict[str, Any], seed: int) -> str:
    """Returns the `vnet run` command that repeats a run to the byte, with the same code."""
    words = " ".join(f"-p '{name}={value}'" for name, value in parameters.items())
    name = model.split(" ")[0]
    return f"vnet run topologies/atlas/{name}.yaml --time virtual --seed {seed} {words}"
