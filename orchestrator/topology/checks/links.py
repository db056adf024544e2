"""Checks links: ends, directions, keys that fit the ends, duplicates, loops without a spanning tree,
names.
"""

from __future__ import annotations

from ...language.source import Path
from ..network import Link
from .report import Report


def check(report: Report) -> None:
    """Checks each link's ends, directions and keys, second links between the same ends, loops of segments
    without `stp`, and names that after expansion equal another link's or a segment's.
    """
    seen: dict[tuple[str, str], str] = {}
    for name, link in report.model.links.items():
        path = ("links", name, "between")
        _directions(report, name, link)
        _keys(report, name, link)
        if not _ends(report, link, path) or name in report.names.wires:
            continue
        for pair in _wires(report, link):
            if pair in seen:
                report.add(
                    path,
                    None,
                    f"the link {seen[pair]} already joins {pair[0]} and {pair[1]}",
                    "keep one link",
                )
                break
            seen[pair] = name
    _loops(report)
    _names(report)


def _wires(report: Report, link: Link) -> list[tuple[str, str]]:
    a, b = link.between
    if a in report.model.segments:
        return [(min(a, b), max(a, b))]
    return [(node, b) for node in report.names.groups.get(a, (a,))]


def _directions(report: Report, name: str, link: Link) -> None:
    if link.both is not None and (link.forward is not None or link.reverse is not None):
        rule = "conflicts with forward or reverse"
        report.add(("links", name, "both"), None, rule, "write either both, or forward and reverse")


def _keys(report: Report, name: str, link: Link) -> None:
    if name in report.names.wires:
        return
    for key in ("subnet", "cost", "mtu"):
        if (value := getattr(link, key)) not in (None, []) and not report.broken("nodes"):
            rule = "belongs to a link between two nodes"
            remedy = "write it at the segment" if key != "cost" else "leave it out"
            value = " and ".join(value) if key == "subnet" else value
            report.add(("links", name, key), value, rule, remedy)


def _ends(report: Report, link: Link, path: Path) -> bool:
    a, b = link.between
    segments = report.declared("segments")
    machines = report.declared("nodes") | report.declared("groups")
    if a in report.names.nodes and b in report.names.nodes:
        return _wire(report, link, path)
    if {a, b} & (report.broken("nodes") | report.broken("groups")):
        return False
    if a not in segments | machines:
        known = segments | machines
        report.unknown((*path, 0), a, "segment, node or group", known | _some(report, a))
        return False
    if b not in segments and (b in machines or b in report.names.nodes):
        if a in segments:
            rule, remedy = "the second end of a link is a segment, or both are nodes", f"write [{b}, {a}]"
        else:
            group = b if b in report.names.groups else a
            rule = f"{group} is a group; a link between nodes joins two single ones"
            remedy = f"name its members, for example {group}1, each in a link of its own"
        report.add((*path, 1), b, rule, remedy)
        return False
    if b not in segments:
        report.unknown((*path, 1), b, "segment", segments)
        return False
    if a == b:
        report.add(path, a, "joins a segment to itself", "name two segments")
        return False
    return _on_segment(report, a, b, path)


def _some(report: Report, name: str) -> set[str]:
    """Returns up to 50 members of the group that the name seems to belong to, for a remedy."""
    return set(report.names.groups.get(name.rstrip("0123456789"), ())[:50])


def _wire(report: Report, link: Link, path: Path) -> bool:
    a, b = link.between
    if a == b:
        report.add(path, a, "joins a node to itself", "name two nodes")
        return False
    if path[1] in report.model.segments:
        rule = "is a link between two nodes and a segment, too"
        report.add(path[:2], path[1], rule, f"rename the link, for example {path[1]}-link")
    if link.nics is not None:
        rule = "stands at a link between two nodes"
        report.add((*path[:2], "nics"), None, rule, "give each node a `nic:` of its own, on a segment")
    return True


def _on_segment(report: Report, a: str, b: str, path: Path) -> bool:
    machine = report.model.nodes.get(a) or report.model.groups.get(a)
    if machine is None:
        return a in report.model.segments and b in report.model.segments
    if b not in machine.segment:
        listed = ", ".join(machine.segment)
        report.add((*path, 1), b, f"{a} is not on this segment", f"write one of its own: {listed}")
        return False
    return True


def _loops(report: Report) -> None:
    root = {name: name for name in report.model.segments}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    pairs: set[frozenset[str]] = set()
    every: list[tuple[Path, list[str]]] = []
    for name, link in report.model.links.items():
        every.append((("links", name, "between"), link.between))
        every += [(("links", name, "trunk", vlan), pair) for vlan, pair in link.trunk.items()]
    for path, (a, b) in every:
        if a not in root or b not in root or a == b or frozenset((a, b)) in pairs:
            continue
        pairs.add(frozenset((a, b)))
        if find(a) == find(b) and not report.model.segments[a].stp:
            rule = "closes a loop of segments; without spanning tree its frames would circle for ever"
            remedy = "remove one link of the loop, or write `stp: true` at its segments"
            report.add(path, None, rule, remedy)
        root[find(b)] = find(a)


def _names(report: Report) -> None:
    seen: dict[str, str] = {}
    for link, expanded in report.names.links.items():
        for name in expanded:
            if name in report.names.media and link != name:
                rule = f'its link "{name}" would have the same name as the medium of segment {name}'
                report.add(("links", link), None, rule, "rename the link")
            if name in seen:
                rule = f'its link "{name}" would have the same name as one of link {seen[name]}'
                report.add(("links", link), None, rule, "rename the link")
                break
            seen[name] = link
