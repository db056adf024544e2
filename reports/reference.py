"""The published results that a report compares with, read from their YAML copy."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent / "reference"


@functools.cache
def reference(name: str = "vnet_2014") -> dict[str, Any]:
    """The reference of that name; FileNotFoundError names the ones that exist."""
    path = HERE / f"{name}.yaml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in HERE.glob("*.yaml")))
        raise FileNotFoundError(f"{name}: no such reference; known are {known}")
    with path.open(encoding="utf-8") as file:
        return dict(YAML(typ="safe").load(file))


def table_ii() -> dict[int, dict[str, float]]:
    """Table II: QoS level to mean CPU in % of a node and of the host."""
    rows = reference()["mqtt_scenarios"]["table_ii_cpu_percent"]
    return {int(name.removeprefix("qos")): dict(values) for name, values in rows.items()}


def published(figure: str) -> str:
    """The paper's claim for a figure number, in the reference's words; empty where it makes none."""
    claims = reference()["mqtt_scenarios"]["claims"]
    return "; ".join(c["claim"] for c in claims if figure in str(c["figure"]).split(", "))
