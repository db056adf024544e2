"""Makes the page's sections on links in use (traffic, drops and queues of each direction) and on the drawn
topologies of the runs.
"""

from __future__ import annotations

import polars as pl

from reports.figures import registry
from reports.metrics.links import MOST
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject
from reports.study import Study
from reports.svg import data_uri

CARRIED = {
    "link_asked": "requested rate, Mbit/s",
    "link_carried": "carried, Mbit/s",
    "link_utilisation": "utilisation, %",
    "link_utilisation_p99": "utilisation p99, %",
    "link_peak": "peak, Mbit/s",
    "link_goodput": "goodput, Mbit/s",
}
WAITING = {
    "link_dropped": "dropped, packets",
    "link_dropped_share": "% of packets",
    "link_queue_p50": "queue p50, packets",
    "link_queue_p99": "queue p99, packets",
    "link_queue_max": "queue max, packets",
}
CLASSES = {
    "queue_carried": "carried, Mbit/s",
    "queue_dropped": "dropped, packets",
    "queue_marked": "marked (ECN), packets",
    "queue_p50": "queue p50, packets",
    "queue_max": "queue max, packets",
}
CLASS = {"queue_class": "band, class or tin"}
SUBJECT = {"link": "link", "direction": "direction"}


def section(page: Page) -> Part | None:
    """Returns the section of the page; None without link samples, or if no link carried or dropped
    a packet.
    """
    carried = by_subject(page.study, SUBJECT, CARRIED)
    if carried is None or not _used(page):
        return None
    waiting = by_subject(page.study, SUBJECT, WAITING, "Drops and queues, over the hold")
    classes = by_subject(page.study, CLASS, CLASSES, "Bands and classes of queues", SUBJECT)
    figures = page.figures(registry.LINKS)
    shown = {column.title for column in carried.columns}
    many = any(len(cell.run.plan.links) > MOST for cell in page.study.cells)
    return page.part(
        "links",
        "Links in use",
        entries(figures),
        tables=[table.cut() for table in (carried, waiting, classes) if table is not None],
        figures=figures,
        goodput=CARRIED["link_goodput"] in shown,
        utilisation=CARRIED["link_utilisation"] in shown,
        most=MOST if many else 0,
    )


def _used(page: Page) -> bool:
    compared = page.study.compared
    peaks = compared.filter(pl.col("name").is_in(["link_carried", "link_peak", "link_dropped"]))
    return bool((peaks.get_column("value") > 0).any())


def topology(page: Page) -> Part | None:
    """Returns the section of drawn topologies; None if no run has a drawing."""
    images = _images(page.study)
    return page.part("topology", "Topology", images=images) if images else None


def _images(study: Study) -> list[tuple[str, str]]:
    """Returns the caption and image of each different topology of the runs, one for each caption; runs
    without topology.svg are left out.
    """
    seen: dict[str, str] = {}
    for cell in study.cells:
        image = data_uri(cell.run.path / "topology.svg")
        if image and image not in seen:
            seen[image] = "" if study.single else f"{cell.scenario} ({cell.run.lab})"
    # the same topology at several levels is one picture
    by_caption = {caption: image for image, caption in reversed(seen.items())}
    return list(reversed(by_caption.items()))
