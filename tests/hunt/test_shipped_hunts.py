"""Tests the files of topologies/hunt: each reproduction is the file of its system with a few of the events
that the hunt may draw.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.hunt.checking import faults
from orchestrator.hunt.model import kind_of
from orchestrator.language.source import read_document
from orchestrator.topology import load

SHIPPED = Path(__file__).parents[2] / "topologies" / "hunt"
PAGE = Path(__file__).parents[2] / "docs" / "hunt.md"


def content(path: Path) -> dict[str, Any]:
    """Returns a YAML file's content as plain Python values."""
    data: dict[str, Any] = read_document(path.name, path.read_bytes()).data
    return data


FILES = {path.stem: content(path) for path in sorted(SHIPPED.glob("*.yaml"))}
SYSTEMS = [name for name, data in FILES.items() if "hunt" in data]
FOUND = [name for name in FILES if name not in SYSTEMS]


def system_of(name: str) -> str:
    """Returns the system that a reproduction belongs to: the longest system name with which the
    reproduction's name begins.
    """
    return max((one for one in SYSTEMS if name.startswith(f"{one}-")), key=len)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_states_what_it_expects_and_the_page_names_it(name: str) -> None:
    assert FILES[name]["expect"] and f"topologies/hunt/{name}.yaml" in PAGE.read_text()
    assert faults(load(SHIPPED / f"{name}.yaml", {}))


@pytest.mark.parametrize("name", FOUND)
def test_a_reproduction_has_at_most_three_events_of_its_systems_space(name: str) -> None:
    hunted, found = FILES[system_of(name)], FILES[name]
    kinds = {kind_of(fault) for fault in faults(load(SHIPPED / f"{system_of(name)}.yaml", {}))}
    own = [event for event in found["timeline"] if event not in hunted.get("timeline", ())]
    assert 1 <= len(own) <= 3 and {kind_of(event) for event in own} <= kinds
    assert found["expect"] == hunted["expect"] and "hunt" not in found
    for section in ("segments", "nodes", "links", "parameters"):
        assert (found.get(section) or {}).items() <= (hunted.get(section) or {}).items()
    begin = (SHIPPED / f"{name}.yaml").read_text().partition("name:")[0]
    assert "https://" in begin and "Found by `vnet hunt`" in begin and "# Breaks: " in begin
    assert load(SHIPPED / f"{name}.yaml", {}).seed == found["seed"]
