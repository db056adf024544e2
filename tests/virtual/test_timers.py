"""Tests that timers of a node's programs last as long as requested, in real and in virtual time.

With User-Mode Linux's own tick of 10 ms, a socket timeout of 2 ms would last 20 ms.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from virtual_place import Place

PROBE = Path(__file__).with_name("timers_probe.py")
KINDS = {"SO_RCVTIMEO", "poll", "nanosleep", "delayed ACK", "RTO", "RTO of a SYN"}
LATE_MS = 4.0  # ms, the largest lateness that passes
EARLY_MS = 1.0  # ms: a timer of TCP may begin in the middle of the kernel's tick
TOPOLOGY = {
    "name": "timers",
    "seed": 1,
    "segments": {"lan": {"subnet": "10.50.0.0/24"}},
    "nodes": {
        "asker": {
            "segment": "lan",
            "software": {
                "probe": {
                    "command": ["python3", "-S", "probe.py"],
                    "files": {"probe.py": PROBE.read_text()},
                    "expect": "exited",
                    "start": "ramp",
                }
            },
        }
    },
    "run": {"hold": "40 s", "drain": "1 s"},
}


def lateness_ms(place: Place, *how: str) -> dict[tuple[str, float], list[float]]:
    """Returns how late each try was in ms, by (kind, requested ms)."""
    (place.cwd / "timers.yaml").write_text(json.dumps(TOPOLOGY))
    done = place.vnet("run", "timers.yaml", "--results", "out", "--raw", *how)
    assert done.returncode == 0, done.stderr
    log = next((place.cwd / "out").rglob("asker.probe.log")).read_text().splitlines()
    assert log[-1] == "end", log[-3:]
    found = defaultdict(list)
    for line in log[:-1]:
        kind, asked, took = line.rsplit(maxsplit=2)
        found[kind, round(float(asked))].append(float(took) - float(asked))
    assert {kind for kind, _ in found} == KINDS
    return found


@pytest.mark.uml
def test_in_virtual_time_each_is_in_time(places: Callable[[str], Place]) -> None:
    for asked, tries in lateness_ms(places("timers"), "--time", "virtual").items():
        assert min(tries) >= -EARLY_MS and max(tries) <= LATE_MS, (asked, tries)


@pytest.mark.uml
def test_in_real_time_the_best_of_several_is_in_time(places: Callable[[str], Place]) -> None:
    """Shows that of several tries of each timer the best is in time: a busy machine delays single tries, a
    coarse tick delays all.
    """
    for asked, tries in lateness_ms(places("real-timers"), "--kernel", "uml").items():
        assert -EARLY_MS <= min(tries) <= LATE_MS, (asked, tries)
