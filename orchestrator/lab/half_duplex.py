"""Half duplex, proven: trains through both directions at once get the rate of one together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.lab import expected
from orchestrator.lab.clock import SECOND
from orchestrator.lab.judgement import Judgement, ProofResult, Seen, shown, verdict
from orchestrator.lab.probes import BOTH, FRAMES_LEAST, at_once, train_size
from orchestrator.lab.slack import Slacks
from orchestrator.lab.train import OFFER_FACTOR, offered_bps, too_slow
from orchestrator.model import Link

Results = Mapping[tuple[str, str], Seen]


def judge(links: Sequence[Link], together: Results, slacks: Slacks) -> Iterator[Judgement]:
    """A line for each half duplex link with a rate: quantity `rate`, direction `both`."""
    for link in links:
        if link.half_duplex and link.forward.impairment.rate_bps:
            yield _rate(link, [together.get((link.name, way)) for way in ("forward", "reverse")], slacks)


def _rate(link: Link, trains: Sequence[Seen | None], slacks: Slacks) -> Judgement:
    """From the arrivals of either direction while both were sending."""
    asked = link.forward.impairment
    whole, expects = float(asked.rate_bps), expected.rate_bps(asked)
    slack = slacks.rate.of(expects)
    if asked.slot is not None:
        why = "slots let frames go together, which hides the rate's spacing"
        return _line(link, whole, expects, None, 0, "cannot tell", why, slack)
    arrivals = [sorted(seen.arrivals_ns)[at_once(asked) :] for seen in trains if seen is not None]
    if len(arrivals) < 2 or min(map(len, arrivals)) < FRAMES_LEAST:
        few = min(map(len, arrivals), default=0)
        return _line(link, whole, expects, None, few, "cannot tell", f"{few} frames are too few", slack)
    begin, end = max(a[0] for a in arrivals), min(a[-1] for a in arrivals)
    inside = sorted(at for a in arrivals for at in a if begin <= at <= end)
    if len(inside) < FRAMES_LEAST:
        why = "the two directions did not send at the same time; prove again when the machine is idle"
        return _line(link, whole, expects, None, len(inside), "cannot tell", why, slack)
    offered = sum(offered_bps(seen, train_size(asked)) for seen in trains if seen is not None)
    if offered < OFFER_FACTOR * expects:
        return _line(link, whole, expects, None, len(inside), "cannot tell", too_slow(offered), slack)
    steps, span = len(inside) - 1, inside[-1] - inside[0]
    rate = steps * train_size(asked) * 8 * SECOND / span
    error = rate / steps  # where the window cuts a frame
    interval = (rate - error, rate + error)
    judged = verdict(*interval, expects - slack, expects + slack)
    got = f"both directions together got {shown('bit/s', *interval)}, slack {shown('bit/s', slack)}"
    reason = "" if judged == "holds" else got
    return _line(link, whole, expects, (rate, interval), len(inside), judged, reason, slack)


def _line(
    link: Link, asked: float, expects: float, found: tuple[float, tuple[float, float]] | None, n: int,
    verdict: ProofResult, reason: str, slack: float,
) -> Judgement:  # fmt: skip
    rate, (low, high) = found if found is not None else (None, (None, None))
    return Judgement(
        link.name, BOTH, "rate", asked, expects, rate, low, high, "bit/s", n, verdict, reason, slack, None
    )
