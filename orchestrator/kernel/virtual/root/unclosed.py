"""The error for things that a lab in virtual time needs and its closed root cannot have, with the topology's
keys.
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
    """One program, library or file: the key that names it, the value there, the rule, and the remedy."""

    key: str
    value: str
    rule: str
    remedy: str

    def of(self, file: str) -> Unfound:
        """The same as what a file of the machine needs, whose path stands before it."""
        return self if file in self.value else replace(self, value=f"{file}: {self.value}")

    def __str__(self) -> str:
        return f"{self.key}: {self.value}: {self.rule}; {self.remedy}"


class Unclosed(KernelError):  # noqa: N818  # what the root cannot have is the subject
    """The closed root cannot be made; `found` has all that it cannot have."""

    def __init__(self, found: Iterable[Unfound]) -> None:
        self.found = tuple(dict.fromkeys(found))
        super().__init__("\n".join(map(str, self.found)))


def refuse(key: str, value: str, rule: str, remedy: str) -> Unclosed:
    """The exception for one missing thing."""
    return Unclosed([Unfound(key, value, rule, remedy)])


def show(path: str) -> str:
    """The remedy for what virtual time would show if the file said so."""
    return f"write `mounts: {{read: [{path}]}}` at the node"


def install(package: str) -> str:
    """The remedy for what a package of Debian's would bring."""
    return f"apt-get install {package}"
