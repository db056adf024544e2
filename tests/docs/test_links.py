"""Tests that links between pages, and the pages that code and error texts name, exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
NAMED = re.compile(r"docs/[\w/.-]+\.md")


def broken_links(root: Path) -> list[str]:
    """Returns `page: link` of every relative link in README.md and docs whose file does not exist."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found = [(page, link) for page in pages for link in LINK.findall(page.read_text(encoding="utf-8"))]
    local = [(page, link) for page, link in found if "://" not in link and not link.startswith("mailto:")]
    return [f"{page.relative_to(root)}: {link}" for page, link in local if not (page.parent / link).exists()]


def test_links_between_pages_lead_to_files() -> None:
    assert broken_links(ROOT) == []


def test_pages_named_in_code_exist() -> None:
    sources = [
        path
        for top in ("orchestrator", "capture", "contract", "reports", "images", "bench")
        for path in (ROOT / top).rglob("*")
    ]
    texts = [path for path in sources if path.suffix in {".py", ".rs", ".sh", ".j2"}]
    named = {(path, page) for path in texts for page in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert [
        f"{path.relative_to(ROOT)}: {page}" for path, page in sorted(named) if not (ROOT / page).exists()
    ] == []


# A file or a pattern in backticks. Capitals (KIND, NAME) and an ellipsis stand for others.
FILE = re.compile(
    r"`((?:bench|capture|contract|docs|fuzz|images|inventory|orchestrator|playbooks|reports|tests|topologies|vnet)/[\w./*-]+)`"
)
STANDS_FOR = re.compile(r"[A-Z]{3,}|\.\.\.")
THEIRS = {"tests/integration"}  # netlab's, docs/exchange.md


def files_missing(root: Path) -> list[str]:
    """Returns `page: file` of each file of the repository that a page names in backticks but that does not
    exist.
    """
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    named = [(page, name) for page in pages for name in FILE.findall(page.read_text(encoding="utf-8"))]
    own = [(page, name) for page, name in named if not STANDS_FOR.search(name) and name not in THEIRS]
    return [
        f"{page.relative_to(root)}: {name}" for page, name in own if not any(root.glob(name.rstrip("/.")))
    ]


def test_files_named_in_pages_exist() -> None:
    assert files_missing(ROOT) == []


def test_a_file_that_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("`docs/`, `bench/walls.py`, `reports/NAME/x.py`", encoding="utf-8")
    assert files_missing(tmp_path) == ["README.md: bench/walls.py"]


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "[there](docs/a.md) [gone](docs/b.md#part) [out](https://example.org/)", encoding="utf-8"
    )
    (tmp_path / "docs" / "a.md").write_text("[up](../README.md)", encoding="utf-8")
    assert broken_links(tmp_path) == ["README.md: docs/b.md"]
