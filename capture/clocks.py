"""Of a lab over several hosts: how well the latency of each message is known, by the clocks of both ends."""

from __future__ import annotations

from typing import Any

import polars as pl

from capture.manifest import Contents


def known_ns(messages: pl.DataFrame, plan: dict[str, Any], manifest: Contents) -> pl.Series:
    """By message, in ns: 0 where both ends have one clock, as in labs on one machine; else the sum of what
    the clocks of both hosts are known to (the manifest's `clocks`).
    """
    host = {
        end: str(node.get("host") or "")
        for node in plan.get("nodes", ())
        for end in (
            str(node["name"]),
            *(str(s["session"]["endpoint"]) for s in node.get("software", ()) if s.get("session")),
        )
    }
    clocks = manifest.get("clocks") or {}
    errors = {
        name: int((clocks.get(name) or {}).get("error_ns") or 0) for name in manifest.get("hosts") or {}
    }
    sender, receiver = (
        pl.col(end).replace_strict(host, default="", return_dtype=pl.String) for end in ("sender", "receiver")
    )
    of = {end: one.replace_strict(errors, default=0, return_dtype=pl.Int64)
          for end, one in (("sender", sender), ("receiver", receiver))}  # fmt: skip
    same = pl.when(sender != receiver).then(of["sender"] + of["receiver"]).otherwise(0)
    return messages.select(known_ns=same).get_column("known_ns")
