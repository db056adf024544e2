"""Defines the keys of the agent's HTTP/1.1, and checks and plans it: requests on kept connections or with a
connection for each, in plain text or by TLS, and a server that answers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from contract.plan import Flow, Guarantee, Software

from ..language.scalars import Base, Duration, Positive, text
from . import peers
from .checking import Checks, Here
from .kind import TCP_HEADERS_BYTES, TCP_SEGMENT_BYTES, Bind, Costs, Kind, Planned
from .messages import Request, check_messages, flow_words, flows, timeout_ns
from .scene import Placed, Scene
from .sending import expected_messages, rate_words, receivers_of_each
from .tls.checks import check_tls
from .tls.file import Tls
from .tls.lab import server_identity, trusted

PATTERNS = ("request",)
LARGEST_BYTES = 1 << 20
MOST_CONNECTIONS = 1000
GUARANTEE = Guarantee(
    "HTTP",
    "HTTP: a request that has left is not sent again, so no request arrives twice",
    single=True,
    while_session=True,
)
_CONNECTION_PACKETS = 8  # packets of the TCP handshake and end, with their acknowledgements
# bytes of the heads, without path and host, which are counted separately
_REQUEST_BYTES, _ANSWER_BYTES = 130, 90
# packets and bytes of the TLS handshake, for a chain of one certificate with an Ed25519 key
_TLS_PACKETS, _TLS_BYTES = 8, 2500
_RECORD_BYTES = 22  # bytes of a record's header, type and tag with AES-GCM in TLS 1.3 (RFC 8446, 5.2)


class HttpTls(Tls):
    """TLS of one side."""

    server_name: str | None = Field(
        None,
        min_length=1,
        description="Sending side: name in the server's certificate, sent as SNI too; by default its node.",
    )
    versions: list[Literal["1.2", "1.3"]] = Field(
        default_factory=lambda: list[Literal["1.2", "1.3"]](["1.2", "1.3"]),
        min_length=1,
        description="Sending side: versions of TLS that it offers.",
    )


HttpTlsKey = Annotated[
    HttpTls | None,
    BeforeValidator(
        lambda value: {} if value == "lab" else value,
        json_schema_input_type=HttpTls | Literal["lab"] | None,
    ),
    Field(description="Speak TLS: `lab` for certificates of the lab, or files of your own."),
]


class HttpOptions(peers.MarkedPeer):
    """HTTP/1.1; the node's agent implements the protocol and accounts for every request."""

    tls: HttpTlsKey = None
    request: Request | None = Field(None, description="Requests that each server answers.")
    path: str = Field(
        "/", pattern=r"^/[!-~]*$", max_length=1000, description="Path of the requests, with its query."
    )
    connections: Positive = Field(
        1,
        le=MOST_CONNECTIONS,
        description="Connections to each server, each with one request at a time; a further one opens when "
        "all others wait for answers.",
    )
    keep_alive: bool = Field(
        True, description="Keep a connection for further requests; no: one request each."
    )
    reconnect: Duration = Field(
        text("1 s"), description="Wait before a new attempt to connect; 0 s: never again."
    )
    queue: Positive = Field(
        1000, le=2**31 - 1, description="Requests that may wait for each connection; more are dropped."
    )


class Http(Base):
    """The software key `http`: a server or a client."""

    http: HttpOptions = Field(description="The side.")


_OF_SENDER = ("path", "connections", "keep_alive", "reconnect", "queue")


def _check(report: Checks, here: Here, model: Http) -> None:
    path, options = (*here.path, KIND.name), model.http
    peers.check_peer(report, here, options, KIND.name, PATTERNS)
    for key in _OF_SENDER:
        if options.listen is not None and key in options.model_fields_set:
            rule = "does not belong to the side that listens"
            report.add((*path, key), None, rule, "write it where `to` is")
    if options.request is not None:
        check_messages(report, here, options.request, (*path, "request"), LARGEST_BYTES)
    if options.tls is not None:
        _check_tls(report, options, options.tls, (*path, "tls"))
    if options.to is not None:
        _check_both_ends(report, options, path)


def _check_tls(report: Checks, options: HttpOptions, tls: HttpTls, path: tuple[str | int, ...]) -> None:
    check_tls(report, path, tls)
    here, there = ("listens", "sends") if options.listen is not None else ("sends", "listens")
    foreign = ("ca", "server_name", "versions") if options.listen is not None else ("cert", "key")
    for key in foreign:
        if key in tls.model_fields_set:
            rule = f"does not belong to the side that {here}"
            report.add((*path, key), None, rule, f"write it at the side that {there}")


