"""Reads the middleware and serialisers from known.json, which the Java program reads too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("known.json")


@dataclass(frozen=True, slots=True)
class Middleware:
    """A library that transports bytes: its class in images/middleware, and how it publishes.

    server_bytes: memory of its separate server, if the figure for a Java machine does not include it.
    """

    title: str
    library: str
    # True: it lacks publish-subscribe; subscribers then listen, and each message is sent to each of them.
    called_back: bool
    server_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Serialiser:
    """A serialiser of the object; `size_bytes` is the length of its output, measured for seed 0."""

    title: str
    size_bytes: int


@cache
def middleware() -> dict[str, Middleware]:
    """Returns all middleware by name, in the order of known.json."""
    found = json.loads(FILE.read_text())["middleware"]
    return {
        name: Middleware(
            one["title"], one["library"], one["publish"] == "callback", one.get("server_bytes", 0)
        )
        for name, one in found.items()
    }


@cache
def serialisers() -> dict[str, Serialiser]:
    """Returns all serialisers by name, in the order of known.json."""
    found = json.loads(FILE.read_text())["serialisers"]
    return {name: Serialiser(one["title"], one["bytes"]) for name, one in found.items()}


def nearest(word: str, names: Mapping[str, Middleware | Serialiser]) -> str:
    """Returns a remedy, "write NAME or NAME", with the names closest to a misspelt `word`, or with all
    names.
    """
    import difflib  # imported here, because only a mistake needs it

    said = word.lower()[:80]
    near = [name for name, one in names.items() if said in (*name.split("-"), one.title.lower())]
    near = near or difflib.get_close_matches(said, names, 2)
    return f"write {' or '.join(near)}" if near else f"write one of {', '.join(names)}"
