"""The works that are repeated: their studies, the pages about them, the examples that judge their claims."""

from __future__ import annotations

from dataclasses import dataclass

RESERVE = ("1a-latency", "1b-latency", "3-highest-rate", "4-recovery", "5-outage", "6-corruption", "7-clock")


@dataclass(frozen=True)
class Study:
    """One study of a work: its name in reports/papers, a title, the page in docs, the examples."""

    paper: str
    title: str
    page: str
    examples: tuple[str, ...]


WORKS: dict[str, tuple[Study, ...]] = {
    "Multi-Protocol Transport Layer QoS (vNET), 2014": (
        Study(
            "vnet_2014",
            "vNET, 2014: MQTT at three levels of QoS",
            "examples/mqtt-qos-campaign/README.md",
            ("mqtt-qos-campaign",),
        ),
        Study(
            "vnet_2014_models",
            "vNET, 2014: four interaction models",
            "interaction-models.md",
            ("interaction-models",),
        ),
    ),
    "RESERVE, deliverable D4.6, 2018": (
        Study(
            "reserve",
            "RESERVE D4.6, 2018: AMQP, MQTT, Sampled Values",
            "power-protocols.md",
            (*(f"reserve-{name}" for name in RESERVE), "reserve-8-efficiency"),
        ),
    ),
    "Switched Ethernet in substation automation": (
        Study(
            "industrial_ethernet",
            "Switched Ethernet in substations: priorities",
            "industrial-ethernet.md",
            ("priority",),
        ),
        Study(
            "industrial_ethernet_substation",
            "The same: substations of 19 and 122 nodes",
            "industrial-ethernet.md#two-substations-figures-3-5-6-and-7",
            ("substation-flat", "substation-bays"),
        ),
    ),
    "Cooperative congestion control in power grids, 2011": (
        Study(
            "ccc_2011",
            "Cooperative congestion control, 2011",
            "cooperative-congestion-control.md",
            ("ccc-2011",),
        ),
    ),
    "Smart Grid Communication Comparison, 2017": (
        Study(
            "middleware_2017",
            "Smart Grid Communication Comparison, 2017",
            "distributed-control.md",
            ("middleware-reduced",),
        ),
    ),
}
