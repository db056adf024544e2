"""Tests that docs/extending.md states how many files each kind took, counted in the tree and in the commit
that made the kind.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
OWN = (
    "orchestrator/software/{0}.py", "orchestrator/software/{0}/**/*", "orchestrator/queueing/{0}.py",
    "images/agent/src/roles/{0}.rs", "images/agent/src/roles/{0}/**/*.rs",
    "capture/reducer/src/dissect/{0}.rs", "tests/**/test_{0}.py", "tests/**/test_{0}_*.py",
    "docs/kinds/{0}.md", "docs/queues/{0}.md", "topologies/{0}.yaml",
)  # fmt: skip
GENERATED = re.compile(
    r"docs/topology\.md|topologies/(topology|campaign)\.schema\.json|docs/gallery\.md"
    r"|docs/examples/gallery\.json|docs/images/gallery/.*"
)
ROW = re.compile(r"\| [^|]+ \| `([\w: -]+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (yes|no) \|")
PAPER = re.compile(r"\| `(\w+)` \| (\d+) \| (\d+) \| (yes|no) \|")
KINDS = ("coap", "nats", "codel", "sfq")  # each made in one commit
MOST = {"coap": 10, "nats": 14, "codel": 5, "sfq": 5}
MOST_OF_A_PAPER = 8


@dataclass(frozen=True)
class Cost:
    """A row of the page: the files of the kind's own, changed lists, and generated files."""

    subject: str
    most: int
    own: int
    lists: int
    generated: int
    holds: bool


def rows() -> dict[str, Cost]:
    """Returns the page's rows of kinds, by the kind's name."""
    found = {}
    for row in ROW.finditer(PAGE.read_text()):
        most, own, lists, generated = (int(number) for number in row.group(2, 3, 4, 5))
        name = row[1].partition(": ")[2]
        found[name] = Cost(row[1], most, own, lists, generated, row[6] == "yes")
    return found


def in_the_tree(kind: str) -> set[str]:
    """Returns the files of a kind's own that the tree has."""
    paths = {path for pattern in OWN for path in ROOT.glob(pattern.format(kind)) if path.is_file()}
    return {str(path.relative_to(ROOT)) for path in paths if "__pycache__" not in path.parts}


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    ).stdout


def commit(subject: str) -> str:
    """Returns the first commit with this subject, or one that continues it behind a comma; skips the test
    where the history does not reach so far.
    """
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git history: the tree alone is counted")
    log = [line.partition(" ") for line in git("log", "--reverse", "--format=%H %s").splitlines()]
    found = [sha for sha, _, said in log if said == subject or said.startswith(subject + ",")]
    if not found:
        pytest.skip(f"the history has no commit {subject!r}: the tree alone is counted")
    return found[0]


def test_the_page_has_each_kind_with_its_limit() -> None:
    assert {name: cost.most for name, cost in rows().items()} == MOST


@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_has_as_many_files_of_the_kind_as_the_page_says(kind: str) -> None:
    cost, files = rows()[kind], in_the_tree(kind)
    assert len(files) == cost.own, sorted(files)
    assert cost.holds is (cost.own <= cost.most)
    assert cost.holds, f"{kind} takes {cost.own} files, {cost.most} are the most: {sorted(files)}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_commit_that_made_the_kind_touched_as_many_files_as_the_page_says(kind: str) -> None:
    cost = rows()[kind]
    shown = git("show", "--format=", "--no-renames", "--name-status", commit(cost.subject))
    changes = [line.split("\t") for line in shown.splitlines() if line]
    sorts = Counter("generated" if GENERATED.fullmatch(path) else how for how, path in changes)
    assert sorts == {"A": cost.own, "M": cost.lists, "generated": cost.generated}, changes
    added = {path for how, path in changes if how == "A" and not GENERATED.fullmatch(path)}
    assert added <= in_the_tree(kind), "a file that the commit added is not counted in the tree"


def test_the_page_has_the_files_of_each_paper() -> None:
    folders = {path.parent for path in (ROOT / "reports" / "papers").glob("*/reference.yaml")}
    files = {folder.name: sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    said = {m[1]: (int(m[2]), int(m[3]), m[4] == "yes") for m in PAPER.finditer(PAGE.read_text())}
    assert said == {name: (MOST_OF_A_PAPER, count, count <= MOST_OF_A_PAPER) for name, count in files.items()}
