"""Models the rows of docs/exchange.md as tests: changes of a file, and the result that each must have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.exchange import writing
from orchestrator.exchange.network import Network
from orchestrator.topology import TopologyError

Result = Literal["network", "said", "both", "silent", "refused"]
Told = tuple[str, Counter[str]]  # the topology's text, and the lines on what is left out or changed


@dataclass(frozen=True)
class Case:
    """A change of one file: `old` ("": the whole text) becomes `new`, and the import is compared with that of
    `before` in its place (None: `old` itself). A file that the base lacks is added.

    result: the written topology differs (network), only the lines on what is left out or changed (said),
    both, neither (silent), or the changed file is refused with a line of it.
    """

    result: Result
    old: str
    new: str
    before: str | None = None
    file: str = ""

    def words(self) -> str:
        """Returns all text of the case, in which a construct of the page is looked for."""
        return " ".join((self.old, self.new, self.before or "", self.file))


@dataclass(frozen=True)
class Tool:
    """A section of the page: the files of a base that is imported without an error, by path; the one that is
    read; and the cases of each row, by the beginning of its first cell.
    """

    section: str
    files: Mapping[str, str]
    main: str
    tell: Callable[[Path], Told]
    rows: Mapping[str, Sequence[Case]]

    def told(self, directory: Path, case: Case | None = None, changed: bool = False) -> Told:
        """Writes the files, with the case's change or what it is compared with, and imports them. Raises
        TopologyError if they are refused or make no lab.
        """
        files = dict(self.files)
        if case is not None and case.file and case.file not in files and changed:
            files[case.file] = case.new
        for name, text in files.items():
            if case is not None and (case.file or self.main) == name and name in self.files:
                assert case.old in text, case.old
                old = case.old or text
                given = case.new if changed else old if case.before is None else case.before
                text = text.replace(old, given, 1)
            place = directory / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return self.tell(directory / self.main)


def network(old: str, new: str, before: str | None = None, file: str = "") -> Case:
    return Case("network", old, new, before, file)


def said(old: str, new: str, before: str | None = None, file: str = "") -> Case:
    return Case("said", old, new, before, file)


def both(old: str, new: str, before: str | None = None, file: str = "") -> Case:
    return Case("both", old, new, before, file)


def silent(old: str, new: str, before: str | None = None, file: str = "") -> Case:
    return Case("silent", old, new, before, file)


def refused(old: str, new: str, file: str = "") -> Case:
    return Case("refused", old, new, None, file)


def imported(read: Callable[[Path], Network]) -> Callable[[Path], Told]:
    """Returns a function that imports a file by `read` and writes the topology, as `vnet import` does."""

    def tell(path: Path) -> Told:
        made = read(path)
        written = writing.write(made, "out.yaml")
        if written.problems:
            raise TopologyError(written.problems)
        return written.text, plain([*made.left, *written.changed])

    return tell


def plain(lines: Sequence[str]) -> Counter[str]:
    """Returns the lines without the numbers of lines, which a change may move."""
    return Counter(re.sub(r"\bline \d+", "line", one) for one in lines)
