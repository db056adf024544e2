"""Makes the topologies of a calibration: senders whose rate rises step by step over links without
impairments.
"""

from __future__ import annotations

from dataclasses import dataclass

SMALL_BYTES, LARGE_BYTES = 64, 1400  # payloads for many packets and for many bits
# each step has this many times the load of the previous one, which is also the accuracy of the limit
FACTOR = 1.5
STEPS = 14
PAIRS = 4  # pairs of sender and receiver that load the machine together


@dataclass(frozen=True, slots=True)
class Ladder:
    """One series of rising loads: in the first step, `first_per_s` packets a second in total, over `pairs`
    links at once.
    """

    name: str
    pairs: int
    payload_bytes: int
    first_per_s: float
    step_s: float = 1.5
    steps: int = STEPS

    def rates(self) -> list[float]:
        """Returns the packets a second of each step, added up over all pairs."""
        return [self.first_per_s * FACTOR**step for step in range(self.steps)]

    def topology(self) -> str:
        """Returns the topology file: each pair has two segments, a link between them, and a sender that
        follows the steps.
        """
        pairs = range(self.pairs)
        rates = ", ".join(
            f"{{from: ramp + {SETTLE_S + step * self.step_s:g} s, rate: {rate / self.pairs:.6g} /s}}"
            for step, rate in enumerate(self.rates())
        )
        push = f"{{rate: [{rates}], size: {self.payload_bytes} B, settle: 0 s}}"
        lines = [f"name: calibrate-{self.name}", "segments:"]
        lines += [f"  {end}{n}: {{subnet: 10.{n}.0.0/24}}" for n in pairs for end in ("l", "r")]
        lines.append("nodes:")
        for n in pairs:
            lines.append(f"  a{n}: {{segment: l{n}, software: {{q: {{udp: {{to: b{n}, push: {push}}}}}}}}}")
            lines.append(f"  b{n}: {{segment: r{n}, software: {{q: {{udp: {{listen: 7000}}}}}}}}")
        lines.append("links:")
        lines += [f"  w{n}: {{between: [l{n}, r{n}]}}" for n in pairs]
        lines.append(f"run: {{hold: {SETTLE_S + self.steps * self.step_s:g} s, drain: 2 s}}")
        return "\n".join(lines) + "\n"


SETTLE_S = 1.0  # s until the first step, in which agents start and caches fill
LADDERS = (
    Ladder("link-packets", 1, SMALL_BYTES, 500),
    Ladder("all-packets", PAIRS, SMALL_BYTES, 500),
    Ladder("link-bits", 1, LARGE_BYTES, 500),
    Ladder("all-bits", PAIRS, LARGE_BYTES, 500),
)
