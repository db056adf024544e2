"""Plans expectations: checks that the names that they use exist in the plan, and states each in words."""

from __future__ import annotations

from collections.abc import Iterator

from contract import figures
from contract.plan import Bounds, Expectation, Plan

from ..language import condition
from ..language.problem import Problem, TopologyError, closest, shown
from ..language.source import Document, Path
from ..language.units import text_ns
from ..topology.checks.expect import known, modes
from ..topology.expect import BOUNDS, Expect, Series, Stated, given

STEPS = (  # the names of the steps of a session
    "connecting", "tls", "connected", "subscribed", "listening", "retained", "will", "birth", "death",
    "refused", "unsubscribing", "unsubscribed", "misidentified", "disconnected", "failed",
)  # fmt: skip
_WORDS = {"at_least": "at least", "at_most": "at most"}


def plan_expectations(stated: Stated, plan: Plan) -> tuple[Expectation, ...]:
    """Returns the stated expectations in the form of the plan; raises TopologyError with each name that the
    plan lacks and each expectation that is stated twice.
    """
    names = _names(plan)
    problems = [
        problem for place, one in stated.written for problem in _unknown(stated.document, place, one, names)
    ]
    seen = set()
    for place, one in stated.written:
        text = in_words(one)
        if (place[:-1], text) in seen:
            problems.append(stated.document.problem(place, text, "stands twice", "remove one of them"))
        seen.add((place[:-1], text))
    if problems:
        raise TopologyError(problems)
    return tuple(planned(one) for _, one in stated.written)


def _names(plan: Plan) -> dict[str, set[str]]:
    """Returns the names of a plan that expectations may use, by the key in the file."""
    groups = {node.group for node in plan.nodes}
    told = {name for event in plan.events if event.action in ("run", "start") for name in event.targets}
    writers = [node for node in plan.nodes if node.name in told or any(one.process for one in node.software)]
    labels = {event.label for event in plan.events}
    guarantees = {d.guarantee.name for flow in plan.flows for d in flow.deliveries}
    return {
        "class": {flow.traffic_class for flow in plan.flows},
        "guarantee": guarantees,
        "qos": guarantees,
        "link": {link.name for link in plan.links} | {segment.name for segment in plan.segments},
        "group": groups,
        "capture": {point.name for point in plan.captures},
        "program": {
            name
            for node in plan.nodes
            for one in node.software
            if figures.KEY in one.spec
            for name in figures.subjects(node.name, one.name, one.spec[figures.KEY])
        },
        "flow": {flow.name for flow in plan.flows},
        "log": {name for node in writers for name in (node.name, node.group)},
        "during": labels,
        "after": labels,
        "event": labels | set(STEPS),
        "label": labels,
    }


_CALLED = {
    "during": "event of the timeline",
    "after": "event of the timeline",
    "log": "node or group with programs that write logs",
}


def _unknown(document: Document, place: Path, one: Expect, names: dict[str, set[str]]) -> Iterator[Problem]:
    """Yields a problem for each name in an expectation that the plan lacks."""
    used = [(key, value) for key, _, value in given(one)]
    used += [(key, value) for key in ("log", "event", "during", "after") if (value := getattr(one, key))]
    for key, value in used:
        if key in names and value not in names[key]:
            called = _CALLED.get(key, key)
            rule = f"no {called} is called that"
            yield document.problem((*place, key), shown(value), rule, closest(value, names[key], what=called))
    if one.event is not None and one.event in names["label"]:
        yield from _of_a_label(document, place, one)


def _of_a_label(document: Document, place: Path, one: Expect) -> Iterator[Problem]:
    """Yields a problem for each label that has a group and a text, which only the steps of sessions have."""
    rule = f"{one.event} is an event of the timeline, which has none"
    remedy = f"leave it out, or write a step of a session: {', '.join(STEPS)}"
    if one.group is not None:
        yield document.problem((*place, "group"), shown(one.group), rule, remedy)
    for mode, series in modes(one).items():
        if series.text is not None:
            yield document.problem((*place, mode), shown(series.text), rule, remedy)


def planned(one: Expect) -> Expectation:
    """Returns an expectation as it stands in a plan: with its text, and with bounds in the metric's unit."""
    found = known(one)
    subject = next(name for name in ("metric", "delivered", "log", "event") if getattr(one, name) is not None)
    (mode, series), *_ = [*modes(one).items(), ("value", one)]
    unit = found.unit if found else ""
    return Expectation(
        text=in_words(one),
        subject=subject,  # type: ignore[arg-type]  # a name of SUBJECTS
        name=str(getattr(one, subject)),
        of={column: value for _, column, value in given(one)},
        mode=mode,  # type: ignore[arg-type]  # a name of MODES, or value
        bounds=Bounds(
            **{key: condition.amount(unit, v) for key in BOUNDS if (v := getattr(series, key)) is not None}
        ),
        unit=unit,
        pattern=(series.text or "") if isinstance(series, Series) else "",
        within_ns=series.within if isinstance(series, Series) else None,
        every_ns=one.every,
        during=one.during or "",
        after=one.after or "",
    )


def in_words(one: Expect) -> str:
    """Returns an expectation in words: "latency_p99 of class site-a below 500 ms during rain"."""
    of = [f"{key} {value.removeprefix('QoS ') if key == 'qos' else value}" for key, _, value in given(one)]
    subject = one.metric or ("delivered " + one.delivered if one.delivered else "")
    subject = subject or (f"log of {one.log}" if one.log else f"event {one.event}")
    words = [subject, *(["of " + ", ".join(of)] if of else []), *_bounds(one)]
    for mode, series in modes(one).items():
        words += [mode, *_bounds(series), *([f'"{series.text}"'] if series.text else [])]
        words += [] if series.within is None else [f"within {text_ns(series.within)}"]
    words += [f"{key} {label}" for key in ("during", "after") if (label := getattr(one, key))]
    words += (
        [f"in intervals of {text_ns(one.every)}"] if one.metric and modes(one) and one.every != 10**9 else []
    )
    return " ".join(words)


def _bounds(holder: Expect | Series) -> list[str]:
    found = [f"{_WORDS.get(key, key)} {v}" for key in BOUNDS if (v := getattr(holder, key)) is not None]
    return [" and ".join(found)] if found else []
