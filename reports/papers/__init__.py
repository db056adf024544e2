"""Compares published papers with vNET's runs: each paper has a package with its printed values, claims and
figures. A topology selects its paper by `reference`.
"""

from reports.papers.paper import Paper, Table
from reports.papers.registry import PAPERS, paper_of, unknown

__all__ = ["PAPERS", "Paper", "Table", "paper_of", "unknown"]
