"""Lists one example of every kind of queue, as in the plan; a new kind needs a line here."""

from __future__ import annotations

import dataclasses

from contract.plan import Band, Cake, Discipline, Fifo, FqCodel, Htb, Impairment, Prio, Red, Slot
from orchestrator.plan.netem import sized

MS = 10**6
BANDS = (
    Band("control", pcp=(6, 7), dscp=(48,), limit_packets=30),
    Band("named", ports=(5001,), limit_packets=40),
    Band("rest", limit_packets=50),
)
CLASSES = (
    Band("voice", dscp=(46,), limit_packets=20, rate_bps=2_000_000, ceil_bps=5_000_000),
    Band("rest", limit_packets=60, rate_bps=6_000_000, ceil_bps=8_000_000),
)
DISCIPLINES = {
    "prio": Discipline(prio=Prio(BANDS)),
    "htb": Discipline(htb=Htb(CLASSES)),
    "red": Discipline(red=Red(15_000, 45_000, 180_000, 0.1, True)),
    "fq_codel": Discipline(fq_codel=FqCodel(1000, 256, 4 * MS, 80 * MS, True)),
    "cake": Discipline(cake=Cake("dual-dsthost", "diffserv4", 50 * MS)),
    "fifo": Discipline(fifo=Fifo(70)),
}
RATED = {kind: sized(Impairment(rate_bps=10_000_000, queue=queue)) for kind, queue in DISCIPLINES.items()}
DELAYED = {
    f"{kind} after netem": sized(dataclasses.replace(wanted, delay_ns=5 * MS, loss=0.01))
    for kind, wanted in RATED.items()
}
# As of the sender's own card: without netem.
HELD = {f"{kind} of a card": dataclasses.replace(wanted, backpressure=True) for kind, wanted in RATED.items()}
# Those that a class of htb keeps the rate of, where a trace changes it.
STEERED = {
    f"{kind} of a trace": dataclasses.replace(
        wanted, queue=dataclasses.replace(DISCIPLINES[kind], steered=True)
    )
    for kind, wanted in RATED.items() if kind in ("prio", "red", "fq_codel")
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
    before = RATED[kind]
    assert before.queue is not None
    other: dict[str, Discipline] = {
        "prio": Discipline(prio=Prio((dataclasses.replace(BANDS[0], limit_packets=31), *BANDS[1:]))),
        "htb": Discipline(
            htb=Htb((dataclasses.replace(CLASSES[0], rate_bps=3_000_000, ceil_bps=4_000_000), CLASSES[1]))
        ),
        "red": Discipline(red=Red(20_000, 50_000, 190_000, 0.1, False)),
        "fq_codel": Discipline(fq_codel=FqCodel(900, 256, 3 * MS, 70 * MS, False)),
        "cake": Discipline(cake=Cake("flows", "besteffort", 20 * MS)),
        "fifo": Discipline(fifo=Fifo(90)),
    }
    return dataclasses.replace(before, rate_bps=12_000_000, queue=other[kind])
