"""Tests that the JSON Schema, the reference page and the shipped files agree with one model."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from malformed import BASE, CASES
from ruamel.yaml import YAML

from orchestrator.topology import load, load_campaign
from orchestrator.topology.key_reference import page
from orchestrator.topology.schema import campaign_json_schema, json_schema

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "topologies").glob("*.yaml"))
CAMPAIGNS = [path for path in SHIPPED if "\nsegments:" not in path.read_text()]


def _plain(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


@cache
def _validator(of_campaigns: bool) -> jsonschema.Draft202012Validator:
    """Returns a validator; checks the schema itself only once, because that takes as long as a
    dozen files.
    """
    schema = campaign_json_schema() if of_campaigns else json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_are_right(path: Path) -> None:
    _validator(path in CAMPAIGNS).validate(_plain(path.read_text()))
    if path in CAMPAIGNS:
        assert load_campaign(path).cells
    else:
        assert load(path).name == path.stem


def test_the_schema_is_one_and_takes_parameters_anywhere() -> None:
    _validator(of_campaigns=False).validate(_plain(BASE))


def test_the_schema_refuses_much_of_what_the_parser_refuses() -> None:
    names = {
        "unknown key",
        "delay without unit",
        "qos text",
        "rate in bytes",
        "MTU text",
        "kind jail",
        "seed text",
    }
    validator = _validator(of_campaigns=False)
    chosen = [case for case in CASES if case.name in names]
    assert len(chosen) == len(names)
    for case in chosen:
        assert not validator.is_valid(_plain(BASE.replace(case.old, case.new, 1))), case.name


def test_the_reference_page_is_current() -> None:
    written = (ROOT / "docs" / "topology.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m orchestrator.topology.key_reference > docs/topology.md"


def test_importing_the_package_loads_neither_yaml_nor_pydantic() -> None:
    code = "import sys, orchestrator.topology, contract.plan; m = sys.modules\n"
    code += "print('pydantic' in m, 'ruamel.yaml' in m)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("name", "schema", "option"),
    [("topology", json_schema(), ""), ("campaign", campaign_json_schema(), " --campaign")],
)
def test_the_published_schemas_are_current(name: str, schema: dict[str, Any], option: str) -> None:
    published = ROOT / "topologies" / f"{name}.schema.json"
    assert json.loads(published.read_text()) == schema, f"run: vnet schema{option} > {published}"
