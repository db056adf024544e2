"""Makes the page's section on captured packets: sizes, protocols, and the share of payload."""

from __future__ import annotations

from reports.figures import registry
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject

POINTS = {
    "packets": "packets",
    "wire_rate": "on the wire, Mbit/s",
    "payload_rate": "payload, Mbit/s",
    "goodput_packets": "packets with TCP payload, %",
    "goodput_bytes": "TCP payload share, % of bytes",
    "application_bytes": "application data, % of bytes",
    "retransmitted_packets": "retransmissions, % of packets",
    "arp_packets": "ARP packets, %",
}
PROTOCOLS = {"protocol_packets": "packets", "protocol_bytes": "bytes", "protocol_share": "% of bytes"}
LAYERS = {"layer_share": "% of bytes"}


def section(page: Page) -> Part | None:
    """Returns the section of the page, without figures that the paper's section already draws; None without a
    reduced capture.
    """
    points = by_subject(page.study, {"capture": "capture point"}, POINTS)
    if points is None:
        return None
    again = {spec.data for spec in page.paper.figures(page.study)} if page.paper else set()
    figures = page.figures(spec for spec in registry.PACKETS if spec.data not in again)
    tables = [
        by_subject(page.study, {"capture": "capture point", "protocol": "protocol"}, PROTOCOLS, "Protocols"),
        by_subject(page.study, {"capture": "capture point", "layer": "layer"}, LAYERS, "Bytes by layer"),
    ]
    return page.part(
        "packets",
        "Packets",
        entries(figures),
        points=points.cut(),
        tables=[table.cut() for table in tables if table is not None],
        figures=figures,
    )
