"""Tests of pages: drawing takes most of their time, and most of their runs have the same figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[None]:
    """The same chart is drawn once a session: what is drawn depends on its definition alone."""
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
