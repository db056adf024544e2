"""Checks the timeline: one action for each event, existing targets, times inside their phase."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from ...language.source import Path
from ...language.units import text_ns
from ...software.command.file import Command
from ...software.registry import kind_of
from .. import profiles
from ..actions import ACTIONS, action_of
from ..document import Event
from ..impairments import Impairment
from ..phases import Phases
from ..selection import absent, select_all
from . import splits
from .nics import uncabled
from .report import Report

_LINKS = {"impair", "link_down", "link_up", "flap", "disconnect"}
_POWER = {"start", "stop", "kill", "restart"}
_NODES = {*_POWER, "freeze"}  # actions that may name one program of a node
LEAST_MEAN_NS = 10_000_000  # least mean of random times, which are drawn in whole milliseconds
MOST_CUTS = 1000  # largest number of cuts of one link, on average
MOST_STALL_NS = 1_000_000_000  # longest stop of a thread; the event `freeze` serves for longer ones
# Further keys by action.
_EXTRAS = {
    "both": {"impair"},
    "forward": {"impair"},
    "reverse": {"impair"},
    "duration": {
        "impair", "link_down", "disconnect", "partition", "split", "stop", "kill", "freeze", "disk_full",
        "schedule", "clock",
    },
    "down": {"flap", "disconnect"},
    "up": {"flap", "disconnect"},
    "times": {"flap"},
    "stall": {"schedule"},
    "offset": {"clock"},
    "software": _NODES,
    "on": {"run"},
    "cpu_limit": {"limit"},
}  # fmt: skip
# Actions that need the key `for`, each with an example of it.
_LASTING = {"partition": "10 s", "split": "10 s", "freeze": "2 s", "disk_full": "5 s"}
_SPELLED = {"duration": "for"}


def allowed() -> dict[str, list[str]]:
    """Returns the further keys of each action, both as files spell them."""
    return {
        spelled: [_SPELLED.get(key, key) for key, actions in _EXTRAS.items() if action in actions]
        for action, spelled in ACTIONS.items()
    }


def check(report: Report) -> None:
    """Checks every event: action, keys, targets and, if the phases' lengths are known, times. Also reports a
    file that has both `ramp` and `connect_interval`.
    """
    run = report.model.run
    if run.ramp is not None and run.connect_interval is not None:
        report.add(("run", "ramp"), None, "conflicts with connect_interval", "keep one of them")
    lengths = report.lengths
    for index, event in zip(report.events(), report.model.timeline, strict=True):
        path = ("timeline", index)
        action = action_of(event)
        if action is None:
            listed = ", ".join(ACTIONS.values())
            report.add(path, None, "an event has exactly one action", f"write one of {listed}")
            continue
        _extras(report, event, action, path)
        _targets(report, event, action, path)
        if not any(report.lost(section) for section in ("groups", "nodes", "run")):
            _times(report, event, lengths, path)


def check_action(report: Report, event: Event, action: str, path: Path) -> None:
    """Checks keys and targets of one event outside the timeline, whose time is unknown."""
    _extras(report, event, action, path)
    _targets(report, event, action, path)


def _extras(report: Report, event: Event, action: str, path: Path) -> None:
    for key, actions in _EXTRAS.items():
        if getattr(event, key) is not None and action not in actions:
            allowed = ", ".join(sorted(ACTIONS[name] for name in actions))
            rule = f"does not belong to {ACTIONS[action]}"
            report.add((*path, _SPELLED.get(key, key)), None, rule, f"it belongs to {allowed}")
    if action == "impair" and not any((event.both, event.forward, event.reverse)):
        report.add(path, None, "impair needs the new impairment", "write `both:`, `forward:` or `reverse:`")
    if action == "impair" and event.both and (event.forward or event.reverse):
        report.add(
            (*path, "both"), None, "conflicts with forward or reverse", "write either both, or the others"
        )
    if action == "flap" and event.down is None:
        report.add(path, None, "flap needs how long it is down", 'write `down: "1 s"`')
    if action == "disconnect":
        _disconnect(report, event, path)
    if action in _LASTING and event.duration is None:
        report.add(path, None, f"{ACTIONS[action]} needs its length", f'write `for: "{_LASTING[action]}"`')
    for key in ("duration", "down"):
        if getattr(event, key) == 0 and action in _EXTRAS[key]:
            report.add((*path, _SPELLED.get(key, key)), "0 s", "is not above zero", 'write for example "1 s"')
    if action == "clock" and not event.offset:
        shown = None if event.offset is None else "0 s"
        report.add((*path, "offset"), shown, "clock needs how far it is off", 'write `offset: "-3 s"`')
    if event.stall is not None and not 0 < event.stall <= MOST_STALL_NS:
        rule = "is not above zero and at most 1 s"
        report.add(
            (*path, "stall"), text_ns(event.stall), rule, "write `freeze:` to stop a program for longer"
        )
    if action == "run" and event.on is None:
        report.add(path, None, "run needs its nodes", "write `on: NODE`")
    if action == "limit" and event.cpu_limit is None:
        report.add(path, None, "limit needs the new limit", "write `cpu_limit: 0.5 cores`")


def _disconnect(report: Report, event: Event, path: Path) -> None:
    """Reports random cuts without their means and length, and those that would cut a link too many times."""
    if event.duration is None:
        report.add(path, None, "disconnect needs its length", 'write `for: "60 s"`')
    means = {"up": event.up, "down": event.down}
    for key, mean in means.items():
        if mean is None:
            rule = f"disconnect needs how long links are {key} on average"
            report.add(path, None, rule, f'write `{key}: "{20 if key == "up" else 2} s"`')
        elif mean < LEAST_MEAN_NS and (key, mean) != ("down", 0):  # another check reports a `down` of 0 s
            rule = "is less than 10 ms, and random times are whole milliseconds"
            report.add((*path, key), text_ns(mean), rule, 'write for example "1 s"')
    if event.up and event.down and (event.duration or 0) / (event.up + event.down) > MOST_CUTS:
        rule = f"would cut each link more than {MOST_CUTS} times"
        report.add(path, None, rule, "write a longer `up`, or a shorter `for`")


def _targets(report: Report, event: Event, action: str, path: Path) -> None:
    key = "on" if action == "run" else action
    targets: list[str] = getattr(event, key) or []
    spelled = ACTIONS.get(key, key)
    if any(report.broken(section) for section in ("groups", "nodes", "links", "segments")):
        return
    if action == "split":
        splits.check(report, event, path)
        return
    whole: list[str] = []
    for target in targets:
        if action in _LINKS:
            found = _known(report, target, "link", _link_names(report), report.names.links, (*path, spelled))
            if action == "impair":
                _duplex(report, event, found, path)
        elif action != "partition" or target not in report.model.segments:
            found = _known(
                report,
                target,
                "node or group",
                list(report.names.nodes),
                report.names.groups,
                (*path, spelled),
            )
            if event.software is not None:
                _runs(report, event.software, found, (*path, "software"))
            elif action in _POWER or action == "freeze":
                whole += found
            if action == "disk_full":
                _writes(report, found, (*path, spelled))
            if action in ("schedule", "clock"):
                _runs_programs(report, found, ACTIONS[action], (*path, spelled))
        elif not any(target in link.between for link in report.model.links.values()):
            report.add(
                (*path, spelled), target, "no link leads to this segment", "name one that a link joins"
            )
    _effect(report, action, whole, (*path, spelled))


def _effect(report: Report, action: str, nodes: list[str], path: Path) -> None:
    """Reports an event on whole nodes that affects none of them. Such an event ends or starts programs and
    VMs, and sets links down or up; roles inside an agent continue.
    """
    if not nodes or any(_has_program(report, node) for node in nodes):
        return
    if action == "freeze":
        rule = f"{nodes[0]} has no program, and its agent, which has its roles, is never frozen"
        report.add(path, nodes[0], rule, "write `partition: NODE` with `for:`, which cuts it off")
        return
    rule = f"{nodes[0]} has no program, and the roles of its agent cannot be stopped"
    if action == "restart":
        report.add(
            path, nodes[0], rule, "write `kill: NODE` with `for:`, which takes its links down meanwhile"
        )
    elif not any(_has_lab_link(report, node) for node in nodes):
        report.add(path, nodes[0], f"{rule}, nor can its NIC's link be cut", "leave the event out")


def _writes(report: Report, nodes: tuple[str, ...], path: Path) -> None:
    """Reports nodes whose file systems cannot be filled: virtual machines."""
    for node in nodes:
        if report.names.nodes[node].kind == "vm":
            rule = f"{node} is a machine with a disk of its own, which the lab cannot fill"
            report.add(path, node, rule, "write `run:` with a command that fills it, or name a light node")
            return


def _runs_programs(report: Report, nodes: tuple[str, ...], action: str, path: Path) -> None:
    """Reports nodes without a program if the event has no effect on the agent. Also reports programs that
    write their own records, whose times would come from a wrong clock.
    """
    for node in nodes:
        if not _has_program(report, node):
            rule = f"{node} has no program, and its agent, which has its roles, keeps the lab's {action}"
            report.add(path, node, rule, "name a node with a broker, a server or a command")
            return
        machine = report.names.nodes[node]
        own = [name for name, one in machine.software.items() if accounts(one)]
        if action == "clock" and own:
            rule = f"{own[0]} on {node} accounts for its messages, whose times would be of the wrong clock"
            report.add(path, node, rule, "name another node")
            return


def accounts(software: Any) -> bool:
    """Returns whether a program writes records of its own messages, with times of its node's clock."""
    return isinstance(software, Command) and bool(software.flows or software.receives)


