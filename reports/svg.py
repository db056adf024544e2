"""Prepares SVG drawings for the page: fewer bytes, unique ids, a flexible size, colours that a dark page can
replace.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from contract import regular

OPENING = re.compile(r'^<svg [^>]*?width="([\d.]+)" height="([\d.]+)"[^>]*?viewBox="([^"]+)"[^>]*>')
NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
SHAPES = re.compile(r' (?:d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*\.\d{2}[^"]*"')
USELESS = re.compile(
    r' pointer-events="none"| aria-(?:label|roledescription|hidden)="[^"]*"| role="graphics-[a-z]+"'
    r'| (?:stroke-|fill-)?opacity="1"| class="(?:mark-[a-z]+ )?role-[a-z- ]+"| stroke-miterlimit="10"'
)
EMPTY = re.compile(
    r'<path class="(?:background|foreground)"(?: [a-z-]+="[^"]*")*? display="none"/>'
    r'|<path class="background" d="M0,0h0v0h0Z"/>'
)
LARGEST = 1.4  # largest factor by which a drawing is enlarged; more would make the letters too large
FONT = re.compile(r' font-family="([^"]+)"')
BACKGROUND = re.compile(r'(<svg [^>]*>)<rect [^>]*fill="white"[^>]*/>')


def slim(svg: str) -> str:
    """Returns the same drawing in fewer bytes: coordinates to tenths of a pixel, a single font name, and no
    invisible elements.
    """
    text = EMPTY.sub("", USELESS.sub("", svg))
    text = SHAPES.sub(lambda found: NUMBER.sub(_tenth, found.group(0)), text)
    fonts = set(FONT.findall(text))
    if len(fonts) == 1:
        text = FONT.sub("", text).replace("<svg ", f'<svg font-family="{fonts.pop()}" ', 1)
    return text


def _tenth(found: re.Match[str]) -> str:
    return f"{float(found.group(0)):.1f}".removesuffix(".0")


def inline(svg: str, key: str, label: str) -> str:
    """Returns the SVG for the page, without its white background. Its ids begin with `key`; `label` is its
    text for screen readers; it grows with its place up to LARGEST times its drawn width.

    ValueError if the text does not begin with an SVG element of known size.
    """
    text = BACKGROUND.sub(r"\1", svg, count=1)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", text)
    found = OPENING.match(text)
    if found is None:
        raise ValueError(f"figure {key}: the drawing does not begin with an SVG element of known size")
    width, _, box = found.groups()
    head = (
        f'<svg class="chart" viewBox="{box}" style="max-width:{LARGEST * float(width):.0f}px" role="img" '
        f'aria-label="{_attribute(label)}">'
    )
    return head + text[found.end() :]


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def data_uri(path: Path) -> str | None:
    """Returns an SVG file as a data URI for an image element, in which no script runs; None if there is no
    file.
    """
    try:
        content = regular.read_bytes(path)
    except FileNotFoundError:
        return None
    return "data:image/svg+xml;base64," + base64.b64encode(content).decode("ascii")
