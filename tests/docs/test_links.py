"""Links between pages, and the pages that code and error texts name, lead somewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
NAMED = re.compile(r"docs/[\w/.-]+\.md")


def broken_links(root: Path) -> list[str]:
    """`page: link` of every relative link in README.md and docs that leads to no file."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found = [(page, link) for page in pages for link in LINK.findall(page.read_text(encoding="utf-8"))]
    local = [(page, link) for page, link in found if "://" not in link and not link.startswith("mailto:")]
    return [f"{page.relative_to(root)}: {link}" for page, link in local if not (page.parent / link).exists()]


def test_links_between_pages_lead_to_files() -> None:
    assert broken_links(ROOT) == []


def test_pages_named_in_code_exist() -> None:
    sources = [
        path
        for top in ("orchestrator", "capture", "reports", "images", "bench")
        for path in (ROOT / top).rglob("*")
    ]
    texts = [path for path in sources if path.suffix in {".py", ".rs", ".sh", ".j2"}]
    named = {(path, page) for path in texts for page in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert [
        f"{path.relative_to(ROOT)}: {page}" for path, page in sorted(named) if not (ROOT / page).exists()
    ] == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "[there](docs/a.md) [gone](docs/b.md#part) [out](https://example.org/)", encoding="utf-8"
    )
    (tmp_path / "docs" / "a.md").write_text("[up](../README.md)", encoding="utf-8")
    assert broken_links(tmp_path) == ["README.md: docs/b.md"]
