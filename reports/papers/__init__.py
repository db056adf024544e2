"""Published papers as rooms: what they printed, what they claim, their figures; chosen by `reference`."""

from reports.papers.paper import Paper, Table
from reports.papers.registry import PAPERS, paper_of, unknown

__all__ = ["PAPERS", "Paper", "Table", "paper_of", "unknown"]
