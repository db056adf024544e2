"""Tests blocks of cells in random order: the journal records the order first, and a resumed campaign keeps
it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract import manifest
from orchestrator.campaign import cells, journal
from orchestrator.campaign.campaign import run_campaign
from orchestrator.campaign.settings import Settings
from orchestrator.run.run import Outcome
from orchestrator.topology import load_campaign

PAIR = Path(__file__).resolve().parents[2] / "topologies" / "pair.yaml"
FILE = f"""\
name: shuffled
campaign:
  topologies: [{PAIR}]
  factors: {{hold: [1 s, 2 s]}}
  repetitions: 2
  order: random
"""


def execute(_prepared: Any, run_dir: Path, _observe: Any, **_: Any) -> Outcome:
    """Writes a complete run at once, in place of a lab."""
    manifest.write(run_dir, {"state": "complete", "warnings": []})
    return Outcome(run_dir, "complete", False, None, (), None)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(cells, "execute", execute)
    monkeypatch.setenv("VNET_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("VNET_AGENT", "/bin/true")
    (tmp_path / "c.yaml").write_text(FILE)
    return Settings(tmp_path / "c.yaml", {}, "fake")


def stopping_after(count: int) -> Any:
    ended = 0

    def observe(event: dict[str, Any]) -> None:
        nonlocal ended
        ended += event.get("event") == "cell-end"
        if ended == count:
            raise KeyboardInterrupt

    return observe


def test_the_order_is_recorded_and_a_stopped_campaign_goes_on_in_it(
    settings: Settings, tmp_path: Path
) -> None:
    out, wanted = tmp_path / "out", [cell.name for cell in load_campaign(settings.file).cells]
    with pytest.raises(KeyboardInterrupt):
        run_campaign(settings, out, stopping_after(3), page=False)
    begun = json.loads((out / "campaign.json").read_text())
    assert [cell["cell"] for cell in begun["cells"]] == wanted
    assert begun["order"] == {"kind": "random", "seed": 1}
    assert run_campaign(settings, out, lambda _: None, page=False).complete == 4
    lines = journal.lines(out)
    assert [(line["number"], line["cell"]) for line in lines] == list(enumerate(wanted, 1))
