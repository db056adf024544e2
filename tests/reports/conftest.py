"""Speeds up tests of pages, which mostly draw the same figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[None]:
    """Draws each chart only once in a session, because its SVG depends only on its definition."""
    known: dict[str, str] = {}
    really = vl_convert.vegalite_to_svg

    def draw(spec: dict[str, Any], **how: Any) -> str:
        key = json.dumps([spec, how], sort_keys=True)
        if key not in known:
            known[key] = really(spec, **how)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", draw)
        yield
