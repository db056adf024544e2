"""Makes an atlas data set whose true values are known: two models over the whole space, of which one is cheap
and the other reliable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from reports.atlas.axes import AXES, DEADLINES_S, Place
from reports.atlas.dataset import merged, write

MODELS = ("plain", "sure 1")
UPDATES = 5


def in_time(model: str, place: Place, deadline_s: float) -> float:
    """Returns the true share of updates that arrive in time: model "plain" loses what the link loses; "sure"
    delivers everything, later the more the link loses.
    """
    if model == "plain":
        return (1 - place.loss) * float(np.clip(deadline_s / (deadline_s + place.delay_s), 0, 1))
    needs_s = place.delay_s * (2 + 20 * place.loss) + 0.1
    return float(np.clip(deadline_s / needs_s, 0, 1))


def price(model: str, place: Place) -> float:
    """Returns the true number of bytes for one update to one receiver, a smooth function of the logarithms of
    the axes.
    """
    return place.size_bytes * (1.0 if model == "plain" else 1.5 + 4 * place.loss)


def rows(points: int = 64, models: tuple[str, ...] = MODELS, seed: int = 3) -> list[dict[str, Any]]:
    """Returns rows of a data set at the points of a Halton sequence, one for each point and model."""
    unit = qmc.Halton(len(AXES) + 1, rng=seed).random(points)
    return [row(model, number, place_of(at)) for number, at in enumerate(unit, 1) for model in models]


def place_of(at: Any) -> Place:
    """Returns the place whose coordinates are given as shares (0 to 1) of each axis and of duplex."""
    values = {
        axis.name: axis.low * (axis.high / axis.low) ** share
        if axis.log
        else axis.low + (axis.high - axis.low) * share
        for axis, share in zip(AXES, at, strict=False)
    }
    values["receivers"] = round(values["receivers"])
    values["size_bytes"] = round(values["size_bytes"])
    return Place(**values, duplex="half" if at[-1] >= 0.5 else "full")


def row(model: str, point: int, place: Place) -> dict[str, Any]:
    """Returns the row of one run, with the values that a measurement would give."""
    owed = UPDATES * round(place.receivers)
    within = [in_time(model, place, d) for d in DEADLINES_S]
    spent = price(model, place)
    texts = {"code": "c0de", "agent": "a9e", "kernel": "7.3.4-lab", "version": "0.1.0", "time": "virtual"}
    times = {f"{of}_p{p}_s": 1.0 for of in ("latency", "round_trip") for p in (10, 50, 90, 99, 100)}
    return {
        "model": model, "point": point, "seed": 1, "loss": place.loss, "rate_bps": place.rate_bps,
        "delay_s": place.delay_s, "receivers": round(place.receivers), "size_bytes": round(place.size_bytes),
        "duplex": place.duplex, "updates": UPDATES, "owed": owed, "delivered": round(within[-1] * owed),
        "confirmed": None if model == "plain" else owed, "duplicated": 0, "hit_patience": within[-1] < 1,
        "delivered_within": within, "confirmed_within": None if model == "plain" else within, **times,
        "wire_bytes": round(spent * owed), "setup_bytes": 0, "wire_packets": owed, "retransmissions": 0,
        "bytes_per_update": spent, "captures_dropped": 0, "lab_s": 145.0, "patience_s": 65.0, "wall_s": 5.0,
        "suspect": False, "warnings": [], **texts, "parameters": '{"loss": "5 %"}',
    }  # fmt: skip


def data_set(path: Path, found: list[dict[str, Any]] | None = None) -> Path:
    """Writes the rows (all of `rows` if None) to a file and returns its path."""
    write(merged(None, rows() if found is None else found), path, "a test")
    return path
