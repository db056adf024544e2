"""Compares a lab with the reservations of other accounts and with its account's quota, before anything of the
lab is made.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path

from contract.plan import Plan
from orchestrator.plan.nics import nic_uses
from orchestrator.plan.placement.demand import NOTHING, demand
from orchestrator.reservations import quotas, running, store
from orchestrator.reservations.model import Amount, Reservation, ReservationError, lacking, sharing


def admit(plan: Plan, state_dir: Path, root: Path | None = None) -> None:
    """Records a lab that this process begins on this machine. It does so under the lock, so that of two labs
    at the same time only one gets the last resources. Raises ReservationError if others have reserved
    resources that the lab needs now, or if the lab and the account's other labs together exceed the account's
    quota. Raises TopologyError for wrong quotas.
    """
    root = root or store.directory()
    if not root.is_dir():  # nobody has reserved anything on this machine
        insist_quota(plan, [])
        return
    try:
        with store.locked(root):
            insist_unreserved(plan, root)
            insist_quota(plan, running.every(root))
            running.enter(plan, state_dir, root)
    except PermissionError as error:
        raise ReservationError(f"{root}: {error.strerror}; `chmod 1777 {root}` as root mends it") from error


def insist_quota(plan: Plan, labs: Sequence[running.RunningLab]) -> None:
    """Raises ReservationError if the lab and the account's other labs in `labs` together exceed the account's
    quota.
    """
    uid = store.account()
    own = [one for one in labs if one.uid == uid]
    quota = quotas.of(uid, store.name_of(uid))
    if found := quotas.over(quota, running.amount(plan), [one.amount for one in own], len(own) + 1):
        beside = f" beside {'; '.join(str(one) for one in own)}" if own else ""
        remedy = (
            "take one of them down, or ask root for more" if own else "make it smaller, or ask root for more"
        )
        raise ReservationError(f"lab {plan.lab}: {'; '.join(found)}{beside}; {remedy}")


def insist_unreserved(plan: Plan, root: Path | None = None) -> None:
    """Raises ReservationError if the reservations of others leave too little for the lab now: memory for its
    nodes, their reserved cores (at least one), or a NIC. The text has the account, the resource and the end
    of the other reservation. The machine's total memory and cores count, not what is in use.
    """
    root = root or store.directory()
    others = held_by_others(root)
    if not others:
        return
    want = needed(plan, {nic for other in others for nic in other.amount.nics})
    if found := lacking(want, store.machine(), others):
        who = "; ".join(str(other) for other in sharing(want, others))
        remedy = "wait until then, or see `vnet reserve ls` for a free time"
        raise ReservationError(f"lab {plan.lab}: {'; '.join(found)}: {who}; {remedy}")


def held_by_others(root: Path) -> list[Reservation]:
    """Returns the reservations of other accounts that hold now."""
    now, us = time.time_ns(), store.account()
    return [one for one in store.read(root)[0] if one.uid != us and one.at(now)]


def needed(plan: Plan, reserved: Collection[str]) -> Amount:
    """Returns the needs of a lab: cores, memory in bytes and, of the NICs with the keys `reserved`, those
    that it may use. A lab that requests vendor:device may use any such NIC.
    """
    total = sum((demand(node, (), None) for node in plan.nodes), NOTHING)
    return Amount(max(1.0, total.cores), total.memory_bytes, _nics(plan, reserved))


def _nics(plan: Plan, reserved: Collection[str]) -> tuple[str, ...]:
    uses = nic_uses(plan) if reserved else []
    if not uses:
        return ()
    from orchestrator.nics import facts
    from orchestrator.nics.resolve import candidates

    seen = facts.look()
    keys = (nic.key for use in uses for nic in candidates(use.asked, seen))
    return tuple(dict.fromkeys(key for key in keys if key in reserved))
