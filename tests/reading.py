"""Draws docstrings, comments and pages for a reading test: `python tests/reading.py [SEED] [--code]`.

The reader writes what each item does without looking at the code, then prints the same draw with `--code`
and counts the right sentences: at least 19 of 20 are wanted. The seed is printed and repeats the draw on the
same commit. Items are docstrings and comments of Python, Rust, shell and make with at least MOST_TERSE words.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXTS, PAGES = 20, 2
MOST_TERSE = 5  # words; shorter comments, such as names of sections, cannot be judged
CODE_LINES = 25  # shown after an item with --code
NOT_OURS = ("docs/examples/", "tests/goldens/")
BUILT = ("target", "results", "build", "dist", "fuzz/target", "fuzz/artifacts")  # the entries of .gitignore
MARKS = re.compile(r"^\s*(///?!?|#)\s?")


@dataclass(frozen=True)
class Item:
    """A docstring or a block of comment lines: file below the repository, first and last line, and its
    text.
    """

    file: str
    first: int
    last: int
    text: str


def tracked() -> list[str]:
    """Returns the paths of the project's files, sorted, without built or hidden directories. It does not use
    git, which a bare machine does not have.
    """
    found: list[str] = []
    for top, directories, files in os.walk(ROOT):
        inside = "" if Path(top) == ROOT else f"{Path(top).relative_to(ROOT)}/"
        directories[:] = [
            name for name in directories
            if not name.startswith(".") and name != "__pycache__" and f"{inside}{name}" not in BUILT
        ]  # fmt: skip
        found += [inside + name for name in files]
    return sorted(name for name in found if not name.startswith(NOT_OURS))


def items(name: str) -> list[Item]:
    """Returns the docstrings and comments of a file; none if its language is not read."""
    text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
    found: list[Item] = []
    if name.endswith(".py"):
        found = [*docstrings(name, text), *blocks(name, python_comments(text))]
    elif name.endswith((".rs", ".sh")) or Path(name).name == "Makefile":
        mark = "//" if name.endswith(".rs") else "#"
        lines = enumerate(text.splitlines(), 1)
        alone = [(number, line) for number, line in lines if line.strip().startswith(mark)]
        found = blocks(name, [one for one in alone if not one[1].startswith("#!")])
    return [item for item in found if len(item.text.split()) >= MOST_TERSE]


def docstrings(name: str, text: str) -> Iterator[Item]:
    """Yields the docstrings of a Python module, its classes and functions; the text begins with the owner's
    name.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            said := ast.get_docstring(node)
        ):
            quoted = node.body[0]
            owner = f"{node.name}: " if not isinstance(node, ast.Module) else ""
            yield Item(name, quoted.lineno, quoted.end_lineno or quoted.lineno, owner + said)


def python_comments(text: str) -> list[tuple[int, str]]:
    """Returns number and text of the comments of a Python file, without orders to tools; a comment behind
    code has its line of code in front.
    """
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [
        (token.start[0], token.line.strip() if token.line[: token.start[1]].strip() else token.string)
        for token in tokens
        if token.type == tokenize.COMMENT and not re.match(r"#!|# (noqa|type:|fmt:|mypy:)", token.string)
    ]


def blocks(name: str, lines: list[tuple[int, str]]) -> list[Item]:
    """Joins comment lines that follow each other to one item each; a comment behind code is an item."""
    found: list[Item] = []
    joins = False
    for number, line in lines:
        said, behind = MARKS.sub("", line).strip(), not MARKS.match(line)
        joins, before_joins = not behind, joins
        if joins and before_joins and found[-1].last == number - 1:
            before = found.pop()
            found.append(Item(name, before.first, number, f"{before.text} {said}"))
        else:
            found.append(Item(name, number, number, said))
    return found


def drawn(seed: int) -> tuple[list[Item], list[str]]:
    """Returns the items and the pages of docs/ that a seed draws."""
    names, chance = tracked(), random.Random(seed)
    pages = [name for name in names if name.startswith("docs/") and name.endswith(".md")]
    return chance.sample(everything(), TEXTS), chance.sample(pages, PAGES)


@cache
def everything() -> list[Item]:
    return [item for name in tracked() for item in items(name)]


def code(item: Item) -> str:
    """Returns the line before an item, and the lines after it."""
    lines = (ROOT / item.file).read_text(encoding="utf-8").splitlines()
    before = lines[max(0, item.first - 2) : item.first - 1]
    return "\n".join(f"    | {line}" for line in [*before, "...", *lines[item.last : item.last + CODE_LINES]])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seed", nargs="?", type=int, default=random.randrange(10**6))
    parser.add_argument("--code", action="store_true", help="print the code of each item, too")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    texts, pages = drawn(options.seed)
    for number, item in enumerate(texts, 1):
        print(f"{number:2} {item.file}:{item.first}\n    {item.text}")
        if options.code:
            print(code(item))
    print("pages:", *pages, "README.md", "and a report, such as that of README's run")


if __name__ == "__main__":
    main()
