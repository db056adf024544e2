"""Finds the code in the pages: fenced blocks of commands, Python and data, and words in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
SPAN = re.compile(r"(?<!`)`((?:\.venv/bin/)?vnet [^`]+)`(?!`)")
SHELL = ("", "sh", "bash", "console")
# A line of a block of commands begins with one of these, after `$ ` and variables.
PROGRAMS = (
    "vnet", ".venv/bin/vnet", ".venv/bin/ansible", ".venv/bin/ansible-playbook", "/opt/vnet/bin/dask",
    "apt-get", "cat", "docker", "export", "git", "images/hil/machine.sh", "images/packages.sh", "make",
    "open", "podman", "ssh",
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A fenced block and its place."""

    page: str
    line: int
    info: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    def lines(self) -> list[str]:
        return [line.strip() for line in self.text.splitlines() if line.strip()]

    def commands(self) -> list[str]:
        """Returns the block's command lines without comments; empty if it shows something else."""
        if self.info.split(" ")[0] not in SHELL:
            return []
        prompted = [line.removeprefix("$ ") for line in self.lines() if line.startswith("$ ")]
        lines = prompted or [line for line in self.lines() if not line.startswith("#")]
        return [re.split(r"\s#\s", line)[0].strip() for line in lines] if _typed(lines) else []


def _typed(lines: list[str]) -> bool:
    return any(_program(line) in PROGRAMS for line in lines)


def _program(line: str) -> str:
    words = [word for word in line.split() if not re.match(r"[A-Z_]+=", word)]
    return words[0] if words else ""


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks() -> Iterator[Block]:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            line = text[: found.start()].count("\n") + 1
            lines = found["text"].splitlines(keepends=True)
            inner = "".join(line.removeprefix(found["indent"]) for line in lines)
            yield Block(str(page.relative_to(ROOT)), line, found["info"].strip(), inner)


def spans() -> Iterator[tuple[str, str]]:
    """Yields `page:line` and text of each span in backticks that begins with `vnet`."""
    for page in pages():
        text = FENCE.sub(lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"))
        for found in SPAN.finditer(text):
            yield f"{page.relative_to(ROOT)}:{text[: found.start()].count(chr(10)) + 1}", found[1]
