"""Defines liars in a running lab in virtual time: programs of nodes that change queues, links and processes
without vNET's knowledge, and brokers that drop and double messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from liars.figures import Figures, figures
from liars.liar import Outcome, marks

NOTHING = "sleep 1; echo lied"
BROKER = Path(__file__).with_name("lying_broker.py").read_text()
LAB = """\
name: live
seed: 1
segments: {lan: {subnet: 10.94.0.0/24}}
nodes:
  a:
    software:
      tx: {udp: {to: [b], push: {size: 1000 B, rate: 50 /s, class: pushed}}}
      sneak: {start: ramp, at_end: exited, command: "A_DOES"}
  b:
    software:
      sink: {udp: {listen: 9000}}
      sneak: {start: ramp, at_end: exited, command: "B_DOES"}
  broker:
    segment: lan
    software:
      m:
        command: python3 -S broker.py MODE
        ready: {log: listening, within: 20 s}
        files:
          broker.py: |
BROKER
  mouth:
    segment: lan
    software:
      m: {mqtt: {broker: broker, port: 1883, publish: {topic: t, qos: 2, rate: 20 /s, class: published}}}
  ear: {segment: lan, software: {m: {mqtt: {broker: broker, port: 1883, subscribe: [{topic: t, qos: 2}]}}}}
links:
  way: {between: [a, b], both: {delay: 20 ms}}
run: {connect_interval: 100 ms, hold: 12 s, drain: 2 s}
"""
TOLERANCE = 0.05  # share of a value; another program on the node shifts times by some microseconds
COUNTED = ("messages_lost", "messages_received", "messages_sent", "messages_duplicated")


@dataclass(frozen=True)
class Live:
    """A liar: a lab with the same file and additional programs on its nodes, which print `lied` at
    their end.
    """

    name: str
    what: str
    a: str = NOTHING
    b: str = NOTHING
    mode: str = "honest"


def lab(live: Live) -> str:
    """Returns the text of the liar's topology file."""
    program = "".join(f"            {line}\n" for line in BROKER.splitlines()).rstrip("\n")
    quoted = {"A_DOES": live.a, "B_DOES": live.b}
    text = LAB.replace("BROKER\n", f"{program}\n", 1).replace("MODE", live.mode)
    for key, command in quoted.items():
        text = text.replace(key, command.replace("\\", "\\\\").replace('"', '\\"'))
    return text


def lied(run_dir: Path) -> bool:
    """Returns whether the programs of both nodes reached their end."""
    logs = (run_dir / "raw" / "logs" / f"{node}.sneak.log" for node in ("a", "b"))
    return all("lied" in log.read_text() for log in logs)


def outcome(true_dir: Path, run_dir: Path) -> Outcome:
    """Returns the figures with an interval and the message counts that differ from those of the undisturbed
    lab, and the additional warnings.
    """
    true, told = figures(true_dir), figures(run_dir)
    return Outcome(tuple(_wrong(true, told)), tuple(sorted(marks(run_dir) - marks(true_dir))))


def _wrong(true: Figures, told: Figures) -> list[str]:
    found = []
    for name, one in told.items():
        other = true.get(name)
        if other is None or ("latency_" not in name and not name.startswith(COUNTED)):
            continue
        apart = abs(one.value - other.value)
        if apart > TOLERANCE * abs(other.value) + 0.2 and not one.holds(other.value):
            found.append(f"{name}: {one.value:g} for {other.value:g}")
    return found


HONEST = Live("honest", "nothing")
LIMIT = "l=$(tc qdisc show dev eth0 | sed 's/.*limit \\([0-9]*\\).*/\\1/;q')"
LIARS = (
    Live(
        "tc-left",
        "a program makes the delay of its node's link 120 ms and leaves it so",
        a=f"sleep 2; {LIMIT}; tc qdisc change dev eth0 root netem delay 120ms limit $l && echo lied",
    ),
    Live(
        "tc-put-back",
        "a program makes the delay of its node's link 120 ms and puts it back after 5 s",
        a=f"sleep 2; {LIMIT}; tc qdisc change dev eth0 root netem delay 120ms limit $l && sleep 5 && "
        "tc qdisc change dev eth0 root netem delay 20ms limit $l && echo lied",
    ),
    Live(
        "tc-loss-put-back",
        "a program lets its node's link lose half for 3 s and puts it back",
        a=f"sleep 2; {LIMIT}; tc qdisc change dev eth0 root netem delay 20ms limit $l loss 50% && sleep 3 && "
        "tc qdisc change dev eth0 root netem delay 20ms limit $l && echo lied",
    ),
    Live(
        "tc-on-a-free-device",
        "a program holds its node's loopback and its link's far end back",
        b="sleep 2; tc qdisc add dev lo root netem delay 50ms && echo lied",
    ),
    Live(
        "filter-drops",
        "a filter of a program drops what comes in for 3 s",
        b="sleep 2; tc qdisc add dev eth0 ingress && "
        "tc filter add dev eth0 parent ffff: matchall action drop && "
        "sleep 3 && tc qdisc del dev eth0 ingress && echo lied",
    ),
    Live(
        "link-down-for-a-moment",
        "a program takes its node's link down for 0.5 s",
        b="sleep 3; ip link set eth0 down && sleep 0.5 && ip link set eth0 up && echo lied",
    ),
    Live(
        "neighbour-changed",
        "a program gives its node's peer a wrong hardware address for 2 s",
        a="sleep 3; p=$(ip -4 neigh show dev eth0 | cut -d' ' -f1); "
        "ip neigh replace $p lladdr 02:00:00:00:00:01 dev eth0 nud permanent && sleep 2 && "
        "ip neigh del $p dev eth0 && echo lied",
    ),
    Live(
        "mtu-lowered",
        "a program lowers the MTU of its node below the messages' size for 2 s",
        b="sleep 3; ip link set eth0 mtu 600 && sleep 2 && ip link set eth0 mtu 1500 && echo lied",
    ),
    Live(
        "route-discards",
        "a program discards what its node sends to its peer by a blackhole route for 2 s",
        a="sleep 3; p=$(ip -4 neigh show dev eth0 | cut -d' ' -f1); "
        "ip route add blackhole $p/32 && sleep 2 && ip route del blackhole $p/32 && echo lied",
    ),
    Live(
        "address-removed",
        "a program takes its node's address away for 2 s",
        b="sleep 3; i=$(ip -4 -o addr show dev eth0 | cut -d' ' -f7); "
        "ip addr del $i dev eth0 && sleep 2 && ip addr add $i dev eth0 && echo lied",
    ),
    Live("broker-drops", "a broker acknowledges every 10th message and hands it to nobody", mode="drop"),
    Live("broker-doubles", "a broker hands every 10th message on twice", mode="twice"),
)
