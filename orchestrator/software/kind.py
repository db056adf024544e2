"""Defines the interface of a kind of software to the rest of vNET: its keys in files, checks, plan, costs and
load. The module `registry` lists the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contract.plan import Flow, Note, Program, Software

from ..language.scalars import Base
from .checking import Checks, Here
from .foreign import Foreign
from .scene import Placed, Scene

UDP_BYTES = 8  # the header of UDP alone
UDP_HEADERS_BYTES = 42  # before a payload: Ethernet 14, IPv4 20, UDP 8
TCP_SEGMENT_BYTES = 1448  # payload at an MTU of 1500
TCP_HEADERS_BYTES = 66  # Ethernet 14, IPv4 20, TCP 20 and timestamps 12


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of one piece of software: the flows that it sends, the endpoints of each set of receivers that
    these flows name, and notes for the user.
    """

    software: Software
    flows: tuple[Flow, ...] = ()
    receivers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # sets that `flows` name
    notes: tuple[Note, ...] = ()
    relay: str | None = None  # the node that relays its messages
    # receivers that represent a group -> its endpoints, of which each message reaches one
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Costs:
    """The resources that one piece of software uses beside its node's agent: memory, open files, neighbours
    and packets.
    """

    memory_bytes: int = 0  # memory of the software's program and, because of it, of other programs
    files_at: Mapping[str, int] = field(
        default_factory=dict
    )  # role of the other end, and which -> open files there
    peers: int = 0  # nodes that it talks to
    one_copy: bool = False  # multicast: a message leaves once, however many receivers it has
    packets: tuple[
        tuple[float, int], ...
    ] = ()  # (frames, bytes of each) at a point that sees all of its traffic


@dataclass(frozen=True, slots=True)
class Offered:
    """An upper bound of the messages that a flow sends when only the clock decides: at most `burst` at once
    and `per_s` per second (a leaky bucket). If `per_s` is None, the flow's schedule gives both.
    """

    message_bytes: int  # above Ethernet; of IP without its header, which each fragment has
    reply_bytes: int = 0
    over_ip: bool = True
    pcp: int | None = None  # priority in the tag, for frames without IP
    per_s: float | None = None
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Shares:
    """The classes of one link whose rates a program on its sending node changes while the program runs."""

    link: str
    least_bps: Mapping[str, int]  # class -> rate below which it never falls
    itself: frozenset[str] = frozenset()  # classes whose packets the program itself forwards


@dataclass(frozen=True, slots=True)
class Ledger:
    """All flows of a plan, each numbered by its place in `flows`, and for each endpoint the numbers of the
    flows that it receives.
    """

    flows: tuple[Flow, ...]
    numbers: Mapping[str, int]  # by the flow's name
    to: Mapping[str, tuple[int, ...]]  # endpoint -> flows of which it gets messages

    @classmethod
    def of(cls, flows: Sequence[Flow], receivers: Mapping[str, tuple[str, ...]]) -> Ledger:
        """Numbers the flows in order; `receivers` holds the endpoints of each set that the flows name."""
        to: dict[str, list[int]] = {}
        for number, flow in enumerate(flows):
            for endpoint in (name for d in flow.deliveries for name in receivers[d.receivers]):
                to.setdefault(endpoint, []).append(number)
        numbers = {flow.name: number for number, flow in enumerate(flows)}
        return cls(tuple(flows), numbers, {name: tuple(found) for name, found in to.items()})


@dataclass(frozen=True, slots=True)
class Bind:
    """A port that software listens on; `key` is the path of its setting in the file, below the software's
    name. `remedy` is the remedy in the error if other software of the node has the port.
    """

    transport: str  # "tcp" or "udp", whose ports are apart
    port: int
    key: tuple[str, ...]
    remedy: str = "choose another port"


class SoftwareError(ValueError):
    """Raised if the software of a node cannot be planned, for instance because a template fails on its
    values.
    """

    def __init__(self, node: str, rule: str, remedy: str) -> None:
        super().__init__(f"{node}: {rule}; {remedy}")
        self.node, self.rule, self.remedy = node, rule, remedy


def _no_costs(_software: Software, _flows: Sequence[Flow]) -> Costs:
    return Costs()


def _closed_loop(_software: Software, _flow: Flow) -> Offered | str:
    return "its transport or program decides when packets leave"


def _no_shares(_software: Software) -> Shares | None:
    return None


@dataclass(frozen=True)
class Kind:
    """The registry entry of one kind of software. Its functions take the model that was read from the file,
    or the planned software of this kind.
    """

    name: str  # key of the registry; `Software.kind` of the plan
    key: str  # key in the file, which selects this kind (or another one with the same key)
    model: type[Base]
    what: str  # with its article: "a command"
    example: str  # example of the software, one line of a file
    check: Callable[[Checks, Here, Any], None]
    plan: Callable[[Scene, Sequence[Placed]], Iterable[Planned]]  # all of this kind in the lab, at once
    words: Callable[[Software, Sequence[Flow]], str]  # the software and its flows, for people
    costs: Callable[[Software, Sequence[Flow]], Costs] = _no_costs
    offers: Callable[[Software, Flow], Offered | str] = _closed_loop  # or the reason why no bound is known
    shares: Callable[[Software], Shares | None] = _no_shares
    in_agent: bool = True  # the node's agent runs it, so that it cannot be started and stopped alone
    endpoint: Callable[[Any], bool] = lambda _model: True  # returns whether records name the software
    # Order in the ramp: software that only receives connects first (0), then senders (1); None: neither.
    ramp: Callable[[Any], int | None] = lambda _model: None
    binds: Callable[[Any], Sequence[Bind]] = lambda _model: ()
    # Priority code points by which the software itself orders frames.
    serves: Callable[[Any], frozenset[int]] = lambda _model: frozenset()
    sessions: Callable[[Any], int] = lambda _model: 1  # clients of the agent that the software stands for
    numbered: Callable[[Software, Ledger], Software] = lambda software, _ledger: software
    programs: tuple[Program, ...] = ()
    real_time: str = ""  # why it runs in real time only, where it does
    foreign: Foreign | None = None  # the same program in other tools' files
    titles: Mapping[str, str] = field(default_factory=dict)  # models of it -> sections of the reference page
    notes: str = ""  # further words of the reference page, Markdown
