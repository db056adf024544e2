"""Computes the figures over all pairs of middleware and serialiser that the claims need, for each pattern."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.papers.middleware_2017.pairs import LATENCY, PATTERNS, THROUGHPUT, pairs, usual
from reports.study import Study

# The paper's middleware that vNET can run. Other middleware is drawn, but not ranked.
RANKED = ("rmi", "xml-rpc", "corba", "ice", "web-services", "opc-ua", "xmpp", "wamp", "zeromq")
LIMITS_MS = (20, 10)
# Numbers of the best and of the worst serialisers that the paper compares, for each pattern.
STEPS = ((3, 12), (2, 16), (2, 18))
XML, JSON, TEXT = ("xml-",), ("json-",), ("xml-", "json-", "yaml-")


def gathered(study: Study) -> Iterator[tuple[str, Metric]]:
    """Yields (pattern, metric) for throughput and latency: the best pair, the mean and rank of each ranked
    middleware, the mean, best and worst of each family of serialisers.

    Only pairs on the usual device and network count.
    """
    yield from of_pairs(study.once(pairs))


def of_pairs(rows: pl.DataFrame) -> Iterator[tuple[str, Metric]]:
    """Yields the metrics of `gathered` from the columns of `pairs`."""
    frame = rows.filter(usual(pl.col("use")))
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
    yield from _over_all(rows, name, unit, higher)
    of_serialisers = _means(rows, "serialiser", "use")
    yield from _of_each_serialiser(of_serialisers, name, unit, higher)
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


def _over_all(rows: pl.DataFrame, name: str, unit: str, higher: bool) -> Iterator[Metric]:
    """Yields the factor between the best pair and the mean of all; for latency also the best value of each
    middleware and serialiser, and the share of pairs below the paper's limits.
    """
    n, mean = rows.height, float(rows["value"].mean())  # type: ignore[arg-type]  # of numbers
    best = float(rows["value"].max() if higher else rows["value"].min())  # type: ignore[arg-type]  # of numbers
    lead = best / mean if higher else mean / best
    yield count(f"{name}_lead", Of(), lead, "times", n, "the best pair against the mean of all")
    if higher:
        return
    for column in ("use", "serialiser"):
        for group, least in rows.group_by(column).agg(pl.col("value").min()).iter_rows():
            yield count(f"{name}_best", Of(group=str(group)), float(least), unit, n, "best of its pairs")
    for limit_ms in LIMITS_MS:
        below = int((rows["value"] < limit_ms).sum())
        yield count(f"{name}_below_{limit_ms}", Of(), 100 * below / n, "%", n, "of all pairs")
    yield count(f"{name}_pairs_below_2", Of(), int((rows["value"] < 2).sum()), "pairs", n, "count")


def _of_each_serialiser(means: dict[str, float], name: str, unit: str, higher: bool) -> Iterator[Metric]:
    """Yields mean and rank of each serialiser, the best rank of each family, and for each of STEPS the factor
    between the last of the best serialisers and the first of the worst.
    """
    ranked = sorted(means, key=lambda one: means[one], reverse=higher)
    for place, one in enumerate(ranked, 1):
        yield count(f"{name}_mean", Of(group=one), means[one], unit, len(means), "mean of its pairs")
        yield count(f"{name}_place", Of(group=one), place, f"of {len(ranked)}", len(means), "by its mean")
    for family, members in _families(ranked).items():
        if members:
            first = 1 + min(ranked.index(one) for one in members)
            yield count(f"{name}_first", Of(group=family), first, f"of {len(ranked)}", len(members), "rank")
    yield count(f"{name}_ranked", Of(), len(ranked), "serialisers", len(ranked), "count")
    for best, worst in STEPS:
        if len(ranked) >= best + worst:
            times = means[ranked[best - 1]] / means[ranked[-worst]]
            of = Of(group=f"{best} best, {worst} worst")
            yield count(
                f"{name}_step", of, times, "times", len(ranked), "least of these against best of those"
            )


def _means(rows: pl.DataFrame, of: str, over: str) -> dict[str, float]:
    """Returns the mean value of each name in the column `of`. The means are over those names in the column
    `over` that were measured with all names of `of`; over all names if there is none.
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
        "text but JSON of ProtoStuff": [name for name in text if name != "json-protostuff"],
        "none of ProtoStuff": [name for name in names if not name.endswith("protostuff")],
        "binary": [name for name in names if name not in text],
    }
