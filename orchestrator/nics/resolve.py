"""Resolves the NICs that a topology names to NICs of the machine, from facts alone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from orchestrator.nics.model import Facts, Nic, PciNic
from orchestrator.nics.refusal import Refusal, leased, refusal
from orchestrator.plan.nics import NicUse

PCI = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
IDENT = re.compile(r"([0-9a-f]{4}):([0-9a-f]{4})")
VIRTUAL = re.compile(r"(.+):vf(\d{1,4})")


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """The NIC for one use of the plan, or the reason why none fits."""

    use: NicUse
    nic: Nic | None
    refusal: Refusal | None = None


def resolve(uses: Iterable[NicUse], facts: Facts, held: dict[str, str]) -> list[Choice]:
    """Returns a choice for every use, in the order of the uses; each NIC is chosen once. held: by lease key
    or interface name, the lab that has the NIC.

    NICs that are requested by name or address are chosen before those requested by vendor:device.
    """
    asked = list(uses)
    given = {choice.use: choice for choice in _named_first(asked, facts, held)}
    return [given[use] for use in asked]


def _named_first(uses: list[NicUse], facts: Facts, held: dict[str, str]) -> Iterator[Choice]:
    taken: dict[str, str] = dict(held)
    for use in sorted(uses, key=lambda u: IDENT.fullmatch(u.asked.lower()) is not None):
        choice = _choose(use, facts, taken)
        if choice.nic is not None and choice.refusal is None:
            taken[choice.nic.key] = ""
        yield choice


def _choose(use: NicUse, facts: Facts, taken: dict[str, str]) -> Choice:
    """Returns the first candidate without a refusal. If there is none, returns a refusal: that there is no
    such NIC, that of the only candidate, or one with the reasons of all candidates.
    """
    found = candidates(use.asked, facts)
    if not found and use.asked in taken:
        return Choice(use, None, leased(use.asked, taken[use.asked]))
    if not found:
        return Choice(use, None, Refusal("no such NIC is in this machine", f"it has {listed(facts)}"))
    refused: list[Choice] = []
    for nic in found:
        why = refusal(use, nic, facts, taken)
        if why is None:
            return Choice(use, nic)
        refused.append(Choice(use, nic, why))
    if len(refused) == 1:
        return refused[0]
    reasons = "; ".join(f"{c.nic}: {c.refusal.rule}" for c in refused if c.refusal)
    remedies = refused[0].refusal.remedy if refused[0].refusal else ""
    return Choice(use, refused[0].nic, Refusal(f"none of {len(refused)} can be had ({reasons})", remedies))


def candidates(asked: str, facts: Facts) -> list[Nic]:
    """Returns every NIC that `asked` can mean: an interface name, a PCI address, vendor:device or PORT:vfN;
    empty if there is none. Only vendor:device can mean more than one.
    """
    word = asked.lower()
    if match := PCI.fullmatch(word):
        return _functions(facts, facts.function(f"{match[1] or '0000'}:{match[2]}"))
    if IDENT.fullmatch(word):
        return [nic for p in facts.pci if p.ident == word for nic in _functions(facts, p)]
    if (match := VIRTUAL.fullmatch(asked)) and (parent := candidates(match[1], facts)):
        physical = parent[0].function
        address = physical.virtfns.get(int(match[2])) if physical else None
        return _functions(facts, facts.function(address) if address else None)
    netdev = facts.netdev(asked)
    if netdev is None:
        return []
    return [Nic(facts.function_of(netdev.name), netdev)]


def _functions(facts: Facts, function: PciNic | None) -> list[Nic]:
    if function is None:
        return []
    netdev = facts.netdev(function.netdevs[0]) if function.netdevs else None
    return [Nic(function, netdev)]


def listed(facts: Facts) -> str:
    """Returns the machine's PCI NICs and its other interfaces, except virtual ones, in one line; "none" if
    there are none.
    """
    known = [f"{p.address} {p.ident}" + (f" {', '.join(p.netdevs)}" if p.netdevs else "") for p in facts.pci]
    known += [d.name for d in facts.netdevs if facts.function_of(d.name) is None and not d.kind]
    return "; ".join(known) or "none"
