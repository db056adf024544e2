"""Makes tables 4 and 5 of test 8, with the measured values beside the printed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from reports.numbers import plain
from reports.papers.paper import Table
from reports.papers.published import reference
from reports.papers.reserve.efficiency import COMBINATIONS, LAYERS, efficiency_metrics
from reports.study import Study

ROOM = Path(__file__).parent
# Rows of table 4: title -> metric, and key of reference.yaml.
TOTALS = {
    "packets": ("efficiency_packets", "packets"),
    "average bandwidth, Kibit/s": ("efficiency_rate", "kbit_per_s"),
    "traffic, MiB": ("efficiency_traffic", "mib"),
}
PROTOCOLS = ("amqp", "mqtt", "sv")  # keys of table 5 whose bytes are those of `app_bytes`
KEYS: dict[str, tuple[str, ...]] = {
    "eth_bytes": ("ethernet",),
    "ip_bytes": ("ipv4",),
    "transport_bytes": ("tcp",),
}
KEYS |= {"app_bytes": PROTOCOLS, "data_bytes": ("payload",)}
BOTH = ("app_bytes", "data_bytes")
Measured = dict[tuple[str, str, str | None], float]  # capture, metric, layer


def tables(study: Study) -> tuple[Table, ...]:
    """Returns tables 4 and 5; empty without runs of test 8."""
    found = measured(study)
    if not found:
        return ()
    titles = list(COMBINATIONS.values())
    head = ("", *(word for title in titles for word in (title, "D4.6")))
    printed = tuple(range(2, len(head), 2))
    return (
        Table(
            "",
            "Table 4. Traffic of one device; means of the repetitions. Messages are longer or shorter than "
            "VILLASnode's of then (docs/power-protocols.md), so compare packets first.",
            head,
            _totals(found),
            printed,
        ),
        Table(
            "figure-9",
            "Table 5. Bytes of each layer for one measurement. A measurement passes the device twice but for "
            "Sampled Values; the deliverable counts one of its two payloads as the protocol's own, which the "
            "row of both does not depend on.",
            head,
            _layers(found),
            printed,
        ),
    )


def measured(study: Study) -> Measured:
    """Returns the values of `efficiency_metrics` by (capture, metric, layer), as means over the study's runs;
    empty without runs of test 8.
    """
    table = study.added(efficiency_metrics)
    means = table.group_by("capture", "name", "layer").agg(pl.col("value").mean())
    return {(capture, name, layer): value for capture, name, layer, value in means.iter_rows()}


def published(combination: str, layer: str) -> float | None:
    """Returns the bytes that table 5 prints for a layer of a combination; None if it prints none."""
    row = _printed("table_5_bytes_per_measurement", combination)
    return next((float(row[key]) for key in KEYS[layer] if key in row), None)


def _printed(table: str, combination: str) -> dict[str, Any]:
    return dict(reference(ROOM)["efficiency"][table][combination.replace("-", "_")])


def _totals(found: Measured) -> tuple[tuple[str, ...], ...]:
    rows = []
    for title, (name, key) in TOTALS.items():
        row = [title]
        for one in COMBINATIONS:
            row += [_text(found.get((one, name, None))), plain(_printed("table_4", one)[key])]
        rows.append(tuple(row))
    return tuple(rows)


def _layers(found: Measured) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, tuple[str, ...]]] = [(title, (layer,)) for layer, title in LAYERS.items()]
    rows += [("protocol and payload", BOTH), ("total", tuple(LAYERS))]
    made = []
    for title, layers in rows:
        row = [title]
        for one in COMBINATIONS:
            ours = [found.get((one, "measurement_layer", layer), 0.0) for layer in layers]
            theirs = [value for layer in layers if (value := published(one, layer)) is not None]
            row += [_text(sum(ours)), _text(sum(theirs))]
        made.append(tuple(row))
    return tuple(made)


def _text(value: float | None) -> str:
    if not value:
        return "" if value is None else "none"
    return f"{value:.4g}" if value < 1000 else f"{value:.0f}"
