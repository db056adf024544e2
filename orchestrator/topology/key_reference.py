"""Writes the reference of topology keys from the model: `python -m orchestrator.topology.key_reference`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..language.units import QUANTITIES
from ..queueing import QUEUE_KINDS
from ..software.messages import TITLES
from ..software.registry import KINDS
from .checks.timeline import allowed
from .document import CampaignFile, File
from .retired import TABLE

_INTRO = Path(__file__).with_name("reference_intro.md")

_RETIRED = """
## Retired keys

The old spelling is read for one more version, with a warning. `vnet migrate FILE...` rewrites it.

| old | new |
|---|---|
"""
_QUANTITIES = "## Units\n\n| quantity | units | example |\n|---|---|---|\n"


def page() -> str:
    """Returns the reference of topology keys as Markdown."""
    intro = _INTRO.read_text(encoding="utf-8")
    units = "".join(f"| {q.name} | {', '.join(q.units)} | `{q.example}` |\n" for q in QUANTITIES.values())
    units += "| CPU | MHz, GHz, cores | `500 MHz`, `0.5 cores` |\n"
    units += "| moment | a phase, or phase + duration | `hold + 10 s` |\n\n"
    return intro + _QUANTITIES + units + "".join(_models()) + _actions() + _retired()


def _retired() -> str:
    rows = (f"| `{key.whole((key.old,))}` | `{key.whole(key.new)}` |\n" for key in TABLE)
    return _RETIRED + "".join(rows)


def _models() -> Iterator[str]:
    schema = File.model_json_schema(by_alias=True)
    parts: dict[str, Any] = schema.pop("$defs")
    yield _section("The file", schema)
    for name in _NETWORK:
        yield _section(SECTIONS[name], parts[name])
    for kind in KINDS.values():
        yield from (_section(title, parts[name]) for name, title in kind.titles.items())
        yield kind.notes and f"{kind.notes}\n"
    for name in [
        *(name for name in TITLES if name in parts),
        *_REST,
        *sorted(parts.keys() - SECTIONS.keys() - _WRAPPERS.keys()),
    ]:
        yield _section(SECTIONS.get(name, name), parts[name])
    yield _section("A file that only holds a campaign", CampaignFile.model_json_schema(by_alias=True))


# The order of sections: these first, then those of the kinds of software, then those below.
_NETWORK = {
    "Parameter": "parameters.NAME",
    "Host": "hosts.NAME",
    "Underlay": "underlay",
    "Segment": "segments.NAME",
    "Node": "nodes.NAME",
    "Group": "groups.NAME",
    "Mounts": "mounts",
    "Link": "links.NAME",
    "LinkNics": "links.NAME.nics",
    "Impairment": "forward, reverse, both",
    "GilbertElliott": "gilbert_elliott",
    "Slot": "slot",
    "TraceFile": "trace",
    "Queue": "queue",
    **{
        queue_kind.bands.model if queue_kind.bands else queue_kind.settings.__name__:
        f"queue.{queue_kind.kind}.NAME" if queue_kind.bands else f"queue.{queue_kind.kind}"
        for queue_kind in QUEUE_KINDS.values()
    },
}  # fmt: skip
_REST = {
    "Capture": "captures.NAME",
    "Event": "timeline[]",
    "Run": "run",
    "Expect": "expect[]",
    "Series": "expect[].always, eventually, never",
    "Reference": "reference",
    "CampaignBlock": "campaign",
    "Design": "campaign.design",
    "Axis": "campaign.design.axes.NAME",
    "Until": "campaign.until",
    "Search": "campaign.search.NAME",
    "Bound": "campaign.search.NAME.holds[]",
    "HuntBlock": "hunt",
    "Limits": "hunt.at_most",
}
_KINDS = {name: title for kind in KINDS.values() for name, title in kind.titles.items()}
SECTIONS = _NETWORK | _KINDS | TITLES | _REST
# Models that hold nothing except a kind's own key, and have no section.
_WRAPPERS = {
    kind.model.__name__: f"{kind.what} (`{kind.key}:`)"
    for kind in KINDS.values()
    if kind.model.__name__ not in _KINDS
}


def _section(title: str, schema: dict[str, Any]) -> str:
    lines = [
        f"## {title}\n\n{schema.get('description', '')}\n\n",
        "| key | value | default | meaning |\n|---|---|---|---|\n",
    ]
    required = schema.get("required", [])
    properties = schema.get("properties", {}).items()
    for key, value in sorted(properties, key=lambda item: item[0] not in required):
        default = "required" if key in required else default_of(value)
        lines.append(f"| `{key}` | {value_of(value)} | {default} | {value.get('description', '')} |\n")
    return "".join(lines) + "\n"


def default_of(value: dict[str, Any]) -> str:
    default = value.get("default")
    return (
        ""
        if default in (None, "", [], {})
        else f"`{default if isinstance(default, str) else json.dumps(default)}`"
    )


def value_of(value: dict[str, Any]) -> str:
    """Returns the allowed values of a key as a short text."""
    if "$ref" in value:
        return _reference(value["$ref"])
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"] if isinstance(choice, str))
    title = str(value.get("title"))
    if title in {*QUANTITIES, *_SPELLED, "CPU", "moment"}:
        return _SPELLED.get(title, title)
    if "anyOf" in value or "oneOf" in value:
        options = value.get("anyOf", value.get("oneOf", []))
        return " or ".join(
            dict.fromkeys(value_of(option) for option in options if option.get("type") != "null")
        )
    return _plain(value)


_SPELLED = {
    "targets": "name or list of names",
    "command": "text or list of words",
    "rates": "frequency, or list of `{from: moment, rate: frequency}`",
}


def _plain(value: dict[str, Any]) -> str:
    kind = value.get("type")
    if kind == "array":
        return f"list of {value_of(value.get('items', {}))}"
    if kind == "object":
        if value.get("additionalProperties") is True:
            return "mapping"
        inner = value.get("additionalProperties", next(iter(value.get("patternProperties", {}).values()), {}))
        return f"mapping to {value_of(inner)}"
    words = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}
    bounds = [f"from {value['minimum']}"] if "minimum" in value else []
    bounds += [f"to {value['maximum']}"] if "maximum" in value and value["maximum"] < 2**31 else []
    return " ".join([words.get(str(kind), "any value"), *bounds])


def _reference(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return _WRAPPERS.get(name, f"see *{SECTIONS.get(name, name)}*")


def _actions() -> str:
    lines = ["## Keys of each action\n\n", "| action | keys |\n|---|---|\n"]
    lines += [
        f"| `{action}` | {', '.join(f'`{key}`' for key in keys) or 'none'} |\n"
        for action, keys in allowed().items()
    ]
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
