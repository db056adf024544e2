"""Names the figures that a comparison judges, and the words for more and less of each.

A family of a few figures keeps the correction for their number small; `--fail-if` adds others.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache

from reports.metrics.compare import AMOUNTS, COUNTED
from reports.metrics.metric import Metric, Of


@dataclass(frozen=True)
class Figure:
    """The title of a figure, and the words for side B if it has more or less than side A.

    `subjects` are the fields of `Of` of which one must be set: CPU is judged by group, not by node set.
    """

    title: str
    more: str = "higher"
    less: str = "lower"
    subjects: tuple[str, ...] = ()


def _time(title: str) -> Figure:
    return Figure(title, "slower", "faster")


FIGURES: dict[str, Figure] = {
    **{f"latency_{at}": _time(f"latency {at}") for at in ("mean", "p50", "p99")},
    **{f"round_trip_{at}": _time(f"round trip {at}") for at in ("mean", "p50", "p99")},
    "latency_tagged": _time("latency of tagged frames"),
    "messages_lost": Figure("messages lost"),
    "messages_late": Figure("deadlines missed"),
    "messages_unanswered": Figure("requests unanswered"),
    "messages_duplicated": Figure("messages duplicated"),
    "interruption_until": Figure("recovery time", "slower", "faster"),
    "interruption_lost": Figure("messages lost in the interruption"),
    "transfer_rate": Figure("transfer rate"),
    "fairness": Figure("fairness of the transfers"),
    "throughput": Figure("throughput"),
    "frame_loss": Figure("frame loss"),
    "wire_rate": Figure("throughput on the wire", subjects=("capture",)),
    "link_dropped_share": Figure("packets dropped", subjects=("link",)),
    "cpu": Figure("CPU", subjects=("group",)),
}
Key = tuple[str, Of]
FINE = ("ms", "us", "s", "Mbit/s", "kB/s")  # units of fine measurements: two values are not equal by chance


def judged(name: str, of: Of) -> bool:
    """Returns whether comparisons judge the figure by default: it is in FIGURES and has one of the subjects
    that FIGURES requires.
    """
    known = FIGURES.get(name)
    return known is not None and (
        not known.subjects or any(getattr(of, field) is not None for field in known.subjects)
    )


def figure(name: str) -> Figure:
    """Returns the title and words of a figure from FIGURES; for another figure, its name with spaces,
    "higher" and "lower".
    """
    return FIGURES.get(name, Figure(name.replace("_", " ")))


def is_count(name: str, unit: str) -> bool:
    """Returns whether the figure counts chance events, such as losses: its unit is a counted one and it is no
    amount.
    """
    return unit in COUNTED and name not in AMOUNTS


def is_stepped(unit: str) -> bool:
    """Returns whether figures of this unit have few different values: counts, shares of counts, CPU
    in ticks.
    """
    return unit not in FINE


def keyed(metrics: list[Metric]) -> dict[Key, Metric]:
    """Returns the metrics of a run by name and subject, without fields that may differ between the sides.

    The delivery guarantee and the role of a group's software are left out if the subject is unique without
    them: a class is compared with the same class under another guarantee.
    """
    short = [(m.name, _short(m.of)) for m in metrics]
    often: dict[Key, int] = {}
    for key in short:
        often[key] = often.get(key, 0) + 1
    return {(key if often[key] == 1 else (m.name, m.of)): m for key, m in zip(short, metrics, strict=True)}


@cache
def _short(of: Of) -> Of:
    return replace(of, guarantee=None, role=None)


def subject(of: Of) -> dict[str, str | int]:
    """Returns the fields of the subject that are set, by name."""
    return {f.name: value for f in fields(of) if (value := getattr(of, f.name)) is not None}
