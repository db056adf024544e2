"""Implements `vnet apply`, which changes a running lab to the present content of its file: it prints the
difference as a plan, then makes each change. If a change is impossible in a running lab, it refuses the file
before it changes anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.control import Control, ControlError
from orchestrator.cli.errors import FAILED, CliError
from orchestrator.cli.nodes import several
from orchestrator.cli.output import json_option, note, print_json
from orchestrator.cli.running import asked, by, connect
from orchestrator.cli.topologies import file_argument, lab_option, parameters_option

if TYPE_CHECKING:
    from contract.plan import Impairment, Node, Plan

SIDES = ("forward", "reverse")
SETTINGS = ("hostname", "cpu_limit_mhz", "cpu_limit_cores")  # keys of the operation `set`, besides the MTU


@dataclass(frozen=True)
class Change:
    """A request to the lab: its operation, its fields, and the change in words."""

    op: str
    fields: dict[str, Any]
    words: str


@click.command("apply")
@file_argument
@parameters_option
@lab_option
@click.option("--dry-run", is_flag=True, help="Print the changes, and make none.")
@json_option
def apply_command(
    file: Path, parameters: dict[str, str], lab: str | None, dry_run: bool, as_json: bool
) -> None:
    """Change the running lab of FILE to what FILE says now: links, MTU, CPU limits, host names, nodes.

    It prints each change before it makes any. Programs, segments, captures and addresses of a running lab
    stay: a file that changes them is refused as a whole.

    \b
    Example:  vnet up topologies/pair.yaml
              vnet apply topologies/pair.yaml -p delay=50ms
              vnet apply topologies/pair.yaml --dry-run
    """
    from contract.rundir import read_plan
    from orchestrator.plan.build import make_plan
    from orchestrator.topology import load

    wanted = make_plan(load(file, parameters), lab)
    with connect(wanted.lab) as control:
        before = read_plan(Path(asked(control, "status")["run_dir"]))
        now = asked(control, "inspect")
        if refused := list(fixed(before, wanted, now)):
            remedy = f"undo that in {file}, or `vnet down {wanted.lab}` and `vnet up {file}`"
            raise CliError("\n".join(f"{file}: {one}; a running lab keeps it; {remedy}" for one in refused))
        changes = difference(before, wanted, now)
        for change in changes if not as_json else ():
            note(change.words)
        if not dry_run:
            _make(control, changes)
    if as_json:
        found = [{"op": change.op, "change": change.words} for change in changes]
        print_json({"lab": wanted.lab, "changes": found, "made": not dry_run})
    elif not changes:
        note(f"lab {wanted.lab}: is as {file} says")
    else:
        done = "nothing was changed" if dry_run else "done"
        note(f"lab {wanted.lab}: {len(changes)} {'changes' if len(changes) > 1 else 'change'}, {done}")


def _make(control: Control, changes: list[Change]) -> None:
    for number, change in enumerate(changes):
        try:
            control.call(change.op, **change.fields, by=by("vnet apply"))
        except ControlError as error:
            made = f"made before it: {number} of {len(changes)} changes, which stay"
            raise CliError(f"{change.words}: {error} ({made})", FAILED) from error


def fixed(before: Plan, wanted: Plan, now: Mapping[str, Any]) -> Iterator[str]:
    """Yields each difference that a running lab cannot follow: its place, and the two values. before: the
    plan with which the lab began; now: the lab's answer to `inspect`.
    """
    if before.segments != wanted.segments:
        yield "segments: differ from those of the lab"
    if before.captures != wanted.captures:
        yield "captures: differ from those of the lab"
    known = {node.name: node for node in before.nodes}
    for node in wanted.nodes:
        if node.name in known and node.name in now["nodes"]:
            yield from _fixed_of(known[node.name], node)
    planned = {link.name: link for link in before.links}
    added = {node.name for node in wanted.nodes} - set(now["nodes"])
    for link in wanted.links:
        if link.name in planned:
            was = planned[link.name]
            traces = any(was.way(side).trace != link.way(side).trace for side in SIDES)
            if (was.kind, was.a, was.b, was.half_duplex) != (link.kind, link.a, link.b, link.half_duplex):
                yield f"links.{link.name}: joins other ends, or is half duplex on one side only"
            elif traces:
                yield f"links.{link.name}: has another trace"
        elif not {link.a, link.b} & added:
            yield f"links.{link.name}: is new, and the lab has no place for its impairment"
    gone = set(now["nodes"]) - {node.name for node in wanted.nodes}
    for name in sorted(planned.keys() - {link.name for link in wanted.links}):
        if planned[name].kind != "access" and not {planned[name].a, planned[name].b} & gone:
            yield f"links.{name}: is missing"


def _fixed_of(was: Node, node: Node) -> Iterator[str]:
    """Yields the differences between the same node in two plans, by the name of the plan's field."""
    alike = dict.fromkeys(SETTINGS)
    for one in dataclasses.fields(node):
        mine, theirs = (getattr(each, one.name) for each in (node, was))
        if one.name in alike or one.name == "neighbours":  # neighbours are added and removed with nodes
            continue
        if one.name == "interfaces":
            mine, theirs = ([dataclasses.replace(card, mtu=0) for card in cards] for cards in (mine, theirs))
        if mine != theirs:
            yield f"nodes.{node.name}: other {one.name.replace('_', ' ')}"
    for name in SETTINGS[1:]:
        if getattr(node, name) is None and getattr(was, name) is not None:
            yield f"nodes.{node.name}: no {name.replace('_', ' ')} any more, and the lab can only change it"


