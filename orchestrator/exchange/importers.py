"""Defines what a plug-in of `vnet import` is: a name, a title, and a function that reads a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .network import Network


@dataclass(frozen=True)
class Importer:
    """Reads files of one tool for `vnet import NAME FILE`.

    title: one line of the list of importers. read: returns the file's network; raises TopologyError with
    file, line, rule and remedy for what it cannot read.
    """

    name: str
    title: str
    read: Callable[[Path], Network]
