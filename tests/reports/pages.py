"""Reads a report page as a browser would, and checks the rules that hold for every page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

LOADED = {"src", "srcset", "poster", "data", "action", "background"}
VOID = {"meta", "img", "br", "link", "hr", "input"}


class Reader(HTMLParser):
    """Collects the resources that a browser would load, links, ids, and tags left open."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in LOADED or (tag in ("link", "use", "image") and name.endswith("href")):
                self.loaded.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    return reader


def check_page(page: Path) -> str:
    """Asserts the rules for every page, and returns its text."""
    text, seen = page.read_text(encoding="utf-8"), read(page)
    assert all(value.startswith("data:") for value in seen.loaded), seen.loaded
    assert "script" not in seen.tags and "link" not in seen.tags and "iframe" not in seen.tags
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", text)
    assert not [link for link in seen.links if link.startswith(("http:", "https:", "//"))]
    assert not seen.wrong and not seen.open
    assert len(seen.ids) == len(set(seen.ids))
    for link in seen.links:
        if link.startswith("#"):
            assert link[1:] in seen.ids, link
        else:
            assert (page.parent / link).exists(), link
    assert sum(file.stat().st_size for file in page.parent.rglob("*") if file.is_file()) < 1_500_000
    return text
