"""Defines the registry entry of routers: their checks, description for readers, costs and programs."""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Program, Software

from ...language.source import Path
from ...language.templates import fault
from ..checking import Checks, Here
from ..kind import Bind, Costs, Kind
from .file import Frr, Router
from .foreign import FOREIGN
from .planning import plan

# PSS of the daemons of six routers in one lab (FRR 8.4); daemons that are not listed count as the largest
# one.
MEMORY_BYTES = {"zebra": 9_000_000, "ospfd": 5_000_000}
OTHERS_BYTES = 13_000_000
SECOND = 10**9
_TIMERS = (("ospf", "hello"), ("ospf", "dead"), ("bgp", "keepalive"), ("bgp", "hold"), ("bgp", "connect"))
BGP_PORT = 179
ZEBRA = "/usr/lib/frr/zebra"  # the program is not in a directory of the PATH
IMAGE = "builtin-router"  # the built-in image with FRR: images/guest/recipes.toml


def _check(report: Checks, here: Here, router: Router) -> None:
    wanted, path = router.frr, (*here.path, KIND.name)
    node = here.nodes[0]
    if not report.forwards(node):
        report.add(path, None, f"{node} does not forward", f"write `forward: true` at {here.path[1]}")
    if report.routing != "none":
        rule = f"is to find the routes, and the plan does (routing: {report.routing})"
        report.add(path, None, rule, "write `routing: none` at the top of the file")
    image = report.image(node)
    if image is not None and image.startswith("builtin") and image != IMAGE:
        rule = f"the image {image} has no such daemons"
        remedy = "write `image: builtin-router` (`vnet images build builtin-router`), or `kind: light`"
        report.add(path, None, rule, remedy)
    if sum(isinstance(model, Router) for model in report.programs(node).values()) > 1:
        report.add(path, None, "a node has one router", "write all protocols in one `frr`")
    _content(report, wanted, path)
    for protocol, key in _TIMERS:
        options = getattr(wanted, protocol)
        if options is not None:
            _timer(report, getattr(options, key), (*path, protocol, key))
    if wanted.ospf is not None and wanted.ospf.dead <= wanted.ospf.hello:
        rule = "is not more than `hello`: every neighbour would count as lost before its next hello"
        report.add((*path, "ospf", "dead"), None, rule, "write for example four times `hello`")
    if wanted.bgp is not None and wanted.bgp.hold < 3 * wanted.bgp.keepalive:
        rule = "is less than three times `keepalive` (RFC 4271, 10)"
        report.add((*path, "bgp", "hold"), None, rule, "write three times `keepalive`")


def _content(report: Checks, wanted: Frr, path: Path) -> None:
    ours = [key for key in ("ospf", "bgp", "router_id") if getattr(wanted, key) is not None]
    if wanted.config is None:
        if wanted.ospf is None and wanted.bgp is None:
            report.add(path, None, "states no protocol", "write `ospf: {}`, `bgp: {as: 65001}` or `config:`")
        return
    for key in [*ours, *(["ecmp"] if wanted.ecmp else [])]:
        rule = "does not go with a configuration of your own"
        report.add((*path, key), None, rule, "write it in `config`, or leave `config` out")
    if wrong := fault(wanted.config):
        remedy = "see jinja2; a literal {{ is written {{ '{{' }}"
        report.add((*path, "config"), None, f"is not a template ({wrong})", remedy)


def _timer(report: Checks, value: int, path: Path) -> None:
    if value % SECOND or not 1 <= value // SECOND <= 65535:
        rule = "is not a whole number of seconds from 1 to 65535"
        report.add(path, f"{value / SECOND:g} s", rule, 'write for example "1 s"')


def _words(software: Software, _flows: Sequence[Flow]) -> str:
    assert software.process is not None
    return f"router, {software.process.env['DAEMONS'].replace(' ', ', ')} of FRR"


def _costs(software: Software, _flows: Sequence[Flow]) -> Costs:
    assert software.process is not None
    daemons = software.process.env["DAEMONS"].split()
    return Costs(memory_bytes=sum(MEMORY_BYTES.get(one, OTHERS_BYTES) for one in daemons))


KIND = Kind(
    name="frr",
    key="frr",
    model=Router,
    what="a router's daemons",
    example="frr: {ospf: {hello: 1 s, dead: 4 s}}",
    check=_check,
    plan=plan,
    words=_words,
    costs=_costs,
    in_agent=False,
    endpoint=lambda _model: False,
    binds=lambda router: (Bind("tcp", BGP_PORT, ("frr", "bgp")),) if router.frr.bgp is not None else (),
    programs=(Program(ZEBRA, "frr", (ZEBRA, "--version"), "topologies with FRR's routers fail in plan"),),
    foreign=FOREIGN,
    titles={"Router": "software.NAME: a router", "Frr": "frr", "Ospf": "frr's ospf", "Bgp": "frr's bgp"},
)
