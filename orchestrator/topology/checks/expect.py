"""Checks expectations as far as the file alone permits: one subject, one condition, metric names, units."""

from __future__ import annotations

import re

from contract.metrics import LINK_RATE, METRICS, RECOVERY, WHOLE, Metric

from ...language import condition, units
from ...language.problem import closest
from ...language.source import Path
from ..expect import BOUNDS, MODES, SUBJECTS, Expect, Series, given
from .report import Report

LISTED = "metrics"


def check(report: Report) -> None:
    """Checks each expectation; names of classes, links and labels are checked when the plan is made."""
    written = report.model.expect
    for index, one in zip(report.places("expect", len(written)), written, strict=False):
        examine(report, ("expect", index), one)


def examine(report: Report, place: Path, one: Expect) -> None:
    """Adds the problems of one expectation at `place`: not exactly one subject and one condition, keys that
    do not fit these, unknown metrics, contradictory bounds or bounds of a wrong unit, and invalid regular
    expressions.
    """
    subjects = [name for name in SUBJECTS if getattr(one, name) is not None]
    if len(subjects) != 1:
        rule = f"has {' and '.join(subjects) or 'no subject'}"
        report.add(place, None, rule, f"write exactly one of {', '.join(SUBJECTS)}")
        return
    if one.during is not None and one.after is not None:
        report.add((*place, "after"), one.after, "stands beside `during`", "write one of the two")
    if "every" in one.model_fields_set and (one.metric is None or not modes(one)):
        report.add((*place, "every"), None, "no series is judged", "leave it out, or write `always`")
    {"metric": _metric, "delivered": _delivered, "log": _log, "event": _event}[subjects[0]](
        report, place, one
    )


def known(one: Expect) -> Metric | None:
    """Returns the entry of METRICS for an expectation's metric: its unit, columns and series; None if there
    is none.
    """
    return METRICS.get(column_name(one))


def column_name(one: Expect) -> str:
    """Returns the metric's name in summary.json: `interruption_until` for `recovery`, `link_carried` for
    `throughput` with a `link`, else the metric itself.
    """
    if one.metric == RECOVERY:
        return "interruption_until"
    return "link_carried" if one.metric == LINK_RATE and one.link is not None else str(one.metric)


def nearest(name: str) -> str:
    """Returns the remedy for an unknown metric: the nearest of the names that contain it, or of all names if
    no name contains it.
    """
    names = [*METRICS, RECOVERY]
    return closest(name, [known for known in names if name in known] or names, what=LISTED)


def modes(one: Expect) -> dict[str, Series]:
    """Returns those of the conditions always, eventually and never that the expectation has, by
    these names.
    """
    return {mode: found for mode in MODES if (found := getattr(one, mode)) is not None}


def _metric(report: Report, place: Path, one: Expect) -> None:
    if (found := chosen(report, place, one)) is not None:
        _condition(report, place, one, found)


def chosen(report: Report, place: Path, one: Expect) -> Metric | None:
    """Adds the problems of a metric's name, and of the keys that choose its values; returns the metric's
    entry, None for an unknown name.
    """
    found = known(one)
    if found is None:
        report.add((*place, "metric"), one.metric, "is no metric of summary.json", nearest(str(one.metric)))
        return None
    if one.metric == RECOVERY and one.after is None:
        report.add(place, None, "recovery needs the event", "write `after: LABEL`")
    for key, column, value in given(one):
        if column not in found.of:
            of = ", ".join("class" if c == "traffic_class" else c for c in found.of if c != "event")
            report.add(
                (*place, key), value, f"{one.metric} is not of a {key}", f"it is of: {of or 'the run'}"
            )
    _narrowed(report, place, one, found)
    return found


def _narrowed(report: Report, place: Path, one: Expect, found: Metric) -> None:
    """Reports `during` and `after` for a metric that summary.json has only for the whole run; `after` is
    allowed if the metric has values for each event.
    """
    for key in ("during", "after"):
        label = getattr(one, key)
        of_event = key == "after" and "event" in found.of
        if label is not None and column_name(one) in WHOLE and not of_event:
            report.add((*place, key), label, f"{one.metric} is always of the whole run", "leave it out")


