"""Tests published examples: the content that is left out of a page, and whether a drawing still has the same
labels.
"""

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
sys.path.insert(0, str(EXAMPLES))

import publish  # noqa: E402
import shrink  # noqa: E402

PAGE = """<html><span><a href="figures/a.svg">SVG</a><a href="figures/a.png">PNG</a>
<a href="tables/a.csv">CSV</a></span>
<a href="tables/nodes.csv">nodes.csv</a> <a href="../runs/x.r1/report/index.html">x.r1</a> 3.14159
<svg class="chart"><path d="M1.2,-1L10,0" opacity="0.25"/><text x="3.1">0.12345</text></svg></html>"""

COMMAND = publish.Command.read("VNET_SYSCALL_COST=100ns run x.yaml -p 'a=1 s' --time virtual")
RUN = publish.Command(["run", "--time", "virtual"])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Makes a run directory in virtual time with a page and two tables."""
    run = tmp_path / "run"
    (run / "report" / "tables").mkdir(parents=True)
    (run / "report" / "figures").mkdir()
    (run / "report" / "figures" / "a.png").write_bytes(bytes(10**6))
    (run / "report" / "index.html").write_text(PAGE)
    (run / "report" / "tables" / "a.csv").write_text("name,value\nx 1.5,0.123456789\ny,12345678\n")
    (run / "report" / "tables" / "nodes.csv").write_text("n,v\n" + "node1,0.25\n" * 20_000)
    write_manifest(run)
    return run


def write_manifest(run: Path, **changed: Any) -> None:
    manifest = {
        "time": "virtual",
        "state": "complete",
        "seed": 7,
        "inputs": {"agent": "ab"},
        "lab": "l",
        "run": "r",
    }
    (run / "manifest.json").write_text(json.dumps(manifest | changed))


def test_a_page_keeps_its_drawings_and_its_words(run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    shrink.page(run, tmp_path / "out")
    html = (tmp_path / "out" / "report" / "index.html").read_text()
    assert PAGE[PAGE.index("<svg") :] in html
    assert "3.14159\n" in html, "words are as they were"
    assert re.findall(r'href="([^"]*)"', html) == ["tables/a.csv", "tables/nodes.csv.gz"]
    assert "x.r1" in html, "a run is still named"
    kept = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert kept == {"report/index.html", "report/tables/a.csv", "report/tables/nodes.csv.gz"}
    tables = tmp_path / "out" / "report" / "tables"
    assert (tables / "a.csv").read_text() == "name,value\nx 1.5,0.123457\ny,12345678\n"
    assert gzip.decompress((tables / "nodes.csv.gz").read_bytes()).startswith(b"n,v\nnode1,0.25\n")


def test_an_example_says_what_made_it_and_keeps_its_readme(run: Path, tmp_path: Path) -> None:
    place = tmp_path / "examples" / "e"
    place.mkdir(parents=True)
    (place / "README.md").write_text("by hand")
    (place / "old.png").touch()
    total = publish.publish("e", COMMAND, run, place.parent)
    made = json.loads((place / "made.json").read_text())
    assert (made["command"], made["seeds"], made["inputs"]) == (
        "VNET_SYSCALL_COST=100ns vnet run x.yaml -p 'a=1 s' --time virtual",
        [7],
        {"agent": "ab"},
    )
    assert set(made["sources"]) == {"agent", "reducer", "kernel", "orchestrator", "capture", "reports"}
    assert (place / "README.md").read_text() == "by hand" and not (place / "old.png").exists()
    assert total == sum(p.stat().st_size for p in place.rglob("*") if p.is_file())
    again = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    publish.publish("e", COMMAND, run, place.parent)
    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == again


@pytest.mark.parametrize("changed", [{"time": "real"}, {"state": "interrupted"}])
def test_only_complete_runs_in_their_commands_time_are_published(
    run: Path, tmp_path: Path, changed: Any
) -> None:
    write_manifest(run, **changed)
    with pytest.raises(SystemExit, match=r"e: l/r: (time is real, must be virtual|state is interrupted)"):
        publish.publish("e", RUN, run, tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_an_example_in_real_time_is_made_of_its_programs_versions(run: Path) -> None:
    with pytest.raises(SystemExit, match="time is virtual, must be real"):
        publish.made_of("e", publish.Command(["run"]), run)
    write_manifest(run, time="real", inputs=None, versions={"java": "17"})
    assert publish.made_of("e", publish.Command(["run"]), run)["inputs"] == {"java": "17"}


def test_a_cell_that_was_interrupted_and_run_again_is_published_by_its_last_run(run: Path) -> None:
    for name, state in (("a", "interrupted"), ("a-2", "complete")):
        (run / "runs" / name).mkdir(parents=True)
        write_manifest(run / "runs" / name, state=state)
        with (run / "cells.jsonl").open("a") as journal:
            journal.write(json.dumps({"cell": "a", "run_dir": f"runs/{name}", "state": state}) + "\n")
    (run / "manifest.json").unlink()
    assert publish.made_of("e", RUN, run)["runs"] == 1


def test_a_large_example_is_refused_with_its_largest_files(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "MOST_BYTES", 1000)
    with pytest.raises(SystemExit, match=r"at most 1,000; the largest: made.json"):
        publish.publish("e", RUN, run, tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []


def test_sources_that_moved_are_named(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "listed", lambda: {"e": RUN})
    (line,) = publish.moved(tmp_path)
    assert line.startswith(
        "e: made by other sources of agent, reducer, kernel, orchestrator, capture, reports;"
    )
    publish.publish("e", RUN, run, tmp_path)
    assert publish.moved(tmp_path) == []
    made = json.loads((tmp_path / "e" / "made.json").read_text())
    made["sources"]["reports"] = "other"
    (tmp_path / "e" / "made.json").write_text(json.dumps(made))
    assert publish.moved(tmp_path) == ["e: made by other sources of reports; make examples EXAMPLES=e"]


@pytest.mark.parametrize(
    ("text", "words", "environment"),
    [
        ("run x.yaml -p a=1", ["run", "x.yaml", "-p", "a=1"], {}),
        ("A=1 B='2 s' run x.yaml", ["run", "x.yaml"], {"A": "1", "B": "2 s"}),
        ("A= run", ["run"], {"A": ""}),
        ("1A=1 run", ["1A=1", "run"], {}),
    ],
)
def test_a_command_begins_with_its_environment(
    text: str, words: list[str], environment: dict[str, str]
) -> None:
    command = publish.Command.read(text)
    assert (command.words, command.environment) == (words, environment)
    assert publish.Command.read(str(command).replace("vnet ", "", 1)) == command


def test_a_command_runs_with_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "vnet"
    program.write_text('#!/bin/sh\necho "$VNET_SYSCALL_COST:$HOME:$*"\nexit "${STATUS:-0}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(publish, "VNET", program)
    monkeypatch.setenv("HOME", "/home/of/us")
    publish.run(COMMAND, tmp_path / "o")
    words = f"run x.yaml -p a=1 s --time virtual --out {tmp_path / 'o'}"
    assert capfd.readouterr().err == f"100ns:/home/of/us:{words}\n"
    with pytest.raises(SystemExit, match="status 3 of STATUS=3 vnet run: it says why above"):
        publish.run(publish.Command.read("STATUS=3 run"), tmp_path)
