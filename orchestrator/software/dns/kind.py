"""Enters name servers in the registry: checks, the configuration of dnsmasq, description for readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contract.plan import Flow, Software

from ...language.source import Path
from ..checking import Checks, Here, joined, light
from ..dnsmasq import MEMORY_BYTES, PROGRAM, server
from ..kind import Bind, Costs, Kind, Planned
from ..scene import Placed, Scene
from .file import LONGEST, Dns, DnsOptions

PORT = 53


def _check(report: Checks, here: Here, model: Dns) -> None:
    options, path = model.dns, (*here.path, KIND.name)
    light(report, here, path, "whose image has no dnsmasq")
    if options.domain is None and not options.names and options.forward is None:
        report.add(path, None, "knows no name", "write `domain: plant.test`, `names:` or `forward: NODE`")
    for name, node in options.names.items():
        report.node((*path, "names", name), node)
    if options.domain is not None:
        _domain(report, path, options, options.domain)
    if options.ttl % 10**9:
        rule = "is not a whole number of seconds"
        report.add((*path, "ttl"), f"{options.ttl / 1e9:g} s", rule, 'write for example "60 s"')
    if options.forward is not None and report.node((*path, "forward"), options.forward):
        _forward(report, here, options.forward)


def _domain(report: Checks, path: Path, options: DnsOptions, domain: str) -> None:
    """Reports names that `domain` gives to a node already, and a domain too long for a node's name."""
    everyone = list(report.everyone)
    for node in everyone:
        name = f"{node}.{domain}"
        if (other := options.names.get(name)) is not None:
            rule = f"is the name of {node} by `domain`" + (
                f", not of {other}" if other != node else " already"
            )
            report.add((*path, "names", name), name, rule, "leave it out, or choose another name")
    longest = max(everyone, key=len)
    if len(longest) + 1 + len(domain) > LONGEST:
        rule = f"makes {longest}.DOMAIN longer than {LONGEST} characters (RFC 1035, 2.3.4)"
        report.add((*path, "domain"), domain, rule, 'write for example "plant.test"')


def _forward(report: Checks, here: Here, to: str) -> None:
    path = (*here.path, KIND.name, "forward")
    asked, first = [to], to
    while (options := _options(report, asked[-1])) is not None:
        if asked[-1] in here.nodes:
            rule = "asks itself" if first in here.nodes else f"is asked by {first}: a question would go round"
            report.add(path, first, rule, "name a node whose `dns` has the names itself")
            return
        if options.forward is None or options.forward in asked or options.forward not in set(report.everyone):
            break
        asked.append(options.forward)
    if _options(report, first) is None:
        remedy = "write `software: {dns: {dns: {domain: lab.test}}}` there"
        report.add(path, first, f"{first} is no name server", remedy)
        return
    joined(report, here, path, first, first)


def _options(report: Checks, node: str) -> DnsOptions | None:
    return next((one.dns for one in report.programs(node).values() if isinstance(one, Dns)), None)


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        options: DnsOptions = placed.model.dns
        records = _records(scene, placed, options)
        process = server(placed, _config(scene, placed, records))
        count = len({name for name, _ in records})
        spec = {"domain": options.domain, "names": count, "forward": options.forward}
        yield Planned(Software(placed.name, "server", placed.kind, process, spec=spec))


def _records(scene: Scene, placed: Placed, options: DnsOptions) -> list[tuple[str, str]]:
    """Returns (name, address) for each name; a node's address is the one that this server's node reaches. In
    dual stack a name has one of each family that both nodes have.
    """
    named = [(name, node) for name, node in options.names.items()]
    if options.domain is not None:
        named += [(f"{node}.{options.domain}", node) for node in scene.interfaces]
    return [
        (name, address)
        for name, node in named
        for address in dict.fromkeys(
            (scene.address(node, placed.node), *scene.both_addresses(node, placed.node))
        )
    ]


def _config(scene: Scene, placed: Placed, records: Sequence[tuple[str, str]]) -> list[str]:
    """Returns dnsmasq's configuration (dnsmasq(8))."""
    options: DnsOptions = placed.model.dns
    lines = [
        f"port={PORT}",
        "no-resolv",
        "no-hosts",
        f"local-ttl={options.ttl // 10**9}",
        *(f"host-record={name},{address}" for name, address in records),
    ]
    if options.domain is not None:
        lines.append(f"local=/{options.domain}/")  # other names of the domain do not exist
    if options.forward is not None:
        lines.append(f"server={scene.address(options.forward, placed.node)}")
    return lines


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    spec = software.spec
    asks = f", asks {spec['forward']} for others" if spec["forward"] else ""
    return f"name server, {spec['names']} names{asks}"


_ONE = "leave one of them out: a node has one name server, with all names"
KIND = Kind(
    name="dns",
    key="dns",
    model=Dns,
    what="a name server",
    example="dns: {domain: plant.test}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=lambda _software, _flows: Costs(MEMORY_BYTES),
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda _model: tuple(Bind(transport, PORT, ("dns",), _ONE) for transport in ("udp", "tcp")),
    programs=(PROGRAM,),
    titles={"DnsOptions": "software.NAME.dns: a name server"},
)
