"""Computes the error of each message's latency due to the clocks of its two ends, on hosts
and in VM nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import polars as pl

from contract.manifest import Manifest
from contract.plan import Node, Plan


def known_ns(messages: pl.DataFrame, plan: Plan, manifest: Manifest) -> pl.Series:
    """Returns for each message the bound of its latency's clock error in ns, from the manifest's `clocks`.

    The bound is the sum of these errors: those of both hosts, if the hosts differ, and that of each end that
    is a VM node, if the ends are different nodes. The error of a clock that is not in `clocks` is 0.
    """
    errors = {name: int(one.get("error_ns") or 0) for name, one in manifest.clocks.items()}
    hosts = {name: errors.get(name, 0) for name in manifest.hosts}
    nodes = plan.nodes
    known = _sum(_by_end(nodes, lambda node: node.host), hosts)
    if any(node.kind == "vm" for node in nodes):
        known += _sum(_by_end(nodes, lambda node: node.name if node.kind == "vm" else ""), errors)
    return messages.select(known_ns=known).get_column("known_ns")


def _by_end(nodes: Iterable[Node], clock: Callable[[Node], str]) -> dict[str, str]:
    """Maps each node name and each session endpoint to the name that `clock` returns for its node."""
    return {
        end: clock(node)
        for node in nodes
        for end in (
            node.name,
            *(s.session.endpoint for s in node.software if s.session),
        )
    }


def _sum(clock: Mapping[str, str], errors: Mapping[str, int]) -> pl.Expr:
    """Returns an expression for the sum of both ends' clock errors; 0 if both ends have the same clock."""
    ends = [
        pl.col(end).replace_strict(clock, default="", return_dtype=pl.String)
        for end in ("sender", "receiver")
    ]
    of = [end.replace_strict(errors, default=0, return_dtype=pl.Int64) for end in ends]
    return pl.when(ends[0] != ends[1]).then(of[0] + of[1]).otherwise(0)
