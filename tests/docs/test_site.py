"""Tests the documentation site: links lead somewhere, nothing is loaded from other servers, search finds
pages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"' >]*)")
CODE = re.compile(r'<div class="highlight">.*?</div>|<code>.*?</code>', re.DOTALL)
UNREAD = re.compile(
    r"^\s*(?:[-*|]|\d+\.) |```", re.MULTILINE
)  # a list, table or code that was taken for text


def build(site: Path, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site), *options]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the site strictly: mkdocs fails at a broken link or anchor, and at a page in no menu."""
    made = tmp_path_factory.mktemp("site")
    done = build(made)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_a_link_or_an_anchor_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# One\n[gone](gone.md), [no part](#two), [part](#one)\n")
    own = f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: pages\nwatch: []\nhooks: []\nnav: []\nplugins: []\n"
    (tmp_path / "mkdocs.yml").write_text(own)
    done = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert done.returncode == 1 and done.stderr.count("WARNING -  Doc file") == 2, done.stderr


def texts(site: Path, suffix: str = "html") -> dict[str, str]:
    return {str(path.relative_to(site)): path.read_text() for path in sorted(site.rglob(f"*.{suffix}"))}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert {name: found for name, text in texts(site).items() if (found := LOADED.findall(text))} == {}
    styles = texts(site, "css").items()
    assert [name for name, text in styles if re.search(r"url\([\"']?(https?:)?//|@import", text)] == []


def test_lists_tables_and_code_are_read_as_such(site: Path) -> None:
    pages = {name: CODE.sub("", text) for name, text in texts(site).items() if "/report/" not in name}
    parts = {name: re.findall(r"<p>(.*?)</p>", text, re.DOTALL) for name, text in pages.items()}
    assert [(name, part[:80]) for name, found in parts.items() for part in found if UNREAD.search(part)] == []


def test_the_reference_has_every_command_and_search_finds_it(site: Path) -> None:
    page = (site / "docs/reference/commands.html").read_text()
    assert [name for name in COMMANDS if f'id="vnet-{name}"' not in page] == []
    entries = json.loads((site / "search/search_index.json").read_text())["docs"]
    assert any(entry["location"] == "docs/reference/commands.html#vnet-campaign-run" for entry in entries)
    assert "vnet.Topology" in (site / "docs/reference/python.html").read_text()


def test_a_link_to_a_file_of_source_leads_to_a_page_that_shows_it(site: Path) -> None:
    assert 'href="../topologies/trace.yaml.html"' in (site / "docs/networks.html").read_text()
    assert "walk.csv" in (site / "topologies/trace.yaml.html").read_text()
    assert (site / "docs/examples/dumbbell/report/index.html").exists()
