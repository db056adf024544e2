"""Allots subnets to netlab's links without a prefix, from the file's address pools, as netlab does
(netsim/augment/addressing.py): the next subnet of each family of the link's pool.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from .netlab_forms import mapping

# netlab's own pools (netsim/defaults/addressing.yml) and prefix lengths; the file's keys replace these.
DEFAULTS: dict[str, dict[str, Any]] = {
    "lan": {"ipv4": "172.16.0.0/16", "prefix": 24},
    "p2p": {"ipv4": "10.1.0.0/16", "prefix": 30},
}
PREFIX6 = 64
KEYS = {"ipv4", "ipv6", "prefix", "prefix6"}


def has_ipv6(data: Mapping[str, Any]) -> bool:
    """Returns whether the file's `addressing` gives links subnets of IPv6."""
    pools = mapping(data.get("addressing"))
    return any(isinstance(mapping(pools.get(name)).get("ipv6"), str) for name in DEFAULTS)


class Pools:
    """The pools of a file for links: `lan`, and `p2p` for links between two routers. Raises ValueError for a
    pool that is no subnet or smaller than its subnets.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        given = mapping(data.get("addressing"))
        self._next: dict[str, dict[str, Iterator[Any]]] = {}
        for name, own in DEFAULTS.items():
            theirs = given.get(name)
            keys = {**own, **(theirs if isinstance(theirs, dict) else {"ipv4": theirs} if theirs else {})}
            self._next[name] = {
                family: _subnets(keys[family], int(keys[length]) if length in keys else PREFIX6)
                for family, length in (("ipv4", "prefix"), ("ipv6", "prefix6"))
                if isinstance(keys.get(family), str)
            }

    def prefix(self, is_p2p: bool) -> dict[str, str]:
        """Returns the next subnet of each family of the pool; raises ValueError if the pool has no more."""
        name = "p2p" if is_p2p else "lan"
        found = {}
        for family, subnets in self._next[name].items():
            if (subnet := next(subnets, None)) is None:
                raise ValueError(f"the pool {name} has no more subnets of {family}")
            found[family] = str(subnet)
        return found


def _subnets(text: str, length: int) -> Iterator[Any]:
    subnets = ipaddress.ip_network(text).subnets(new_prefix=length)
    if length == 32 or length >= 127:
        next(subnets)  # netlab skips the first subnet, whose only address looks like that of a subnet
    return subnets
