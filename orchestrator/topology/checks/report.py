"""Where the checks look and what they write to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...language.problem import Problem, closest, shown
from ...language.source import Document, Path
from ..document import File
from ..expansion import Domain, Expansion, domains, expand
from ..reach import Reach


@dataclass
class Report:
    """One file under check. `problems` grows; everything else is only read."""

    document: Document
    model: File
    parameters: dict[str, Any]
    refused: frozenset[str]  # paths of earlier problems
    problems: list[Problem] = field(default_factory=list)

    @cached_property
    def names(self) -> Expansion:
        return expand(self.model)

    @cached_property
    def domains(self) -> dict[str, Domain]:
        return domains(self.model)

    @cached_property
    def reach(self) -> Reach:
        return Reach(self.names, self.domains)

    def declared(self, section: str) -> set[str]:
        """Names in a section of the file, also of those parts that are wrong in themselves."""
        data = self.document.data.get(section)
        return set(data) if isinstance(data, dict) else set()

    def lost(self, section: str) -> bool:
        """Whether a section of the file was refused as a whole, or any of its parts."""
        return any(path.split(".")[0] == section for path in self.refused)

    def unsure(self, section: str, key: str) -> bool:
        """Whether this key of some part is wrong, or the part itself."""
        paths = [path.split("[")[0].split(".") for path in self.refused | {p.path for p in self.problems}]
        return any(p[0] == section and (len(p) < 3 or p[2] == key) for p in paths)

    def events(self) -> list[int]:
        """For each event of the model its index in the file, where wrong ones still stand."""
        wrong = {int(m[1]) for path in self.refused if (m := re.match(r"timeline\[(\d+)\]", path))}
        count = len(self.model.timeline) + len(wrong)
        return [index for index in range(count) if index not in wrong][: len(self.model.timeline)]

    def broken(self, section: str) -> set[str]:
        """Names whose part was refused already: nothing follows from them."""
        return self.declared(section) - set(getattr(self.model, section))

    def add(self, path: Path, value: Any, rule: str, remedy: str) -> None:
        text = "" if value is None else shown(value)
        self.problems.append(self.document.problem(path, text, rule, remedy))

    def unknown(self, path: Path, value: str, what: str, known: set[str]) -> None:
        """Reports a reference to a name that does not exist."""
        self.add(path, value, f"no {what} is called that", closest(value, known, what=what))
