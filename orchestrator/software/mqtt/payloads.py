"""Checks and plans the payloads of MQTT clients, with or without the message's number in them."""

from __future__ import annotations

import json
import re
from typing import Any

from contract.plan import Payload

from ...language.source import Path
from ..checking import Checks
from ..encodings import check_encoded, payload_of
from ..placeholders import PLACEHOLDERS, REMEDY, fill_for
from ..scene import Placed, Scene
from . import sparkplug
from .file import Publish
from .sizes import LARGEST_PAYLOAD, SMALLEST_BYTES, SMALLEST_XML, check_sizes, sized

# The longest numbers that the agent inserts: of 32 bits, and nanoseconds of 63 bits.
_LONGEST = {"{flow}": "4294967295", "{seq}": "4294967295", "{time_ns}": "9223372036854775807"}
_IN_JSON = re.compile(r"\{([A-Za-z_]\w*)\}")  # JSON objects do not match, because their keys are in quotes


def check_payload(report: Checks, wanted: Publish, path: Path, version: str) -> None:
    """Reports a publisher's payload with two sources, without the message's number in MQTT 3.1.1, with a text
    that is no JSON or has unknown placeholders, or with a size out of range.
    """
    if wanted.sparkplug is not None:
        return
    if wanted.encoding is not None and wanted.json_text is not None:
        report.add((*path, "json"), None, "conflicts with `encoding`", "leave one of them out")
    if check_encoded(report, wanted, path, "payload_size", "payload", "file", "payload_sizes"):
        return
    texts = [key for key, text in (("json", wanted.json_text), ("file", wanted.file)) if text is not None]
    if numberless(wanted) and version == "3.1.1":
        rule = "holds no message's number, and MQTT 3.1.1 has no user property for it"
        key = texts[0] if texts else "payload_size"
        report.add((*path, key), None, rule, f"write `version: 5`, or `bytes` from {SMALLEST_BYTES} B on")
    if wanted.json_text is not None:
        _json(report, wanted.json_text, (*path, "json"))
    if wanted.file is not None and len(wanted.file.text.encode()) > LARGEST_PAYLOAD:
        rule = f"is longer than the {LARGEST_PAYLOAD} bytes of a payload"
        report.add((*path, "file"), str(wanted.file), rule, "name a shorter file")
    for key in texts:
        for other in (*texts[:-1], "payload", "payload_size"):
            if other != key and (other in texts or other in wanted.model_fields_set):
                report.add((*path, other), None, f"conflicts with `{key}`", "leave one of them out")
    if wanted.payload_sizes is not None:
        check_sizes(report, wanted, (*path, "payload_sizes"), texts)
        return
    smallest = SMALLEST_XML if wanted.payload == "metering-xml" else 0
    if not texts and not smallest <= wanted.payload_size <= LARGEST_PAYLOAD:
        rule = f"a {wanted.payload} payload has from {smallest} to {LARGEST_PAYLOAD} bytes"
        report.add((*path, "payload_size"), wanted.payload_size, rule, 'write for example "717 B"')


def _json(report: Checks, text: str, path: Path) -> None:
    for name in _IN_JSON.findall(text):
        if name not in PLACEHOLDERS and f"{{{name}}}" not in _LONGEST:
            rule = f"no placeholder is called {{{name}}}"
            report.add(path, text, rule, f"{REMEDY}, or of the message {{seq}}, {{time_ns}} or {{flow}}")
    names = {f"{{{name}}}": "x" if name in ("node", "group") else "1" for name in PLACEHOLDERS}
    try:
        json.loads(_with(text, dict.fromkeys(_LONGEST, "1") | names), parse_constant=_no_constant)
    except ValueError as error:
        remedy = """write for example '{"n": {seq}, "of": "{node}"}', names in quotes"""
        report.add(path, text, f"is not JSON ({error})", remedy)


def _no_constant(name: str) -> None:
    """Refuses NaN and Infinity, which Python accepts although JSON lacks them (RFC 8259, section 6)."""
    raise ValueError(f"{name} is no number of JSON")


def numberless(wanted: Publish) -> bool:
    """Returns whether the payload does not carry the message's number."""
    if wanted.json_text is not None or wanted.file is not None:
        return True
    if wanted.sparkplug is not None or wanted.encoding is not None or wanted.payload_sizes is not None:
        return False
    return wanted.payload == "bytes" and wanted.payload_size < SMALLEST_BYTES


def planned_payload(scene: Scene, client: Placed, wanted: Publish) -> Payload:
    """Returns kind and length of the payload in the plan; for JSON the length with the longest numbers that
    the agent fills in.
    """
    if wanted.sparkplug is not None:
        return sparkplug.payload_of(wanted.sparkplug)
    if wanted.json_text is not None:
        return Payload("json", len(_with(_json_of(scene, client, wanted.json_text), _LONGEST).encode()))
    if wanted.file is not None:
        return Payload("file", len(wanted.file.text.encode()))
    if wanted.payload_sizes is not None:
        seed = scene.seed_for("payload sizes", client.node, client.name)
        return sized(wanted.payload, wanted.payload_sizes, seed)
    return payload_of(wanted, Payload(wanted.payload, wanted.payload_size))


def content_spec(scene: Scene, client: Placed, wanted: Publish) -> dict[str, Any]:
    """Returns the agent's setting of a payload without the message's number; nothing for another payload."""
    if wanted.json_text is not None:
        return {"content": {"template": _json_of(scene, client, wanted.json_text)}}
    if wanted.file is not None:
        return {"content": {"text": wanted.file.text}}
    return {"content": "zeros"} if numberless(wanted) else {}


def _json_of(scene: Scene, client: Placed, text: str) -> str:
    """Returns the text with the client's placeholders filled in; the message's placeholders stay."""
    names = [f"{{{name}}}" for name in PLACEHOLDERS]
    return _with(text, {name: fill_for(scene, client, name) for name in names})


def _with(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text
