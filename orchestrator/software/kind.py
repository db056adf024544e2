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

UDP_BYTES = 8  # bytes of the UDP header
UDP_HEADERS_BYTES = 42  # bytes before a payload: Ethernet 14, IPv4 20, UDP 8
TCP_SEGMENT_BYTES = 1448  # bytes of payload at an MTU of 1500
TCP_HEADERS_BYTES = 66  # bytes before a payload: Ethernet 14, IPv4 20, TCP 20 and timestamps 12


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of one piece of software: the flows that it sends, the endpoints of each set of receivers that
    these flows name, and notes for the user.
    """

    software: Software
    flows: tuple[Flow, ...] = ()
    # name of a set in `flows` -> its receivers
    receivers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    relay: str | None = None  # the node that relays the flow's messages
    # receiver that stands for a group -> the endpoints of its members, one of which gets each message
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Costs:
    """The resources that one piece of software uses in addition to its node's agent: memory, open files,
    neighbours and packets.
    """

    memory_bytes: int = 0  # bytes that the software's program, and other programs because of it, need
    files_at: Mapping[str, int] = field(default_factory=dict)  # role and name of the other end -> open files
    peers: int = 0  # number of nodes with which the software exchanges packets
    one_copy: bool = False  # true for multicast: a message leaves once, however many receivers it has
    packets: tuple[
        tuple[float, int], ...
    ] = ()  # (number of frames, bytes of each) at a point that sees all of the software's traffic


@dataclass(frozen=True, slots=True)
class Offered:
    """An upper bound of the messages that a flow sends if only its schedule limits it: at most `burst` at
    once and `per_s` per second (a leaky bucket). If `per_s` is None, the flow's schedule gives both.
    """

    message_bytes: int  # bytes above Ethernet; for IP without its header, because each fragment has one
    reply_bytes: int = 0
    over_ip: bool = True
    pcp: int | None = None  # priority in the VLAN tag, for frames without IP
    per_s: float | None = None
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Shares:
    """The classes of one link whose rates a program on its sending node changes while the program runs."""

    link: str
    least_bps: Mapping[str, int]  # class -> rate below which the class never falls
    itself: frozenset[str] = frozenset()  # classes whose packets the program forwards itself


@dataclass(frozen=True, slots=True)
class Ledger:
    """All flows of a plan, each numbered by its place in `flows`, and for each endpoint the numbers of the
    flows that it receives.
    """

    flows: tuple[Flow, ...]
    numbers: Mapping[str, int]  # name of a flow -> its number
    to: Mapping[str, tuple[int, ...]]  # endpoint -> numbers of the flows whose messages it gets

    @classmethod
    def of(cls, flows: Sequence[Flow], receivers: Mapping[str, tuple[str, ...]]) -> Ledger:
        """Numbers the flows in order. `receivers` has the endpoints of each set of receivers that the flows
        name.
        """
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

    transport: str  # "tcp" or "udp"; each has ports of its own
    port: int
    key: tuple[str, ...]
    remedy: str = "choose another port"


class SoftwareError(ValueError):
    """Raised if the software of a node cannot be planned, for example because a template fails on
    its values.
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
    """The registry entry of one kind of software. Its functions get the model that was read from the file, or
    the planned software of this kind.
    """

    name: str  # name in the registry, and `Software.kind` in the plan
    key: str  # key in the file that selects this kind, or one of several kinds with this key
    model: type[Base]
    what: str  # the kind with its article: "a command"
    example: str  # example of the software, one line of a file
    check: Callable[[Checks, Here, Any], None]
    # The function plans all software of this kind in the lab at once.
    plan: Callable[[Scene, Sequence[Placed]], Iterable[Planned]]
    words: Callable[[Software, Sequence[Flow]], str]  # describes the software and its flows in words
    costs: Callable[[Software, Sequence[Flow]], Costs] = _no_costs
    # The function returns the offered load, or the reason why no bound is known.
    offers: Callable[[Software, Flow], Offered | str] = _closed_loop
    shares: Callable[[Software], Shares | None] = _no_shares
    in_agent: bool = True  # the node's agent runs it, so that it cannot be started and stopped alone
    # Function: returns whether records name the software.
    endpoint: Callable[[Any], bool] = lambda _model: True
    # Order in the ramp: software that only receives connects first (0), then senders (1); None: it does not
    # connect.
    ramp: Callable[[Any], int | None] = lambda _model: None
    binds: Callable[[Any], Sequence[Bind]] = lambda _model: ()
    # Priority code points by which the software itself orders frames.
    serves: Callable[[Any], frozenset[int]] = lambda _model: frozenset()
    # Function: number of the agent's clients for which the software stands.
    sessions: Callable[[Any], int] = lambda _model: 1
    numbered: Callable[[Software, Ledger], Software] = lambda software, _ledger: software
    programs: tuple[Program, ...] = ()
    real_time: str = ""  # why the software runs in real time only; "" if it does not
    foreign: Foreign | None = None  # how other tools' files describe the same program
    # Models of this kind -> sections of the reference page.
    titles: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""  # further text for the reference page, in Markdown
