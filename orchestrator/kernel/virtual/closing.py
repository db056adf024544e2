"""Finds, before a lab starts, why a plan cannot run in virtual time: missing files of programs, software,
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from contract.plan import Plan
from orchestrator.kernel.protocol import KernelError
from orchestrator.kernel.uml import boot
from orchestrator.kernel.uml.outer import available_bytes
from orchestrator.kernel.virtual.root.closed import ClosedRoot
from orchestrator.kernel.virtual.root.unclosed import Unclosed, Unfound
from orchestrator.kernel.virtual.root.wanted import TIMELINE
from orchestrator.language.problem import Problem, TopologyError, shown
from orchestrator.language.source import Document, read_document
from orchestrator.language.source import Path as Keys
from orchestrator.software.registry import KINDS
from orchestrator.topology.loading import read_bytes

MIB = 1 << 20
LEAVE_OUT = "leave --time virtual out"


class Rooted(Protocol):
    """The part of a kernel in virtual time that this module needs: a plan's closed root, and the memory for
    it.
    """

    def root(self, plan: Plan, agent: Path | None) -> ClosedRoot:
        """Returns the closed root of the plan's lab; raises Unclosed if there is none."""
        ...

    def memory(self, plan: Plan, archives: int) -> int:
        """Returns the memory limit (bytes) of a lab whose archives of files have `archives` bytes."""
        ...


def problems(plan: Plan, kernel: Rooted, agent: Path | None) -> list[Problem]:
    """Returns problems of programs whose files cannot be found, or else of memory. Builds the lab's root
    unless it exists.
    """
    try:
        root = kernel.root(plan, agent)
    except Unclosed as error:
        return list(_located(plan, error))
    try:
        return list(_memory(plan, kernel, root))
    except KernelError as error:  # the memory is too small, or the directory for it is missing
        rule, _, remedy = str(error).rpartition("; ")
        return [Problem(plan.topology, 0, "memory", _nodes(plan), rule, remedy)]


def real_time_only(plan: Plan) -> Iterator[Problem]:
    """Yields a problem for each software whose kind needs real time, since its figures are meaningless in
    virtual time.
    """
    for node in plan.nodes:
        for one in node.software:
            if why := KINDS[one.kind].real_time:
                place = f"nodes.{node.name}.software.{one.name}"
                yield Problem(plan.topology, 0, place, one.kind, f"needs real time: {why}", LEAVE_OUT)


def _located(plan: Plan, error: Unclosed) -> Iterator[Problem]:
    """Yields the problems with their places in the topology file; without a document if the file cannot be
    read.
    """
    try:
        document = read_document(plan.topology, read_bytes(Path(plan.topology)))
    except TopologyError:
        document = Document(plan.topology, {}, {})
    for one in error.found:
        yield document.problem(_keys(document.data, one), shown(one.value), one.rule, one.remedy)


def _keys(data: Any, one: Unfound) -> Keys:
    """Returns the path of a key in the file's data; finds an event by its label or its command."""
    if not one.key.startswith(f"{TIMELINE}."):
        return tuple(one.key.split("."))
    label = one.key.removeprefix(f"{TIMELINE}.")
    events = data.get(TIMELINE) if isinstance(data, dict) else None
    for number, event in enumerate(events if isinstance(events, list) else []):
        run = event.get("run") if isinstance(event, dict) else None
        text = " ".join(map(str, run)) if isinstance(run, list) else str(run or "")
        if text and (event.get("label") == label or text[:30] in label):
            return (TIMELINE, number, "run")
    return (TIMELINE,)


def _memory(plan: Plan, kernel: Rooted, root: ClosedRoot) -> Iterator[Problem]:
    """Yields a problem if the lab's memory, which holds its root (twice during unpacking,
    docs/virtual-time.md), exceeds what is available. Raises KernelError if no directory can hold it.
    """
    lab, free = boot.memory_of(plan), available_bytes()
    needed = max(lab + root.bytes, 2 * root.bytes + boot.KERNEL_BYTES)
    remedy = f"close other programs, use fewer nodes, or {LEAVE_OUT}"
    if needed > boot.most(free):
        rule = (
            f"the lab may take {needed // MIB} MiB, {root.bytes // MIB} MiB of it the files that it sees, of "
            f"{free // MIB} MiB that are free (a quarter is left to the machine)"
        )
        yield Problem(plan.topology, 0, "memory", _nodes(plan), rule, remedy)
    else:
        boot.memory_directory(kernel.memory(plan, root.bytes))


def _nodes(plan: Plan) -> str:
    return f"{len(plan.nodes)} node{'s' * (len(plan.nodes) != 1)}"
