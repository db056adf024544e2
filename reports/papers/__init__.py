"""Published papers, one package each with printed values, claims and figures; a topology's `reference`
selects one.
"""

from reports.papers.paper import Paper, Table
from reports.papers.registry import PAPERS, paper_of, unknown

__all__ = ["PAPERS", "Paper", "Table", "paper_of", "unknown"]