def _check_both_ends(report: Checks, options: HttpOptions, path: tuple[str | int, ...]) -> None:
    nodes = {node for name in options.to or () for node in report.machines((*path, "to"), name)}
    if options.tls is not None and len(nodes) > 1:
        rule = "TLS to more than one server, each of which has a name of its own in its certificate"
        report.add((*path, "to"), None, rule, "write one software for each server")
    for node in sorted(nodes):
        found = [peers.options_of(one, KIND.name) for one in report.programs(node).values()]
        there = [one for one in found if one is not None and options.port in (None, one.listen)]
        for other in (one for one in there if one.listen is not None):
            if (other.tls is None) != (options.tls is None):
                speaks = "TLS only" if other.tls is not None else "no TLS"
                remedy = "write `tls: lab` here" if other.tls is not None else "write `tls: lab` there, too"
                report.add((*path, "tls"), None, f"the server of {node} speaks {speaks}", remedy)


def _plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    for placed in all_of_it:
        to = peers.targets(scene, placed)
        software = Software(
            placed.name,
            peers.role(placed),
            placed.kind,
            session=peers.session(scene, placed),
            spec=_spec(scene, placed, to),
            ports=_ports(placed, to),
        )
        receivers = {peers.set_name(placed): tuple(one.endpoint for one in to)} if to else {}
        yield Planned(
            software, tuple(flows(scene, placed, peers.deliveries(placed, to, GUARANTEE))), receivers
        )


def _spec(scene: Scene, placed: Placed, to: Sequence[peers.Target]) -> dict[str, Any]:
    options: HttpOptions = placed.model.http
    spec: dict[str, Any] = {
        **peers.spec(scene, placed, to),
        "timeout_ns": timeout_ns(placed),
        "nodelay": True,
        "http": {"path": options.path, "keep_alive": options.keep_alive},
    }
    if options.to is not None:
        spec |= {
            "reconnect_ns": options.reconnect,
            "queue": options.queue,
            "inflight": 1,
            "connections": options.connections,
        }
    if options.tls is not None and options.listen is not None:
        own = server_identity(scene, placed.node, options.tls)
        spec["accept_tls"] = {"cert": own.certificate, "key": own.key}
    elif options.tls is not None:
        node = next(node for name in options.to or () for node in scene.machines(name))
        spec["tls"] = {
            "ca": trusted(scene, options.tls),
            "server_name": options.tls.server_name or node,
            "versions": list(options.tls.versions),
        }
    return spec


def _ports(placed: Placed, to: Sequence[peers.Target]) -> dict[str, tuple[int, ...]]:
    """Returns the ports, by the reducer's name of the traffic on them."""
    options: HttpOptions = placed.model.http
    found = [options.listen] if options.listen is not None else [target.port for target in to]
    return {"tls" if options.tls is not None else KIND.name: tuple(sorted(set(found)))}


def _words(software: Software, sent: Sequence[Flow]) -> str:
    spec = software.spec
    tls = " over TLS" if "tls" in spec or "accept_tls" in spec else ""
    if spec["listen"] is not None:
        return f"HTTP{tls}, listens on port {spec['listen']}"
    count = spec["connections"]
    many = f", {count} connections" if count > 1 else ""
    each = "" if spec["http"]["keep_alive"] else ", a connection a request"
    return "; ".join([f"HTTP{tls}{many}{each}", *(flow_words(flow, rate_words(flow)) for flow in sent)])


def _costs(software: Software, sent: Sequence[Flow]) -> Costs:
    """Returns the costs at worst: each segment of requests and answers is acknowledged alone."""
    spec = software.spec
    to = len(spec["to"])
    if not to:
        return Costs()
    tls = "tls" in spec
    opened: float = to * spec["connections"]
    packets: list[tuple[float, int]] = []
    for flow in sent:
        each = receivers_of_each(flow, to) * expected_messages(flow)
        if not spec["http"]["keep_alive"]:
            opened += each
        reply = flow.reply.bytes if flow.reply is not None else 0
        heads = (_REQUEST_BYTES + len(spec["http"]["path"]), _ANSWER_BYTES)
        for octets in (heads[0] + flow.payload.bytes, heads[1] + reply):
            whole = octets + _RECORD_BYTES * tls
            count = each * -(-whole // TCP_SEGMENT_BYTES)
            length = TCP_HEADERS_BYTES + min(whole, TCP_SEGMENT_BYTES)
            packets += [(count, length), (count, TCP_HEADERS_BYTES)]
    packets.append((opened * _CONNECTION_PACKETS, TCP_HEADERS_BYTES))
    if tls:
        packets.append((opened * _TLS_PACKETS, TCP_HEADERS_BYTES + _TLS_BYTES // _TLS_PACKETS))
    files = {"server": spec["connections"]}
    return Costs(files_at=files, peers=to, packets=tuple(packets))


KIND = Kind(
    name="http",
    key="http",
    model=Http,
    what="HTTP requests",
    example="http: {listen: 80}",
    check=_check,
    plan=_plan,
    words=_words,
    costs=_costs,
    ramp=lambda model: None if model.http.listen is not None else 1,
    binds=lambda model: (Bind("tcp", model.http.listen, ("http", "listen")),) if model.http.listen else (),
    titles={"HttpOptions": "software.NAME.http: HTTP requests", "HttpTls": "http.tls"},
)
