"""What a kind of software says of programs in other tools' files: which it is, and its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Foreign:
    """How a kind takes over a program of another tool's topology."""

    recognises: Callable[[str], bool]  # a container's image, or a kind's name
    file: str  # its configuration, where a container has it: "/etc/..."
    addresses: Callable[[str], Mapping[str, list[str]]]  # that a configuration gives, by interface
    # The piece of software: from its configuration, with interfaces and addresses as they are called here.
    software: Callable[[str, Mapping[str, str], Mapping[str, str]], dict[str, Any]]
    forwards: bool = True
