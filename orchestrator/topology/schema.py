"""Makes the JSON Schema of topology files for editors, from the same model that reads them."""

from __future__ import annotations

from typing import Any

from .document import CampaignFile, File

_PARAMETER = {"type": "string", "pattern": r"^\$\{[a-z][a-z0-9_]*\}$", "title": "parameter"}
_PLAIN = {"integer", "number", "boolean"}
ID = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Returns the schema of a topology file; any value can also be a `${parameter}`."""
    return {
        "$schema": ID,
        "title": "vNET topology",
        **_with_parameters(File.model_json_schema(by_alias=True)),
    }


def campaign_json_schema() -> dict[str, Any]:
    """Returns the schema of a file that only holds a campaign."""
    return {"$schema": ID, "title": "vNET campaign", **CampaignFile.model_json_schema(by_alias=True)}


_NAMED = ("properties", "$defs", "patternProperties")  # mappings from names to schemas
_SINGLE = ("items", "additionalProperties")
_SEVERAL = ("anyOf", "oneOf")


def _with_parameters(schema: Any) -> Any:
    """Returns the schema with `${name}` allowed wherever a number, a boolean, a choice or a quantity is
    expected.
    """
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for key in _NAMED:
        if key in result:
            result[key] = {name: _with_parameters(part) for name, part in result[key].items()}
    for key in _SINGLE:
        if key in result:
            result[key] = _with_parameters(result[key])
    for key in _SEVERAL:
        if key in result:
            result[key] = [_with_parameters(part) for part in result[key]]
    return _either(result) if _narrow(schema) else result


def _narrow(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    closed = "pattern" in schema or "enum" in schema or "const" in schema
    return kind in _PLAIN or (kind in ("string", None) and closed)


def _either(schema: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: schema.pop(key) for key in ("default", "description") if key in schema}
    return {**kept, "anyOf": [schema, _PARAMETER]}
