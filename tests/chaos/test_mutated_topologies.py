"""Tests that randomly changed shipped topologies give a plan, or problems with their rules and remedies."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from mutated_topologies import FOLDER, Mutator, corpus, tried

SEEDS = range(250)  # further seeds: make mutate


def test_a_changed_topology_is_planned_or_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "topologies")
    mutator = Mutator(corpus())
    for seed in SEEDS:
        name, document, said = mutator.changed(random.Random(seed))
        assert tried(name, document, folder) in ("planned", "refused"), f"seed {seed}: {name}: {said}"
