"""Tests a campaign's cells and the snapshots of their machines: which cells share them, and what a kill
leaves.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_running import needs_vm, until

from orchestrator.campaign.settings import Settings
from orchestrator.campaign.snapshots import sharing_machines, snapshots
from orchestrator.topology import load_campaign

ROOT = Path(__file__).parents[2]
NAME = f"vmcells-{os.getpid()}"
LAB = """\
name: {name}
parameters:
  memory: {{type: text, default: 112 MiB}}
  hold: {{type: duration, default: 1 s}}
segments: {{lan: {{subnet: 10.9.0.0/24}}}}
nodes:
  a: {{segment: lan, kind: {kind}{memory}, boot_within: 240 s}}
  b: {{segment: lan}}
run: {{hold: "${{hold}}", drain: 1 s}}
campaign: {{factors: {factors}, repetitions: {repetitions}{more}}}
"""


LIGHT = (', memory: "${memory}", boot_within: 240 s', "  memory: {type: text, default: 112 MiB}\n")


def write(path: Path, factors: str = "{}", repetitions: int = 1, kind: str = "vm", more: str = "") -> Path:
    memory = ', memory: "${memory}"'
    text = LAB.format(
        name=NAME, kind=kind, memory=memory, factors=factors, repetitions=repetitions, more=more
    )
    for part in LIGHT if kind == "light" else ():
        text = text.replace(part, "")
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("wanted", "sharing"),
    [
        ({"repetitions": 2}, [0, 1]),
        ({"repetitions": 1}, []),
        ({"factors": "{hold: [1 s, 2 s]}"}, [0, 1]),
        ({"factors": "{memory: [112 MiB, 128 MiB]}"}, []),
        ({"factors": "{memory: [112 MiB, 128 MiB], hold: [1 s, 2 s]}"}, [0, 1, 2, 3]),
        ({"repetitions": 2, "kind": "light"}, []),
    ],
)
def test_cells_share_snapshots_where_another_has_the_same_machine(
    tmp_path: Path, wanted: dict[str, Any], sharing: list[int]
) -> None:
    file = write(tmp_path / "c.yaml", **wanted)
    cells = load_campaign(file).cells
    assert sharing_machines(Settings(file, {}), cells) == sharing
    assert sharing_machines(Settings(file, {}), cells[:1]) == [], "the last one left has nobody to share with"


def test_snapshots_are_of_one_sitting(tmp_path: Path) -> None:
    campaign = load_campaign(write(tmp_path / "c.yaml", repetitions=2))
    settings, out = Settings(tmp_path / "c.yaml", {}), tmp_path / "out"
    (out / "snapshots" / "old").mkdir(parents=True)
    with pytest.raises(KeyboardInterrupt), snapshots(out, settings, campaign.cells, campaign.boot) as places:
        assert places == {0: out / "snapshots", 1: out / "snapshots"}
        assert list((out / "snapshots").iterdir()) == [], "what a kill has left is not trusted"
        raise KeyboardInterrupt
    assert not (out / "snapshots").exists()


def test_the_file_may_ask_for_a_boot_in_each_cell(tmp_path: Path) -> None:
    campaign = load_campaign(write(tmp_path / "c.yaml", repetitions=2, more=", boot: each"))
    with snapshots(tmp_path, Settings(tmp_path / "c.yaml", {}), campaign.cells, campaign.boot) as places:
        assert places == {} and not (tmp_path / "snapshots").exists()


class Place:
    """A campaign in a directory of its own, and the command line in it."""

    def __init__(self) -> None:
        # The path is short, because QEMU's sockets are deep below it.
        self.top = Path(tempfile.mkdtemp(prefix="vc"))
        self.top.chmod(0o711)  # lets QEMU's account enter the directory
        self.out = self.top / "out"
        self.env = {**os.environ, "PYTHONPATH": str(ROOT), "VNET_STATE_DIR": str(self.top / "s")}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
        return subprocess.Popen(
            command, cwd=self.top, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def starts(self) -> list[tuple[str, str]]:
        """Returns, for every ended run, oldest first, its state and how its machine started."""
        found = []
        for line in (self.out / "cells.jsonl").read_text().splitlines():
            file = self.out / json.loads(line)["run_dir"] / "manifest.json"
            manifest = json.loads(file.read_text()) if file.exists() else {}
            how = manifest.get("starts", {}).get("nodes", {}).get("a", "")
            found.append((json.loads(line)["state"], how))
        return found


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main", "down", NAME],
        env=made.env, cwd=made.top, check=False, capture_output=True,
    )  # fmt: skip
    shutil.rmtree(made.top)


@needs_vm
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.sweep  # test_vm_snapshots.py restores machines; the tests above check which cells may
def test_a_killed_campaign_boots_anew_and_the_cells_after_it_do_not(place: Place) -> None:
    file = write(place.top / "vmcells.yaml", repetitions=4)
    process = place.start("campaign", "run", str(file), "--out", str(place.out))
    running = place.out / "running.json"

    def second_runs() -> bool:
        assert process.poll() is None, process.communicate()
        lines = (place.out / "cells.jsonl").read_text() if (place.out / "cells.jsonl").exists() else ""
        return bool(lines) and running.exists()

    until(240, "the second cell", second_runs)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert any(place.out.glob("snapshots/*/kept.json")), "the first cell kept its machine"

    process = place.start("campaign", "run", str(place.out))
    _, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    assert not (place.out / "snapshots").exists()
    complete = [how for state, how in place.starts() if state == "complete"]
    assert complete == ["kept", "kept", "restored", "restored"], place.starts()
