"""Tests the page's section on where the time of the slowest message of each class went."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "capture"))
import pytest
from rundirs import T0, S
from why_runs import at, message, why_run

from reports.sections import why
from reports.sections.section import Page
from reports.study import study_of_run

SEEN = {
    "a": [at(0, "ac", message(0)), at(10, "ac", message(1))],
    "c": [at(10_142, "ac", message(0)), at(20_200, "ac", b"<" * 900), at(20_384, "ac", message(1))],
}
SENT = [{"sent": 0, "received": 10_150}, {"sent": 10, "received": 20_400, "seq": 1}]


def body(run: Path) -> str | None:
    """Returns the section's HTML for a run whose hold has both messages; None if there is no section."""
    phases = {"ramp": [T0 - S, T0], "hold": [T0, T0 + S], "drain": [T0 + S, T0 + S]}
    about = {"state": "complete", "warnings": [], "phases": phases}
    (run / "manifest.json").write_text(json.dumps(about))
    part = why.section(Page(study_of_run(run), run / "report"))
    return None if part is None else str(part.body)


def test_the_slowest_of_a_class_has_its_waterfall(tmp_path: Path) -> None:
    text = body(why_run(tmp_path, SEEN, SENT))
    assert text is not None and "Slowest of class meter: a.meter:1 to c: 20.4 ms" in text
    assert "link way forward, behind a" in text and "a.meter:0" not in text and text.count("<rect") == 5


def test_without_kept_captures_there_is_no_section(tmp_path: Path) -> None:
    assert body(why_run(tmp_path, {}, SENT)) is None


def test_captures_that_are_too_large_or_damaged_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = why_run(tmp_path, SEEN, SENT)
    monkeypatch.setattr(why, "MOST_BYTES", 100)
    text = body(run)
    assert text is not None and "Not divided: the captures have 0 MB, which takes too long" in text
    monkeypatch.undo()
    (run / "pcap" / "c.pcap").write_bytes(b"no pcap" * 9)
    text = body(run)
    assert text is not None and "Not divided:" in text and "is no pcap file" in text
