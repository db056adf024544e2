"""Tests that `vnet compare` finds a regression of a service, as a script of continuous integration would
use it.
"""

from __future__ import annotations

import json
import subprocess

import pytest
from virtual_place import PROJECT, Place

# Computing takes no time in virtual time, so the slower service waits before a message counts as received.
WAIT = "usleep(${work}); long long at = now_ns();"
LIMIT = "latency_p99[class=meter.send] > +2 %"


def service() -> str:
    """Makes three runs of the collector of own-program.yaml with `work`, a wait in us, behind a link with
    jitter.
    """
    text = (PROJECT / "topologies" / "own-program.yaml").read_text()
    for old, new in (
        ("long long at = now_ns();", WAIT),
        ("#include <time.h>", "#include <time.h>\n            #include <unistd.h>"),
        ("parameters:\n", "parameters:\n  work: {type: int, default: 0}\n"),
        ('delay: "${delay}", ', 'delay: "${delay}", jitter: 2 ms, '),
    ):
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    return text + "\ncampaign: {parameters: {hold: 20s, meters: 2}, repetitions: 3}\n"


def measured(place: Place, name: str, *more: str) -> None:
    done = place.vnet(
        "campaign", "run", "service.yaml", "--time", "virtual", "--no-page", "--out", name, *more
    )
    assert done.returncode == 0, done.stderr


def compared(place: Place, other: str, *more: str) -> subprocess.CompletedProcess[str]:
    return place.vnet("compare", "baseline.json", other, "--fail-if", LIMIT, "--out", "page.html", *more)


@pytest.mark.sweep
def test_a_planted_regression_of_5_percent_is_caught_and_a_null_difference_is_called_null(
    place: Place,
) -> None:
    (place.cwd / "service.yaml").write_text(service())
    measured(place, "old")
    assert place.vnet("baseline", "save", "old", "baseline.json").returncode == 0
    measured(place, "slower", "-p", "work=1100")
    slower = compared(place, "slower")
    assert slower.returncode == 7, slower.stdout + slower.stderr
    assert "fails: latency p99 of meter.send: B against A: +" in slower.stdout
    measured(place, "again", "--seed", "101")
    again = compared(place, "again", "--json")
    assert again.returncode == 0, "nothing differs but the seeds"
    rows = {row["metric"]: row for row in json.loads(again.stdout)["figures"]}
    assert rows["latency_p50"]["finding"] == "no difference"
    assert "differs" not in {row["finding"] for row in rows.values()}
