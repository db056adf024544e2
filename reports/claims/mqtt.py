"""The claims of the vNET paper's MQTT experiments (section III), each with the rule it is judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reports.claims import load, traffic
from reports.claims.evidence import Evidence
from reports.claims.verdict import Judgement


@dataclass(frozen=True)
class Claim:
    """`text` is what the paper says; `rule` how it is judged here."""

    key: str
    figures: str
    text: str
    rule: str
    judge: Callable[[Evidence], Judgement]


RISING = f"the ramp's rank correlation with the number of clients is at least {load.RISE}, at every QoS"
STEPS = "each step is above zero by more than its 95 % interval"
STEEPER = "the step 1 to 2 is at least twice the step 0 to 1, by more than the 95 % interval"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "cpu-clients-1",
        "8",
        "The broker's CPU rises with the number of clients.",
        RISING,
        load.counted(load.rises_with_clients("cpu")),
    ),
    Claim(
        "cpu-qos-1",
        "8",
        "The broker's CPU rises with the QoS level.",
        STEPS,
        load.counted(load.rises_with_qos(load.cpu, "the broker's CPU")),
    ),
    Claim(
        "cpu-step-1",
        "8",
        "For CPU the step from QoS 1 to 2 is much larger than from 0 to 1.",
        STEEPER,
        load.counted(load.larger_step("cpu")),
    ),
    Claim(
        "net-clients-1",
        "9",
        "The broker's bandwidth rises with the number of clients.",
        RISING,
        load.rises_with_clients("net"),
    ),
    Claim(
        "net-qos-1",
        "9",
        "The broker's bandwidth rises with the QoS level.",
        STEPS + "; received and sent together",
        load.rises_with_qos(load.net, "the broker's bandwidth"),
    ),
    Claim(
        "net-step-1",
        "9",
        "For bandwidth the step from QoS 1 to 2 is much larger than from 0 to 1.",
        STEEPER,
        load.larger_step("net"),
    ),
    Claim(
        "receives-more",
        "9",
        "In scenario 1 the broker receives more than it sends.",
        "received is above sent by more than the 95 % interval, at every QoS at hand",
        load.receives_more,
    ),
    Claim(
        "subscriber-cpu",
        "10",
        "The single subscriber uses about 6 times the CPU of a publisher.",
        "the largest ratio lies within a factor of two of 6",
        load.counted(load.ratio_claim("cpu", 6)),
    ),
    Claim(
        "subscriber-net",
        "11",
        "The subscriber's network use is up to 360 times a publisher's.",
        "the largest ratio, received and sent together, lies within a factor of two of 360",
        load.ratio_claim("net", 360),
    ),
    Claim(
        "publisher-net",
        "11",
        "A publisher uses 0.5 to 1 kB/s.",
        "received and sent together, at every QoS at hand",
        load.publisher_net,
    ),
    Claim(
        "cpu-scenarios",
        "8, 12",
        "Going from scenario 1 to 2 has little effect on the broker's CPU.",
        "the change is under 20 %, at every QoS run in both",
        load.counted(load.same_cpu),
    ),
    Claim(
        "rates-match",
        "13",
        "In scenario 2 received and sent rates match almost exactly.",
        "sent / received is within 5 % of one, at every QoS at hand",
        load.rates_match,
    ),
    Claim(
        "tcp-overhead",
        "14",
        "Over 80 % of packets are TCP overhead at every QoS.",
        "share of packets of 40-79 bytes, which is how the paper counts it",
        traffic.tcp_overhead,
    ),
    Claim(
        "small-packets",
        "14",
        "Higher QoS shifts the distribution to more small packets and fewer large ones.",
        "from level to level the share of 40-79 bytes rises and that of 640-1279 bytes falls",
        traffic.small_packets,
    ),
    Claim(
        "arp-share",
        "14",
        "ARP is less than 0.05 % of packets.",
        "share of ARP packets, at every QoS at hand",
        traffic.every_level("arp_packets", "", lambda v: v < 0.05, "{:.3f} % ARP"),
    ),
    Claim(
        "publish-bin",
        "14",
        "Packets of 640-1279 bytes are exclusively PUBLISH.",
        "at least 99 % of them, retransmissions left out, complete a PUBLISH",
        traffic.every_level(
            "publish_packets", traffic.LARGE, lambda v: v >= 99, "{:.2f} % complete a PUBLISH"
        ),
    ),
    Claim(
        "goodput-qos1",
        "15",
        "At QoS 1 only 30 % of packets carry a payload.",
        "25 to 35 % of packets have a TCP payload longer than zero",
        traffic.goodput_qos1,
    ),
    Claim(
        "table-ii-node",
        "II",
        "CPU of a publishing node rises with the QoS level (0.971, 0.977, 1.022 %).",
        STEPS + "; the values themselves depend on the machine",
        load.counted(load.rises_with_qos(load.node, "the publishers' CPU")),
    ),
    Claim(
        "table-ii-host",
        "II",
        "CPU of the host rises with the QoS level (69.0, 69.7, 71.1 %).",
        STEPS + "; the values themselves depend on the machine",
        load.rises_with_qos(load.host, "the machine's CPU"),
    ),
)


def judge_all(e: Evidence) -> dict[str, tuple[Claim, Judgement]]:
    """Every claim by its key, in the paper's order."""
    return {claim.key: (claim, claim.judge(e)) for claim in CLAIMS}
