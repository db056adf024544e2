"""Tests that the gallery lists every shipped topology, gives the results of its runs, and has
valid commands.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/examples"))

import gallery  # noqa: E402

from orchestrator.topology.loading import load  # noqa: E402

ENTRIES = gallery.listed()
RUN = [name for name, entry in ENTRIES.items() if not {"campaign", "instead"} & entry.keys()]


def test_every_topology_that_ships_is_in_it() -> None:
    shipped = {path.relative_to(ROOT / "topologies") for path in (ROOT / "topologies").rglob("*.yaml")}
    of_campaigns = {Path("papers/profiles"), Path("mqtt-conformance"), Path("hunt")}  # on campaigns' pages
    alone = [path for path in shipped if not of_campaigns & set(path.parents)]
    assert {str(path.with_suffix("")) for path in alone} == set(ENTRIES)


def test_the_page_is_what_the_list_and_the_runs_say() -> None:
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "make gallery GALLERY=NAME, or --page"


def test_every_network_has_its_picture_and_every_run_its_figures() -> None:
    networks = {gallery.label(name) for name, entry in ENTRIES.items() if "campaign" not in entry}
    assert {path.stem for path in gallery.PICTURES.iterdir()} == networks
    assert list(gallery.said()) == RUN


@pytest.mark.parametrize("name", RUN)
def test_a_command_fits_its_file(name: str) -> None:
    given = shlex.split(ENTRIES[name].get("with", ""))
    assert given[::2] == ["-p"] * (len(given) // 2)
    load(ROOT / "topologies" / f"{name}.yaml", dict(word.split("=", 1) for word in given[1::2]))
