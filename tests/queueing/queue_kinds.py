"""Lists examples of every registered kind of queue, as they stand in the plan, and of impairments without a
queue.
"""

from __future__ import annotations

import dataclasses

from contract.plan import Impairment, Slot
from orchestrator.plan.netem import sized
from orchestrator.queueing import QUEUE_KINDS

MS = 10**6
DISCIPLINES = {kind: queue_kind.examples[0] for kind, queue_kind in QUEUE_KINDS.items()}
RATED = {kind: sized(Impairment(rate_bps=10_000_000, queue=queue)) for kind, queue in DISCIPLINES.items()}
DELAYED = {
    f"{kind} after netem": sized(dataclasses.replace(wanted, delay_ns=5 * MS, loss=0.01))
    for kind, wanted in RATED.items()
}
# Impairments of the sender's own interface: without netem.
HELD = {f"{kind} of a card": dataclasses.replace(wanted, backpressure=True) for kind, wanted in RATED.items()}
# Kinds that a class of htb holds when a trace changes the class's rate.
STEERED = {
    f"{kind} of a trace": dataclasses.replace(
        wanted, queue=dataclasses.replace(DISCIPLINES[kind], steered=True)
    )
    for kind, wanted in RATED.items() if not QUEUE_KINDS[kind].shapes
}  # fmt: skip
PLAIN = {
    "netem": sized(Impairment(delay_ns=5 * MS, loss=0.01)),
    "rate": sized(Impairment(rate_bps=10_000_000)),
    "tbf": sized(Impairment(rate_bps=10_000_000, backpressure=True)),
    "slots without a delay": sized(Impairment(slot=Slot(2 * MS, 10 * MS, 7))),
    "slots": sized(Impairment(delay_ns=5 * MS, slot=Slot(2 * MS, 10 * MS, 7, 20_000))),
    "slots of a table": sized(
        Impairment(
            delay_ns=MS, slot=Slot(2 * MS, 18 * MS, 7, table="normal", mean_ns=10 * MS, jitter_ns=2 * MS)
        )
    ),
    "netem of a trace": sized(Impairment(netem_stays=True)),
    "none": Impairment(),
}
ALL = RATED | HELD | DELAYED | STEERED | PLAIN


def changed(kind: str) -> Impairment:
    """Returns an example of the same kind of queue with other numbers, which a change must set without losing
    queued packets.
    """
    return dataclasses.replace(RATED[kind], rate_bps=12_000_000, queue=QUEUE_KINDS[kind].examples[1])
