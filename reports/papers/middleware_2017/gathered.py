"""Computes the figures over all pairs of middleware and serialiser that the claims need, for each pattern."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.papers.middleware_2017.pairs import LATENCY, PATTERNS, THROUGHPUT, pairs, usual
from reports.study import Study

# The paper's middleware that vNET can run. Other middleware is drawn, but not ranked.
RANKED = ("rmi", "xml-rpc", "corba", "ice", "web-services", "opc-ua", "xmpp", "wamp", "zeromq")
XML, JSON, TEXT = ("xml-",), ("json-",), ("xml-", "json-", "yaml-")


def gathered(study: Study) -> Iterator[tuple[str, Metric]]:
    """Yields (pattern, metric) for throughput and latency: the best pair, the mean and rank of each ranked
    middleware, the mean, best and worst of each family of serialisers.

    Only pairs on the usual device and network count.
    """
    frame = study.once(pairs).filter(usual(pl.col("use")))
    for pattern in PATTERNS:
        for name in (THROUGHPUT, LATENCY):
            rows = frame.filter((pl.col("pattern") == pattern) & (pl.col("name") == name))
            if not rows.is_empty():
                yield from ((pattern, metric) for metric in _of_pattern(rows, name))


def _of_pattern(rows: pl.DataFrame, name: str) -> Iterator[Metric]:
    unit, higher = ("messages/s", True) if name == THROUGHPUT else ("ms", False)
    best = rows["value"].max() if higher else rows["value"].min()
    yield count(f"{name}_best", Of(), float(best), unit, rows.height, "best of all pairs")  # type: ignore[arg-type]  # of numbers
    means = _means(rows, "use", "serialiser")
    ranked = sorted((use for use in means if use in RANKED), key=lambda use: means[use], reverse=higher)
    for place, use in enumerate(ranked, 1):
        yield count(f"{name}_mean", Of(group=use), means[use], unit, rows.height, "mean of its pairs")
        yield count(f"{name}_place", Of(group=use), place, f"of {len(ranked)}", rows.height, "by its mean")
    of_serialisers = _means(rows, "serialiser", "use")
    for family, members in _families(list(of_serialisers)).items():
        values = [of_serialisers[one] for one in members]
        if values:
            mean = sum(values) / len(values)
            yield count(f"{name}_mean", Of(group=family), mean, unit, len(values), "mean of its serialisers")
            best = max(values) if higher else min(values)
            worst = min(values) if higher else max(values)
            yield count(f"{name}_best", Of(group=family), best, unit, len(values), "best of its serialisers")
            yield count(
                f"{name}_worst", Of(group=family), worst, unit, len(values), "worst of its serialisers"
            )


def _means(rows: pl.DataFrame, of: str, over: str) -> dict[str, float]:
    """Returns the mean value of each name in the column `of`, over the names in the column `over` that were
    measured with all of them, or over all if there is none.
    """
    count_of = rows[of].n_unique()
    whole = rows.group_by(over).agg(pl.col(of).n_unique().alias("with")).filter(pl.col("with") == count_of)
    common = rows.filter(pl.col(over).is_in(whole[over].to_list()))
    means = (rows if common.is_empty() else common).group_by(of).agg(pl.col("value").mean())
    return {str(name): float(value) for name, value in means.iter_rows()}


def _families(names: list[str]) -> dict[str, list[str]]:
    text = [name for name in names if name.startswith(TEXT)]
    return {
        "xml": [name for name in names if name.startswith(XML)],
        "json": [name for name in names if name.startswith(JSON)],
        "text but XML": [name for name in text if not name.startswith(XML)],
        "text": text,
        "binary": [name for name in names if name not in text],
    }
