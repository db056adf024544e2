"""Tests the simulated substations with few nodes: every stream arrives, and file transfers make it later."""

from __future__ import annotations

import pytest
from virtual_place import PROJECT, Place

from reports.papers.industrial_ethernet_substation.delays import delay_metrics
from reports.papers.industrial_ethernet_substation.tables import tables
from reports.rundir import read_run
from reports.study import study_of_run

FEW = ("-p", "samples=40 /s", "-p", "trips=5 /s", "-p", "busbar_trips=10 /s", "-p", "hold=8 s")
CHEAP = {"VNET_SYSCALL_COST": "100ns"}  # the setting that the files name


def delays(place: Place, network: str, *sizes: str) -> dict[tuple[str | None, str], float]:
    place.env.update(CHEAP)
    ran = place.run(*sizes, file=str(PROJECT / f"topologies/papers/substation-{network}.yaml"))
    assert len(tables(study_of_run(ran.run_dir))) == 1
    return {(m.of.traffic_class, m.name): m.value for m in delay_metrics(read_run(ran.run_dir))}


def test_flat_stacks_take_packets_one_after_the_other(place: Place) -> None:
    found = delays(place, "flat", "-p", "samples=144 /s", "-p", "hold=4 s")
    for stream in ("pisa-controller", "controller-pisa"):
        # us of the stack: 200 and 50
        assert found[stream, "alone_delay_mean"] > 250
        assert found[stream, "ftp_delay_mean"] > found[stream, "alone_delay_mean"]


@pytest.mark.sweep
@pytest.mark.slow
def test_ten_bays_and_their_busbar(place: Place) -> None:
    """Tests the delays of 122 nodes in ten bays, with the stacks, streams and files of the flat network
    above.
    """
    found = delays(place, "bays", *FEW)
    stacks = {
        "ct-protection": 150,
        "protection-cb": 150,
        "ct-busbar": 120,
        "busbar-cb": 120,
    }
    assert {stream for stream, _ in found} == stacks.keys()
    for stream, us in stacks.items():
        assert found[stream, "alone_delay_mean"] == pytest.approx(us + 30, abs=30)
        assert found[stream, "ftp_delay_max"] >= us
