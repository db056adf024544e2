"""Writes the files of trials in raw/: a line per trial, a line per bucket of its latencies, and the results
of the searches.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.lab.trials.search import Finding
from orchestrator.lab.trials.trial import Outcome, TrialResult

TRIALS = (
    "trial,t_ns,stream,test,size,repetition,rate_fps,count,sent,refused,late_ns,tx_first_ns,tx_last_ns,received,"
    "duplicates,reordered,corrupted,foreign,early,ring_dropped,rx_first_ns,rx_last_ns,tagged_ns,latency_min_ns,"
    "latency_mean_ns,latency_max_ns,verdict"
)
LATENCIES = "trial,from_ns,to_ns,frames"
FINDINGS = "stream,test,size,repetition,value,unit,limit,top_fps"


class Records:
    """The files trials.csv, latencies.csv and findings.csv, which are created empty; each line is written as
    soon as it is known, so that a crash loses only the current trial.
    """

    def __init__(self, raw: Path) -> None:
        self._paths = {name: raw / f"{name}.csv" for name in ("trials", "latencies", "findings")}
        for path, header in zip(self._paths.values(), (TRIALS, LATENCIES, FINDINGS), strict=True):
            path.write_text(header + "\n")

    def trial(self, number: int, t_ns: int, stream: str, outcome: Outcome, verdict: TrialResult) -> None:
        """Writes one outcome with its latencies; unknown times are empty."""
        o, t = outcome, outcome.trial
        mean = None if o.latency_mean_ns is None else round(o.latency_mean_ns)
        row = [
            number, t_ns, stream, t.test, t.size, t.repetition, f"{t.rate_fps:.3f}", t.count, o.sent,
            o.refused, o.late_ns, o.tx_first_ns, o.tx_last_ns, o.received, o.duplicates, o.reordered,
            o.corrupted, o.foreign, o.early, o.ring_dropped, o.rx_first_ns, o.rx_last_ns, o.tagged_ns,
            o.latency_min_ns, mean, o.latency_max_ns, verdict,
        ]  # fmt: skip
        self._add("latencies", [",".join(map(str, (number, *bucket))) for bucket in o.buckets])
        self._add("trials", [",".join("" if value is None else str(value) for value in row)])

    def finding(self, stream: str, f: Finding) -> None:
        """Writes the result of one search."""
        line = f"{stream},{f.test},{f.size},{f.repetition},{f.value:.3f},{f.unit},{f.limit},{f.top_fps:.3f}"
        self._add("findings", [line])

    def _add(self, name: str, lines: list[str]) -> None:
        with self._paths[name].open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
