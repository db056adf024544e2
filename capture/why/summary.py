"""Sums the parts of messages by class: of all messages that arrived, and of the slowest hundredth."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from capture.why.answer import Answer, Run
from contract.verdict import HOLDS, OPEN

SLOW = 0.01  # share of a class's messages that counts as the slowest
DETAIL = re.compile(r", (sent|asked) .*")  # details in `where` that belong to single messages
NODE = re.compile(r"(node |(?<=of ))(?!link |segment )([^\s,]+)")  # in `where`: `node a`, `socket of a`


@dataclass(frozen=True, slots=True)
class Sum:
    """The total time that messages spent in one kind of part at one place. share: its share of the time of
    all parts.
    """

    what: str
    where: str
    total_ns: int
    share: float
    behind: dict[str, float]  # by sending node, the share of the bytes that passed while messages waited


@dataclass(frozen=True, slots=True)
class OfClass:
    """The parts of the latency of a class's messages. slow: messages from the 99th percentile on.

    lost: messages that were not received. unanswered: requests without a reply, including lost requests.
    """

    traffic_class: str
    messages: int
    lost: int
    p99_ns: int | None
    parts: tuple[Sum, ...]
    slow: tuple[Sum, ...]
    owners: dict[str, int]  # lost and unanswered messages by owner; "cannot tell" if the owner is not certain
    unanswered: int = 0

    @property
    def text(self) -> str:
        """Returns the largest part of the slowest messages as a sentence; empty if no message arrived."""
        if not self.slow or self.p99_ns is None:
            return ""
        most = self.slow[0]
        behind = f", behind {next(iter(most.behind))}" if most.behind else ""
        return (
            f"p99 of {self.traffic_class} is {self.p99_ns / 1e6:,.4g} ms: {most.share:.0%} of the slowest "
            f"messages' time is {most.what} ({most.where}{behind})"
        )


def by_class(run: Run, rows: pl.DataFrame) -> list[OfClass]:
    """Returns the sums of each class among rows of the run's messages, in order of the classes' names."""
    owed = rows.filter(pl.col("receiver").is_not_null())
    parts = owed.sort("class", "scheduled_ns").partition_by("class", maintain_order=True)
    return [_of_class(run, own) for own in parts]


def _of_class(run: Run, rows: pl.DataFrame) -> OfClass:
    arrived = rows.filter(pl.col("total_ns").is_not_null()).sort("total_ns", descending=True)
    slowest = arrived.head(math.ceil(SLOW * arrived.height))
    owners: dict[str, int] = {}
    gone = rows.filter(pl.col("total_ns").is_null())
    for answer in run.answers(gone):
        name = _owner(answer)
        owners[name] = owners.get(name, 0) + 1
    p99 = None if slowest.is_empty() else int(slowest["total_ns"][-1])
    groups = {node.name: node.group for node in run.plan.nodes if node.group != node.name}
    return OfClass(
        rows["class"][0], rows.height, gone["received_ns"].null_count(), p99,
        sums(run.answers(arrived), groups), sums(run.answers(slowest, behind=True), groups),
        dict(sorted(owners.items(), key=lambda one: -one[1])),
        int((gone["pattern"] == "request").sum()),
    )  # fmt: skip


def _owner(answer: Answer) -> str:
    found = answer.lost
    return found.owners[0] if found and found.verdict == HOLDS and found.owners else OPEN


def sums(answers: Iterable[Answer], groups: Mapping[str, str]) -> tuple[Sum, ...]:
    """Returns the sums of the parts of messages by kind and place, the longest first; the nodes of a group
    are one place.

    groups: the group of each node that belongs to one.
    """
    times: dict[tuple[str, str], int] = {}
    behind: dict[tuple[str, str], dict[str, int]] = {}
    for answer in answers:
        for part in answer.parts:
            key = part.what, _place(part.where, groups)
            times[key] = times.get(key, 0) + part.length_ns
            ahead = behind.setdefault(key, {})
            for node, size in part.behind.items():
                ahead[node] = ahead.get(node, 0) + size
    whole = sum(times.values())
    order = sorted(times.items(), key=lambda one: -one[1])
    return tuple(Sum(*key, ns, ns / whole if whole else 0.0, _shares(behind[key])) for key, ns in order)


def _place(where: str, groups: Mapping[str, str]) -> str:
    """Returns a part's place without details of single messages, with the node's group in place of
    the node.
    """
    return NODE.sub(
        lambda found: f"a node of {groups[found[2]]}" if found[2] in groups else found[0],
        DETAIL.sub("", where),
    )


def _shares(sizes: dict[str, int]) -> dict[str, float]:
    whole = sum(sizes.values())
    return {node: size / whole for node, size in sorted(sizes.items(), key=lambda one: -one[1])}
