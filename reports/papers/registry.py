"""Lists the known papers, and finds the paper of a study."""

from __future__ import annotations

from contract.plugins import Registry
from reports.papers.ccc_2011 import CCC_2011
from reports.papers.industrial_ethernet import INDUSTRIAL_ETHERNET
from reports.papers.industrial_ethernet_substation import INDUSTRIAL_ETHERNET_SUBSTATION
from reports.papers.middleware_2017 import MIDDLEWARE_2017
from reports.papers.paper import Paper
from reports.papers.reserve import RESERVE
from reports.papers.vnet_2014 import VNET_2014
from reports.papers.vnet_2014_models import VNET_2014_MODELS
from reports.study import Study

_OWN: tuple[Paper, ...] = (
    VNET_2014,
    VNET_2014_MODELS,
    RESERVE,
    INDUSTRIAL_ETHERNET,
    INDUSTRIAL_ETHERNET_SUBSTATION,
    MIDDLEWARE_2017,
    CCC_2011,
)


def _fault(name: str, paper: Paper) -> str:
    return "" if paper.name == name else f"its paper is named {paper.name!r}; name the entry point so"


# Papers by name: those that vNET ships, and those of plug-ins.
PAPERS = Registry("vnet.papers", {paper.name: paper for paper in _OWN}, Paper, _fault)


def paper_of(study: Study) -> Paper | None:
    """Returns the paper that the study's runs name as their reference; None if they name none, several or an
    unknown one.
    """
    names = _named(study)
    return PAPERS.get(names[0]) if len(names) == 1 else None


def unknown(study: Study) -> list[str]:
    """Returns a sentence for each reference of the runs that names no paper in PAPERS, with the error of the
    plug-in that should have added it.
    """
    return [
        f"reference {name!r} is of no paper known here ({', '.join(PAPERS)}), so it is compared with none"
        + "".join(f"; {one}" for one in PAPERS.strangers.refused if one.offer.name == name)
        for name in _named(study)
        if name not in PAPERS
    ]


def _named(study: Study) -> list[str]:
    found = [cell.run.plan.reference for cell in study.cells]
    return list(dict.fromkeys(str(name) for name in found if name))