def _condition(report: Report, place: Path, one: Expect, found: Metric) -> None:
    """Reports a metric that does not have exactly one of bounds, always, eventually and never. Also reports a
    series of a metric that has no series, and bounds that are missing, of the wrong unit or contradictory.
    """
    written = modes(one)
    direct = [key for key in BOUNDS if getattr(one, key) is not None]
    if len(written) + bool(direct) != 1:
        rule = f"has {len(written) + bool(direct)} conditions"
        report.add(place, None, rule, "write bounds (below: 5 ms), or one of always, eventually and never")
        return
    if direct:
        _bounds(report, place, one, found)
    for mode, series in written.items():
        if not found.series:
            names = [name for name, metric in METRICS.items() if metric.series]
            remedy = closest("", names, what="those with one")
            report.add((*place, mode), None, f"{one.metric} has no series in time", remedy)
        _no_text(report, (*place, mode), series)
        _within(report, (*place, mode), mode, series)
        _bounds(report, (*place, mode), series, found)


def _bounds(report: Report, place: Path, holder: Expect | Series, found: Metric) -> None:
    amounts: dict[str, float] = {}
    for key in BOUNDS:
        value = getattr(holder, key)
        if value is not None:
            try:
                amounts[key] = condition.amount(found.unit, value)
            except units.UnitError as error:
                trial = found is METRICS[LINK_RATE]  # without `link`
                remedy = "for the rate of a link write `link: NAME`" if trial else error.remedy
                report.add((*place, key), value, error.rule, remedy)
                return
    if not amounts:
        report.add(place, None, "has no bound", f"write one of {', '.join(BOUNDS)}")
    for low, high in (("above", "at_least"), ("below", "at_most")):
        if low in amounts and high in amounts:
            report.add(
                (*place, high), getattr(holder, high), f"stands beside `{low}`", "write one of the two"
            )
    least = [amounts[key] for key in ("above", "at_least") if key in amounts]
    most = [amounts[key] for key in ("below", "at_most") if key in amounts]
    closed = {"at_least", "at_most"} <= amounts.keys()
    if least and most and (least[0] > most[0] or (least[0] == most[0] and not closed)):
        report.add(place, None, "no value is in this range", "write the smaller bound as the lower one")


def _within(report: Report, place: Path, mode: str, series: Series) -> None:
    if series.within is not None and mode != "eventually":
        report.add(
            (*place, "within"), None, f"does not go with `{mode}`", "leave it out, or write `eventually`"
        )


def _no_text(report: Report, place: Path, series: Series) -> None:
    if series.text is not None:
        rule = "a text belongs to `log` and `event`"
        report.add(place, series.text, rule, "write bounds, for example {above: 100}")


def _only(report: Report, place: Path, one: Expect, allowed: tuple[str, ...]) -> None:
    """Adds a problem for each key that is not in `allowed`, the keys that the subject accepts."""
    written = [key for key, _, _ in given(one)]
    written += [key for key in (*BOUNDS, *MODES, "during", "after") if getattr(one, key) is not None]
    for key in written:
        if key not in allowed:
            report.add(
                (*place, key), None, "does not go with this subject", f"keys: {', '.join(allowed) or 'none'}"
            )


def _delivered(report: Report, place: Path, one: Expect) -> None:
    _only(report, place, one, ("class", "guarantee", "qos", "during", "after"))


def _log(report: Report, place: Path, one: Expect) -> None:
    _only(report, place, one, ("eventually", "never"))
    written = modes(one)
    if len(written) != 1:
        report.add(place, None, "a log has one condition", 'write never: "error", or eventually: "ready"')
        return
    mode, series = next(iter(written.items()))
    _no_bounds(report, (*place, mode), series, "a log")
    if series.within is not None:
        report.add((*place, mode, "within"), None, "lines of logs have no times", "leave it out")
    if series.text is None:
        report.add((*place, mode), None, "has no text", 'write for example "error"')
    _pattern(report, (*place, mode), series.text)


def _pattern(report: Report, place: Path, text: str | None) -> None:
    """Reports a text that is not a regular expression; accepts None."""
    try:
        re.compile(text or "")
    except re.error as error:
        report.add(place, text, f"is no regular expression ({error})", r"escape ( [ * as \( \[ \*")


def _event(report: Report, place: Path, one: Expect) -> None:
    _only(report, place, one, ("group", "eventually", "never", "during", "after"))
    written = modes(one)
    if len(written) != 1:
        report.add(
            place, None, "an event has one condition", "write never: true, or eventually: {within: 5 s}"
        )
        return
    mode, series = next(iter(written.items()))
    _no_bounds(report, (*place, mode), series, "an event")
    _pattern(report, (*place, mode), series.text)
    _within(report, (*place, mode), mode, series)


def _no_bounds(report: Report, place: Path, series: Series, what: str) -> None:
    for key in BOUNDS:
        if getattr(series, key) is not None:
            report.add((*place, key), getattr(series, key), f"{what} has no value", "leave it out")
