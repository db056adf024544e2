"""Defines the error for files and programs that a lab in virtual time needs and its closed root cannot
contain, with the topology's keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from orchestrator.kernel.protocol import KernelError

REAL = "use --time real"
OF_A_PACKAGE = "install the Debian package that has it"
NOT_SHOWN = "no package has it, and virtual time does not show it"


@dataclass(frozen=True, slots=True)
class Unfound:
    """One program, library or file that the closed root cannot contain: the topology key that names it, the
    value there, the rule, and the remedy.
    """

    key: str
    value: str
    rule: str
    remedy: str

    def of(self, file: str) -> Unfound:
        """Returns the same, with the value preceded by the path of the file that needs it."""
        return self if file in self.value else replace(self, value=f"{file}: {self.value}")

    def __str__(self) -> str:
        return f"{self.key}: {self.value}: {self.rule}; {self.remedy}"


class Unclosed(KernelError):  # noqa: N818  # what the root cannot have is the subject
    """The closed root cannot be made; `found` lists everything that it cannot contain."""

    def __init__(self, found: Iterable[Unfound]) -> None:
        self.found = tuple(dict.fromkeys(found))
        super().__init__("\n".join(map(str, self.found)))


def refuse(key: str, value: str, rule: str, remedy: str) -> Unclosed:
    """Returns the exception for one missing thing."""
    return Unclosed([Unfound(key, value, rule, remedy)])


def show(path: str) -> str:
    """Returns the remedy for a path that virtual time shows only if the topology lists it under `mounts`."""
    return f"write `mounts: {{read: [{path}]}}` at the node"
