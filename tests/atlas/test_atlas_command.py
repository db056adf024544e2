"""Tests `vnet atlas` through the real command line: answers, exit statuses, errors and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_atlas import data_set

from orchestrator.cli.main import main
from reports.atlas.answer import share_surface, shares_in_time
from reports.atlas.axes import Place, coordinates
from reports.atlas.dataset import SHIPPED, read
from reports.atlas.page import DEADLINES, DELAYS, DUPLEX, LOSSES, RATES, RECEIVERS, SIZES, drawn

QUERY = ["--loss", "5 %", "--rate", "250 kbit/s", "--delay", "50 ms", "--deadline", "30 s"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_set(tmp_path_factory.mktemp("atlas") / "atlas.parquet")


def test_a_query_ranks_the_models_with_their_evidence(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "query", *QUERY, "--receivers", "30", "--data", str(data)]) == 0
    said = capsys.readouterr()
    assert "99 % in time: sure 1" in said.out
    assert "Nearest measurements: sure 1" in said.out and "sha256" in said.err


def test_the_answer_as_json_holds_estimates_intervals_and_neighbours(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*QUERY, "--receivers", "30", "--duplex", "half", "--size", "3 kB", "--tolerated-loss", "20 %"]
    assert main(["atlas", "query", *words, "--data", str(data), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["question"]["place"] == {
        "loss": 0.05, "rate_bps": 250e3, "delay_s": 0.05, "receivers": 30, "size_bytes": 3000.0,
        "duplex": "half",
    }  # fmt: skip
    assert found["question"]["needed"] == 0.8 and found["best"] in ("plain", "sure 1")
    for candidate in found["candidates"]:
        share = candidate["in_time"]
        assert share["low"] <= share["value"] <= share["high"] and len(candidate["neighbours"]) == 3


def test_outside_the_data_it_says_so_with_a_status_of_its_own(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["atlas", "query", *QUERY, "--receivers", "4000", "--data", str(data)]) == 6
    said = capsys.readouterr().out
    assert said.startswith("The atlas has no answer:") and "receivers: 4000 is outside" in said


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--loss", "-5 %"], 2, "cannot be negative"),
        (["--loss", "5"], 2, 'has no unit; write "5 %"'),
        (["--rate", "250 kB/s"], 2, "network rates are in bits"),
        (["--receivers", "0"], 2, "0 is not in the range x>=1"),
        (["--duplex", "quarter"], 2, "is not one of"),
        (["--model", "plian"], 2, '--model: "plian" is not in'),
        (["--data", "absent.parquet"], 3, "absent.parquet: is not there; `vnet atlas run` makes"),
    ],
)
def test_bad_input_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    given = ["atlas", "query", *QUERY, "--receivers", "30", "--data", str(data), *words]
    assert main(given) == status
    assert said in capsys.readouterr().err


def test_one_model_can_be_asked_for(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*QUERY, "--receivers", "30", "--model", "plain", "--json", "--data", str(data)]
    assert main(["atlas", "query", *words]) == 0
    assert [c["model"] for c in json.loads(capsys.readouterr().out)["candidates"]] == ["plain"]


def test_show_says_what_is_there_and_how_well_it_tells(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["atlas", "show", "--data", str(data), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["points"] == 64 and len(found["held_out"]) == 6
    assert main(["atlas", "show", "--data", str(data)]) == 0
    assert "runs: 128: plain 64, sure 1 64" in capsys.readouterr().out


def test_the_page_is_one_file_that_needs_no_network(data: Path, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "atlas.html"
    assert main(["atlas", "page", "--data", str(data), "--out", str(page)]) == 0
    text = page.read_text()
    assert "128 measured runs at 64 points" in text
    assert not [word for word in ("src=", "href=", "@import", "url(http", "fetch(") if word in text]
    embedded = text.split('<script type="application/json" id="atlas">')[1].split("</script>")[0]
    assert len(json.loads(embedded)["runs"]) == 128


def test_the_page_draws_what_a_query_answers(data: Path) -> None:
    import base64

    atlas = read(data)
    shown = drawn(atlas)
    shares = base64.b64decode(shown["shares"])
    sizes = [len(axis) for axis in (DUPLEX, SIZES, DELAYS, RECEIVERS, RATES, LOSSES)]
    per_model = 1
    for size in sizes:
        per_model *= size
    model, deadline, at = 1, 3, (1, 2, 1, 3, 5, 4)
    index = 0
    for size, where in zip(sizes, at, strict=True):
        index = index * size + where
    place = Place(LOSSES[4], RATES[5], DELAYS[1], RECEIVERS[3], SIZES[2], DUPLEX[1])
    rows = atlas.of(shown["models"][model])
    known = shares_in_time(rows, DEADLINES[deadline])
    assert known is not None
    value = share_surface(coordinates(rows), known).estimate(place.scaled()).value
    drawn_there = shares[(model * len(DEADLINES) + deadline) * per_model + index] / 255
    assert drawn_there == pytest.approx(value, abs=0.003)


def test_collecting_from_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "collect", str(tmp_path), "--data", str(tmp_path / "a.parquet")]) == 3
    assert "a campaign directory holds cells.jsonl" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_shipped_data_set_is_read_and_answers(capsys: pytest.CaptureFixture[str]) -> None:
    if not SHIPPED.exists():
        pytest.fail(f"{SHIPPED} is not there")
    atlas = read(SHIPPED)
    assert SHIPPED.stat().st_size < 5_000_000 and len(atlas.models) == 9
    assert main(["atlas", "query", *QUERY, "--receivers", "10"]) == 0


def test_running_without_files_needs_the_campaigns_that_ship(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["atlas", "run"]) == 3
    said = capsys.readouterr().err
    assert "topologies/atlas: not in the current directory; name the files of the campaigns" in said
    assert list(tmp_path.iterdir()) == []
