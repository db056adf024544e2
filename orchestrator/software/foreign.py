"""Defines the description of a kind's program in files of other tools: its names and its
configuration there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Daemons:
    """Routing daemons in files of other tools: their names there, how they start and where their
    configuration is.
    """

    devices: tuple[str, ...]  # names that other tools give to devices that run these daemons
    protocols: Mapping[str, str]  # other tools' services and modules -> vNET's key
    software: Callable[[Mapping[str, Any]], dict[str, Any]]  # protocols by vNET's keys -> the software's keys
    starts: Callable[[str], bool]  # returns whether a command starts the daemons
    # Directory of configurations in a machine's directory -> first line of such a file.
    folders: Mapping[str, str]
    config: Callable[[Sequence[str]], str]  # joins the files' texts; "" if they configure no protocol


@dataclass(frozen=True)
class Foreign:
    """Converts a program in another tool's topology into software of this kind."""

    recognises: Callable[[str], bool]  # whether a container's image, or a kind's name, is this program
    file: str  # path of the configuration in a container: "/etc/..."
    addresses: Callable[[str], Mapping[str, list[str]]]  # addresses in a configuration, by interface
    # The function takes a configuration, the interface names there -> here, and the addresses there -> here;
    # it returns the software's keys.
    software: Callable[[str, Mapping[str, str], Mapping[str, str]], dict[str, Any]]
    forwards: bool = True
    daemons: Daemons | None = None