def _has_program(report: Report, node: str) -> bool:
    machine = report.names.nodes[node]
    return machine.kind == "vm" or not all(kind_of(one).in_agent for one in machine.software.values())


def _has_lab_link(report: Report, node: str) -> bool:
    """Returns whether the lab can set a link of the node down: one to another node, or one to a segment."""
    wired = any(node in ends for ends in report.names.wires.values())
    return wired or not set(report.names.nodes[node].segment) <= uncabled(report, node)


def _duplex(report: Report, event: Event, found: tuple[str, ...], path: Path) -> None:
    """Reports an event's impairment that the duplex mode of a link or segment does not allow: different
    directions for half duplex, or a half-duplex profile for full duplex.
    """
    ways = (event.forward or event.both, event.reverse or event.both)
    half = next((way.profile for way in ways if way is not None and _is_half(report, way)), None)
    for name in set(found) & set(report.names.media) if ways[0] != ways[1] else ():
        rule = f"segment {name} is half duplex: its members share one transmitter"
        report.add(path, None, rule, "write `both:`")
    for name, link in report.model.links.items():
        if not set(report.names.links[name]) & set(found):
            continue
        if half is not None and link.duplex == "full":
            rule = f"profile {half} is half duplex, and link {name} is not, which no event changes"
            report.add(
                path, None, rule, f"write `duplex: half` at links.{name}, or the figures by themselves"
            )
        if link.duplex == "half" and ways[0] != ways[1]:
            rule = f"link {name} is half duplex: both directions share one transmitter"
            report.add(path, None, rule, "write `both:`")


