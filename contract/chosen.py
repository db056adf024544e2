"""Names the keys that choose values of a metric, and reads them in brackets: `latency_p99[class=site-a]`.

Expectations, `--fail-if`, `campaign.until`, comparisons and the claims of papers choose values by these keys.
Imports the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Key -> column of summary.json.
COLUMNS: Mapping[str, str] = {
    "class": "traffic_class",
    **{
        name: name
        for name in (
            "guarantee", "link", "direction", "queue_class", "nodes", "group", "role", "machine", "capture",
            "protocol", "layer", "bin", "flow", "stream", "frame_bytes",
            "program",
        )
    },
}  # fmt: skip
SHORT = "qos"  # a short form of `guarantee`, whose values are "QoS 0" to "QoS 2"
NUMBERS = (SHORT, "frame_bytes")
_BRACKETS = re.compile(r"\s*([A-Za-z0-9_.]+)\s*\[([^\]]*)\]\s*")


class ChosenError(ValueError):
    """Raised if the text between brackets is wrong: `rule` names the mistake, `remedy` a correct form."""

    def __init__(self, rule: str, remedy: str) -> None:
        self.rule, self.remedy = rule, remedy
        super().__init__(f"{rule}; {remedy}")


def column(key: str, value: Any) -> tuple[str, str] | None:
    """Returns the column of summary.json that a key means, and the value there; None for an unknown key."""
    if key == SHORT:
        return "guarantee", f"QoS {value}"
    return (COLUMNS[key], str(value)) if key in COLUMNS else None


def keys(text: str) -> Iterator[tuple[str, Any]]:
    """Yields (key, name) for each part of the text between brackets, such as `class=site-a, qos=1`.

    The values of NUMBERS become int, quotes around a name are removed. Raises ChosenError for a part without
    key or name; an unknown key is yielded like any other.
    """
    for part in text.split(","):
        key, equals, value = (one.strip() for one in part.partition("="))
        if not equals or not key or not value:
            raise ChosenError(f'"{part.strip()}" is no KEY=NAME', 'write for example "[class=control]"')
        name = bare(value)
        yield key, int(name) if key in NUMBERS and name.isdecimal() else name


def bracketed(text: str) -> tuple[str, dict[str, Any]]:
    """Splits `latency_p99[class=site-a]` into the metric and its keys; a text without brackets has none.

    Raises ChosenError for malformed or open brackets, for text after them, and for a repeated key.
    """
    if "[" not in text:
        return text.strip(), {}
    found = _BRACKETS.fullmatch(text)
    if found is None:
        raise ChosenError("is no METRIC[KEY=NAME]", 'write for example "latency_p99[class=control]"')
    given: dict[str, Any] = {}
    for key, name in keys(found[2]):
        if key in given:
            raise ChosenError(f"`{key}` stands twice", "leave out one of them")
        given[key] = name
    return found[1], given


def bare(word: str) -> str:
    """Returns a name without the double quotes around it."""
    return word[1:-1] if word.startswith('"') and word.endswith('"') and len(word) > 1 else word
