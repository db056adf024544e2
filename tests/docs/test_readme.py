"""Tests the README: it fits a screen, its file of ten lines and its command work, and its picture shows that
file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from printed import ROOT, blocks

sys.path[:0] = [str(ROOT / "tests/virtual"), str(ROOT / "tests/cli")]
from virtual_place import kernel_missing  # noqa: E402

README = ROOT / "README.md"
PICTURE = ROOT / "docs/images/meters.svg"
MOST_LINES = 80
FILE = next(block for block in blocks() if block.page == "README.md" and block.info.startswith("yaml"))
COMMAND = next(
    line
    for block in blocks()
    if block.page == "README.md"
    for line in block.commands()
    if line.startswith(".venv/bin/vnet run")
)


def test_it_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert FILE.info == 'yaml title="meters.yaml"' and len(FILE.lines()) <= 10


def test_it_leads_to_the_four_kinds_of_docs_and_to_the_papers() -> None:
    text = README.read_text(encoding="utf-8")
    places = [f"docs/{place}/README.md" for place in ("tutorial", "how-to", "reference", "explanation")]
    assert [place for place in (*places, "docs/papers.md") if f"({place})" not in text] == []


def test_the_licence_is_the_one_that_the_packages_state() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]["text"]
    assert tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["license"] == stated
    assert stated in README.read_text(encoding="utf-8")
    first, second = (ROOT / "LICENSE").read_text(encoding="utf-8").split("\n", 3)[1:3]
    assert (first.strip(), second.split(",")[0].strip()) == ("Apache License", "Version 2.0")


def words(svg: str) -> list[str]:
    """Returns the labels of a drawing; their positions depend on graphviz's version."""
    return sorted(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_its_picture_is_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "meters.yaml").write_text(FILE.text)
    vnet = Path(sys.executable).with_name("vnet")
    subprocess.run([vnet, "graph", "meters.yaml", "-o", "meters.svg"], cwd=tmp_path, check=True)
    remedy = "draw it again: `vnet graph meters.yaml -o docs/images/meters.svg`"
    assert words((tmp_path / "meters.svg").read_text()) == words(PICTURE.read_text()), remedy


def printed(unit: str) -> str:
    """Returns the number that README.md prints before these words."""
    found = re.search(rf"([\d,.]+)\s+{unit}", README.read_text(encoding="utf-8"))
    assert found is not None, unit
    return found[1]


def take(page: Path, file: Path) -> None:
    """Saves the first screen of a report as the picture of docs/report.md (`make pictures`)."""
    from browser import browser

    with browser() as opened:
        window = opened()
        window.goto(page.as_uri())
        window.screenshot(path=file)


@pytest.mark.skipif(kernel_missing() is not None, reason=str(kernel_missing()))
def test_the_command_does_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "meters.yaml").write_text(FILE.text)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/vnet").symlink_to(Path(sys.executable).with_name("vnet"))
    done = subprocess.run(
        ["bash", "-c", COMMAND], cwd=tmp_path, env=os.environ | {"VNET_STATE_DIR": str(tmp_path / "state")},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    (page,) = tmp_path.glob("results/meters/*/report/index.html")
    if (pictures := os.environ.get("VNET_PICTURES")) is not None:
        take(page, Path(pictures) / "report.png")
    run = page.parents[1]
    assert json.loads((run / "manifest.json").read_text())["suspect"] is False
    proof = json.loads((run / "proof.json").read_text())
    assert {one["verdict"] for one in proof} == {"holds"}
    figures = {one["name"]: one["value"] for one in json.loads((run / "summary.json").read_text())}
    assert f"{figures['messages_sent']:,.0f}" == printed("messages were sent")
    assert figures["messages_received"] == figures["messages_sent"] and figures["messages_lost"] == 0
    assert f"{figures['latency_p50']:.0f}" == printed("ms\\.")