def _is_half(report: Report, way: Impairment) -> bool:
    if way.profile is None:
        return False
    directory = FilePath(report.document.file).parent
    return bool(profiles.find(way.profile, directory).link.get("duplex") == "half")


def _link_names(report: Report) -> list[str]:
    return [name for names in report.names.links.values() for name in names] + [*report.names.media]


def _known(
    report: Report, target: str, what: str, names: list[str], groups: dict[str, tuple[str, ...]], path: Path
) -> tuple[str, ...]:
    found = select_all([target], names, groups)
    if not found:
        few = set(groups) | set(names[:50])
        report.unknown(path, target, what, few)
    elif (name := absent(target, names)) is not None:
        report.add(path, target, f"no {what} is called {name}", "end the range where the names end")
    return found


def _runs(report: Report, software: str, nodes: tuple[str, ...], path: Path) -> None:
    for node in nodes:
        known = set(report.names.nodes[node].software)
        if software not in known:
            report.unknown(path, software, f"software of {node}", known)
            return
        kind = kind_of(report.names.nodes[node].software[software])
        if kind.in_agent:
            rule = f"{kind.what} lives in its node's agent and cannot be stopped alone"
            report.add(path, software, rule, "leave `software` out, or take its link down")
            return


def _times(report: Report, event: Event, lengths: Phases, path: Path) -> None:
    at, length = event.at, lengths.length_ns(event.at.phase)
    if at.at_ns > length:
        rule = f"is after the end of {at.phase}, which lasts {text_ns(length)}"
        report.add(
            (*path, "at"), f"{at.phase} + {text_ns(at.at_ns)}", rule, "move the event, or lengthen the phase"
        )
        return
    end = lengths.start_ns(at.phase) + at.at_ns + _length(event)
    if end > lengths.end_ns:
        over = text_ns(end - lengths.end_ns)
        report.add(path, None, f"ends {over} after the run", "shorten it, or lengthen hold or drain")


def _length(event: Event) -> int:
    if event.flap is not None:
        times = event.times or 1
        return times * (event.down or 0) + (times - 1) * (event.up or 0)
    return event.duration or 0
