"""Tests that a journal with arbitrary bytes is read as lines of the campaign's cells, or refused with the
place of the error.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.campaign import journal
from orchestrator.campaign.campaign import status

CELLS = [{"cell": "a"}, {"cell": "b"}]
DONE = {"cell": "b", "run_dir": "runs/b", "state": "complete", "wall_s": 2.0, "error": None, "suspect": None}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["a", ".."]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
LINES = st.fixed_dictionaries({}, optional=dict.fromkeys(DONE, VALUES)).map(lambda some: DONE | some)
BYTES = st.binary(max_size=80) | LINES.map(lambda line: json.dumps(line).encode() + b"\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("study")
    (directory / "runs").mkdir()
    journal.write_json(directory / "campaign.json", {"cells": CELLS, "files": {}})
    return directory


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(BYTES, max_size=4))
def test_any_journal_is_read_or_refused_with_its_place(place: Path, parts: list[bytes]) -> None:
    content = b"".join(parts)
    (place / "cells.jsonl").write_bytes(content)
    try:
        found = status(place)
    except journal.CampaignError as error:
        assert str(error).startswith(f"{place}/cells.jsonl"), error
    else:
        assert found.complete + found.left <= len(CELLS)
    assert (place / "cells.jsonl").read_bytes() == content, "a look changes nothing"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_campaign_document_is_refused_with_its_place(place: Path, content: bytes) -> None:
    kept = (place / "campaign.json").read_bytes()
    (place / "cells.jsonl").write_bytes(b"")
    (place / "campaign.json").write_bytes(content)
    try:
        with pytest.raises(journal.CampaignError) as raised:
            status(place)
        assert str(place) in str(raised.value)
    finally:
        (place / "campaign.json").write_bytes(kept)
