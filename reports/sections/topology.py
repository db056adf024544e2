"""Makes the page's section of the drawn topologies of the runs."""

from __future__ import annotations

from reports.sections.section import Page, Part
from reports.study import Study
from reports.svg import data_uri


def section(page: Page) -> Part | None:
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
