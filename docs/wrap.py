"""Wraps the lines of README.md and the pages at 100 characters (`make format`).

    wrap.py [PAGE...]            rewrites pages with longer lines of text (default: all)
    wrap.py --check [PAGE...]    names them; status 1 where there are some

Only text is wrapped: paragraphs and items of lists. Tables, code, headings, HTML and generated pages stay.
Spans of code are never broken, and no line begins with a character that Markdown does not read as text.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100
GENERATED = (
    "docs/topology.md",
    "docs/gallery.md",
    "docs/reproductions.md",
    "docs/contracts/operations.md",
    *(f"docs/contracts/{name}.md" for name in ("plan", "manifest", "tables")),
)
ITEM = re.compile(r"(?:[-*+]|\d+[.)]) +")
# Beginnings of lines that are no paragraphs: headings, tables, quotes, HTML, images, definitions of links.
OTHER = re.compile(r"#{1,6} |\||>|<|!\[|\[[^\]]+\]: |(?:[-*_] ?){3,}$|:::")
FENCE = re.compile(r"```|~~~")
# Matches a word; a span of code or a comment in it is not split at its spaces.
WORD = re.compile(r"(?:<!--.*?-->|`+[^`]*`+|[^\s`])+|`")
SIGN = re.compile(r"[-*+#>|=]|\d+[.)]$|`{3}|~{3}|<|:::")


def wrapped(text: str) -> str:
    """Returns the page with paragraphs and list items wrapped to WIDTH where words allow."""
    return "".join(_blocks(text.splitlines(keepends=True)))


def _blocks(lines: list[str]) -> Iterator[str]:
    block: list[str] = []
    inside = ""  # the fence or the comment that is open
    for line in lines:
        bare = line.strip()
        if inside:
            yield line
            inside = "" if _ends(inside, bare) else inside
        elif FENCE.match(bare) or (bare.startswith("<!--") and "-->" not in bare):
            yield from _paragraph(block)
            block = []
            yield line
            inside = bare[:3] if FENCE.match(bare) else "<!--"
        elif not bare or OTHER.match(bare) or (ITEM.match(bare) and block):
            yield from _paragraph(block)
            block = [line] if ITEM.match(bare) and not OTHER.match(bare) else []
            if not block:
                yield line
        else:
            block.append(line)
    yield from _paragraph(block)


def _ends(inside: str, bare: str) -> bool:
    return "-->" in bare if inside == "<!--" else bare.startswith(inside) and not bare.strip("`~")


def _paragraph(block: list[str]) -> Iterator[str]:
    """Wraps one paragraph or list item; leaves it if no line is too long, or a line ends with a hard
    break.
    """
    long = any(len(line.rstrip("\n")) > WIDTH for line in block)
    if not long or any(line.rstrip("\n").endswith(("  ", "\\")) for line in block):
        yield from block
        return
    first = block[0]
    indent = first[: len(first) - len(first.lstrip(" "))]
    mark = found[0] if (found := ITEM.match(first.lstrip(" "))) else ""
    after = indent + " " * len(mark)
    yield from _lines(indent + mark, after, " ".join(line.strip() for line in block)[len(mark) :])


def _lines(before: str, after: str, text: str) -> Iterator[str]:
    line = before
    words = WORD.findall(text)
    for word, following in zip(words, [*words[1:], ""], strict=True):
        empty = line in (before, after)
        # A word that Markdown would read as a mark at the beginning of a line stays on the line before.
        room = WIDTH - (len(following) + 1 if SIGN.match(following) else 0)
        if not empty and len(line) + 1 + len(word) > room and not SIGN.match(word):
            yield line + "\n"
            line, empty = after, True
        line += word if empty else f" {word}"
    yield line + "\n"


def pages() -> list[Path]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if str(page.relative_to(ROOT)) not in GENERATED]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    changed = 0
    for page in options.pages or pages():
        before = page.read_text(encoding="utf-8")
        if (after := wrapped(before)) != before:
            changed += 1
            print(f"wrap: {page}: {'has longer lines' if options.check else 'wrapped'}")
            if not options.check:
                page.write_text(after, encoding="utf-8")
    raise SystemExit(1 if options.check and changed else 0)


if __name__ == "__main__":
    main()
