"""Tests that a campaign whose files were cut or changed is refused with place and remedy, and that the
refusal changes no file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign import cells, journal
from orchestrator.campaign.campaign import status

CELLS = [{"cell": "pair.loss-0.1%.who-['a',ä].r1"}, {"cell": "b"}, {"cell": "c"}]
DONE = {"cell": "b", "run_dir": "runs/b", "state": "complete", "wall_s": 2.0, "error": None, "suspect": None}
NOTE = {"cell": "c", "run_dir": "runs/c", "lab": "pair"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def no_lab(*_: Any, **__: Any) -> None:
        raise AssertionError("took a lab down")

    monkeypatch.setattr(cells, "take_down", no_lab)
    directory = tmp_path / "study"
    (directory / "runs" / "c").mkdir(parents=True)
    journal.write_json(directory / "campaign.json", {"cells": CELLS, "files": {}})
    journal.append(directory, DONE)
    return directory


def test_what_was_not_changed_is_read(place: Path) -> None:
    assert (status(place).complete, status(place).left, status(place).left_s) == (1, 2, 4.0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "[] is no mapping"),
        ("3", "3 is no mapping"),
        ("{}", "has no cell"),
        ({"cell": 3}, "cell: 3 is no name of a cell"),
        ({"cell": ".."}, 'cell: ".." is no name of a cell'),
        ({"cell": "../b"}, 'cell: "../b" is no name of a cell'),
        ({"state": ["complete"]}, 'state: ["complete"] is no text'),
        ({"run_dir": None}, "run_dir: null is no path below"),
        ({"run_dir": "/etc"}, 'run_dir: "/etc" is no path below'),
        ({"run_dir": "runs/../../x"}, "is no path below"),
        ({"run_dir": ""}, 'run_dir: "" is no path below'),
        ({"run_dir": "./"}, 'run_dir: "./" is no path below'),
        ({"wall_s": "2"}, 'wall_s: "2" is no time in seconds'),
        ({"wall_s": -2}, "wall_s: -2 is no time in seconds"),
        ({"wall_s": float("inf")}, "wall_s: Infinity is no time in seconds"),
        ({"wall_s": True}, "wall_s: true is no time in seconds"),
    ],
)
def test_a_line_that_was_changed_is_refused(place: Path, line: str | dict[str, Any], said: str) -> None:
    text = line if isinstance(line, str) else json.dumps(DONE | line)
    with (place / "cells.jsonl").open("a") as file:
        file.write(text + "\n")
    with pytest.raises(journal.CampaignError) as raised:
        status(place)
    words = str(raised.value)
    assert words.startswith(f"{place}/cells.jsonl:2: was changed: ") and said in words
    assert "remove the line" in words


def test_a_line_that_was_cut_counts_as_running(place: Path) -> None:
    for cut in (b'{"cell": "a", "st', b"\xff\xfe", b"[" * 100_000):
        (place / "cells.jsonl").write_bytes(cut + b"\n" + json.dumps(DONE).encode() + b"\n")
        assert (status(place).complete, status(place).left) == (1, 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is damaged"),
        ('{"cells": [{"cell": "a"}', "is damaged"),
        ("[]", "cells: is no list"),
        ("{}", "cells: is no list"),
        ('{"cells": 3}', "cells: is no list"),
        ('{"cells": [3]}', "cells[0]: was changed: 3 is no mapping"),
        ('{"cells": [{"cell": "a"}, {}]}', "cells[1]: was changed: has no cell"),
        ('{"cells": [{"cell": "../a"}]}', "is no name of a cell"),
        ('{"cells": [], "files": []}', "files: is no mapping"),
    ],
)
def test_a_campaign_that_was_changed_is_refused(place: Path, content: str, said: str) -> None:
    (place / "campaign.json").write_text(content)
    with pytest.raises(journal.CampaignError) as raised:
        status(place)
    assert str(raised.value).startswith(f"{place}/campaign.json: ") and said in str(raised.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run_dir": "../outside"}, "is no path below the campaign's directory"),
        ({"run_dir": ["runs"]}, "is no path below the campaign's directory"),
        ({"run_dir": "."}, "is no path below the campaign's directory"),
        ({"lab": "../../etc"}, "is no name of a lab"),
        ({"lab": None}, "lab: null is no name of a lab"),
        ({"slot": "../x"}, "is no number of a cell"),
    ],
)
def test_a_note_that_was_changed_takes_nothing_down(place: Path, change: dict[str, Any], said: str) -> None:
    (outside := place.parent / "outside").mkdir()
    journal.write_json(place / "running.json", NOTE | change)
    with pytest.raises(journal.CampaignError, match="remove this file") as raised:
        cells.recover(place)
    assert str(raised.value).startswith(f"{place}/running.json: was changed: ") and said in str(raised.value)
    assert list(outside.iterdir()) == []


def test_a_note_without_its_run_is_refused(place: Path) -> None:
    journal.write_json(place / "running.json", {"cell": "c"})
    with pytest.raises(journal.CampaignError, match="has no run_dir"):
        cells.recover(place)