def difference(before: Plan, wanted: Plan, now: Mapping[str, Any]) -> list[Change]:
    """Returns the changes that take the lab from its present state to the plan: settings of nodes, links,
    nodes to remove, nodes to add. Raises CliError for new nodes that the lab cannot clone.
    """
    changes = [change for node in wanted.nodes for change in _settings(node, now["nodes"].get(node.name))]
    gone = [name for name in now["nodes"] if name not in {node.name for node in wanted.nodes}]
    changes += _links(wanted, now["links"], set(gone))
    if gone:
        changes.append(Change("remove", {"nodes": gone}, f"remove {several(gone)}"))
    return [*changes, *_added(before, wanted, now["nodes"])]


def _settings(node: Node, is_now: Mapping[str, Any] | None) -> Iterator[Change]:
    if is_now is None:
        return
    limits = is_now["limits"]
    present = {
        "hostname": is_now["hostname"],
        "cpu_limit_mhz": limits.get("cpu_mhz"),
        "cpu_limit_cores": limits.get("cpu_cores"),
    }
    fields = {
        name: value
        for name in SETTINGS
        if (value := getattr(node, name)) is not None and not _same(value, present[name])
    }
    mtus = {card.mtu for card in node.interfaces}
    if len(mtus) == 1 and mtus != {card["mtu"] for card in is_now["interfaces"]}:
        fields["mtu"] = mtus.pop()
    if fields:
        words = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in fields.items())
        yield Change("set", {"nodes": [node.name], **fields}, f"set {node.name}: {words}")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-3 * abs(one)  # a quota is a whole number of microseconds
    return bool(one == other)


def _links(wanted: Plan, now: Mapping[str, Any], gone: set[str]) -> Iterator[Change]:
    from contract.codec import build
    from contract.plan import Impairment
    from orchestrator.plan.netem import sized

    planned = {link.name: link for link in wanted.links}
    plain = sized(Impairment(), None)
    for name, is_now in now.items():
        if {is_now["a"], is_now["b"]} & gone:
            continue
        link, fields, words = planned.get(name), dict[str, Any](), list[str]()
        for side in SIDES:
            target = link.way(side).impairment if link is not None else plain
            present = build(Impairment, is_now[side]["requested"])
            if target != present and (target.present or present.present):
                fields[side] = dataclasses.asdict(target)
                words.append(f"{side} {_words(present)} -> {_words(target)}")
        if is_now["down"]:
            fields["up"] = True
            words.append("up")
        if fields:
            yield Change("link", {"link": name, **fields}, f"link {name}: {'; '.join(words)}")


def _words(impairment: Impairment) -> str:
    from orchestrator.plan.summary import impairment_words

    return ", ".join(impairment_words(impairment)) or "plain wire"


def _added(before: Plan, wanted: Plan, now: dict[str, Any]) -> list[Change]:
    from orchestrator.cli.add import fields
    from orchestrator.plan.clone import CloneError, clones

    groups: dict[str, list[Node]] = {}
    for node in wanted.nodes:
        if node.name not in now:
            groups.setdefault(node.group, []).append(node)
    changes = []
    for group, nodes in groups.items():
        try:
            made = clones(before, now, group, len(nodes))
        except CloneError as error:
            raise CliError(f"add {nodes[0].name}: {error}") from error
        for node, clone in zip(nodes, made, strict=True):
            planned, found = (
                (one.name, *(a for card in one.interfaces for a in card.addresses))
                for one in (node, clone.node)
            )
            if planned != found:
                raise CliError(
                    f"add {' '.join(planned)}: the lab can only add {' '.join(found)}, the next of its group;"
                    f" `vnet down {wanted.lab}` and `vnet up` make the file's"
                )
            changes.append(Change("add", fields(clone), f"add {node.name}  {node.interfaces[0].address}"))
    return changes
