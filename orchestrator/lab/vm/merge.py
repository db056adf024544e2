"""Splits a request by node and merges the answers of many agents into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Item


def joined(answers: Iterable[Message]) -> Message:
    """Merges answers: adds numbers, merges dictionaries by key, concatenates lists; of other values the last
    counts. Returns the first refusal if there is one; leaves `id` out.
    """
    found: Message = {"ok": True}
    for answer in answers:
        if not answer.get("ok"):
            return {"ok": False, "error": answer.get("error", "refused without a reason")}
        found = {**found, **_joined(found, answer)}
    found.pop("id", None)
    return found


def _joined(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **a,
        **{
            key: _sum(a[key], value) if key in a else value
            for key, value in b.items()
            if key not in ("ok", "id")
        },
    }


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, dict) and isinstance(b, dict):
        return _joined(a, b)
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, int | float | list):
        return b
    return a + b


def by_node(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Groups the items of a workload by the node that each names."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item["node"], []).append(item)
    return found
