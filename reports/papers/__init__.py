"""Published papers, one module each: printed values, claims, figures; chosen by `reference`."""

from reports.papers.paper import Paper, Table
from reports.papers.registry import PAPERS, paper_of, unknown

__all__ = ["PAPERS", "Paper", "Table", "paper_of", "unknown"]
