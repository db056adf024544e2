"""One question to many agents, one answer: who is asked what, and how their answers are joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.lab.jsonlines import Message

OF_ONE_NODE = ("set", "start", "stop", "exec", "frames")
OF_ONE_EXEC = ("input", "resize", "signal")


def joined(answers: Iterable[Message]) -> Message:
    """Numbers are added, tables joined, lists put together; the first refusal is the answer of all."""
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


def by_node(items: Iterable[Mapping[str, Any]], key: str) -> dict[str, list[Mapping[str, Any]]]:
    """Items of a request by the node that each names."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        found.setdefault(str(item[key]), []).append(item)
    return found
