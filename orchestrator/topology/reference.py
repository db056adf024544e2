"""The reference page of topology files from the model: `python -m orchestrator.topology.reference`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..language.units import QUANTITIES
from .checks.timeline import allowed
from .document import CampaignFile, File
from .topics import PLACEHOLDERS

_INTRO = Path(__file__).with_name("reference_intro.md")

_QUANTITIES = "## Units\n\n| quantity | units | example |\n|---|---|---|\n"


def page() -> str:
    """The page's Markdown."""
    intro = _INTRO.read_text(encoding="utf-8").replace(
        "{placeholders}", ", ".join(f"`{{{name}}}`" for name in PLACEHOLDERS)
    )
    units = "".join(f"| {q.name} | {', '.join(q.units)} | `{q.example}` |\n" for q in QUANTITIES.values())
    units += "| CPU | MHz, GHz, cores | `500 MHz`, `0.5 cores` |\n"
    units += "| moment | a phase, or phase + duration | `hold + 10 s` |\n\n"
    return intro + _QUANTITIES + units + "".join(_models()) + _actions()


def _models() -> Iterator[str]:
    schema = File.model_json_schema(by_alias=True)
    parts: dict[str, Any] = schema.pop("$defs")
    yield _section("The file", schema)
    order = [
        "Parameter",
        "Segment",
        "Node",
        "Group",
        "Link",
        "LinkNics",
        "Impairment",
        "GilbertElliott",
        "Broker",
        "MqttOptions",
    ]
    order += [
        "Publish",
        "Subscription",
        "Command",
        "Ready",
        "Capture",
        "Event",
        "Run",
        "Reference",
        "CampaignBlock",
    ]
    for name in [*order, *sorted(parts.keys() - set(order) - {"Client"})]:
        yield _section(_TITLES.get(name, name), parts[name])
    campaign = CampaignFile.model_json_schema(by_alias=True)
    yield _section("A file that only holds a campaign", campaign)


_TITLES = {
    "Parameter": "parameters.NAME",
    "Segment": "segments.NAME",
    "Node": "nodes.NAME",
    "Group": "groups.NAME",
    "Link": "links.NAME",
    "LinkNics": "links.NAME.nics",
    "Impairment": "forward, reverse, both",
    "GilbertElliott": "gilbert_elliott",
    "Broker": "software.NAME: a broker",
    "MqttOptions": "software.NAME.mqtt: an MQTT client",
    "Publish": "mqtt.publish",
    "Subscription": "mqtt.subscribe[]",
    "Command": "software.NAME: a command",
    "Ready": "command's ready",
    "Capture": "captures.NAME",
    "Event": "timeline[]",
    "Run": "run",
    "Reference": "reference",
    "CampaignBlock": "campaign",
}


def _section(title: str, schema: dict[str, Any]) -> str:
    lines = [
        f"## {title}\n\n{schema.get('description', '')}\n\n",
        "| key | value | default | meaning |\n|---|---|---|---|\n",
    ]
    required = schema.get("required", [])
    for key, value in schema.get("properties", {}).items():
        default = "required" if key in required else _default(value)
        lines.append(f"| `{key}` | {_kind(value)} | {default} | {value.get('description', '')} |\n")
    return "".join(lines) + "\n"


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    return (
        ""
        if default in (None, "", [], {})
        else f"`{default if isinstance(default, str) else json.dumps(default)}`"
    )


def _kind(value: dict[str, Any]) -> str:
    """What may be written, in a few words."""
    if "$ref" in value:
        return _reference(value["$ref"])
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"] if isinstance(choice, str))
    title = str(value.get("title"))
    if title in {*QUANTITIES, "CPU", "moment", "command", "targets"}:
        return {"targets": "name or list of names", "command": "text or list of words"}.get(title, title)
    if "anyOf" in value or "oneOf" in value:
        options = value.get("anyOf", value.get("oneOf", []))
        return " or ".join(dict.fromkeys(_kind(option) for option in options if option.get("type") != "null"))
    return _plain(value)


def _plain(value: dict[str, Any]) -> str:
    kind = value.get("type")
    if kind == "array":
        return f"list of {_kind(value.get('items', {}))}"
    if kind == "object":
        if value.get("additionalProperties") is True:
            return "mapping"
        inner = value.get("additionalProperties", next(iter(value.get("patternProperties", {}).values()), {}))
        return f"mapping to {_kind(inner)}"
    words = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}
    bounds = [f"from {value['minimum']}"] if "minimum" in value else []
    bounds += [f"to {value['maximum']}"] if "maximum" in value and value["maximum"] < 2**31 else []
    return " ".join([words.get(str(kind), "any value"), *bounds])


def _reference(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    title = _TITLES.get(name, name)
    return {"Client": "an MQTT client (`mqtt:`)"}.get(name, f"see *{title}*")


def _actions() -> str:
    lines = ["## Which keys go with which action\n\n", "| action | keys |\n|---|---|\n"]
    lines += [
        f"| `{action}` | {', '.join(f'`{key}`' for key in keys) or 'none'} |\n"
        for action, keys in allowed().items()
    ]
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
