"""Tests every kind of queue on real kernels: set, read back, changed into every other kind and removed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_running import Control, needs_light, served
from queue_kinds import ALL, RATED, changed
from virtual_place import Place, kernel_missing

from contract.codec import build
from contract.plan import Impairment
from orchestrator.kernel.facts import host_facts
from orchestrator.kernel.needs import _kinds_of
from orchestrator.plan.build import make_plan
from orchestrator.queueing import set_text
from orchestrator.topology.loading import parse

PAIR = """\
name: queues-contract
segments: {west: {subnet: 10.1.0.0/24}, east: {subnet: 10.1.0.0/24}}
nodes: {a: {segment: west}, b: {segment: east}}
links: {far: {between: [west, east]}}
"""
PLACES = [pytest.param("light", marks=needs_light), "fake", pytest.param("uml", marks=pytest.mark.uml)]


STEPS = [*itertools.pairwise(ALL), *itertools.product(ALL, ["none"])]


class Uml:
    """A lab in a guest kernel, started by the command line."""

    def __init__(self, directory: Path) -> None:
        if why := kernel_missing():
            pytest.skip(why)
        # The path is short, because it holds sockets.
        self._own_state = tempfile.TemporaryDirectory(prefix="vnet-state-")
        self.place = Place(directory, {"VNET_STATE_DIR": self._own_state.name})
        (directory / "pair.yaml").write_text(PAIR)
        done = self.place.vnet("up", "pair.yaml", "--kernel", "uml", timeout_s=90)
        assert done.returncode == 0, done.stderr
        self.state_dir = Path(self._own_state.name) / "queues-contract"
        deadline = time.monotonic() + 30  # the guest's socket appears outside a moment after it exists inside
        while not (self.state_dir / "control.sock").exists():
            assert time.monotonic() < deadline, "no control socket within 30 s"
            time.sleep(0.05)

    def close(self) -> None:
        assert self.place.vnet("down", "queues-contract").returncode == 0
        assert not self.state_dir.exists()
        self._own_state.cleanup()


@pytest.fixture(scope="module", params=PLACES)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yields a lab that serves; asserts afterwards that nothing of it is left."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "uml":
        guest = Uml(directory)
        yield guest
        guest.close()
        return
    with served(make_plan(parse("pair.yaml", PAIR.encode())), directory, request.param) as running:
        yield running


def on_the_host(lab: Any) -> bool:
    if isinstance(lab, Uml):
        return False
    return bool(json.loads((lab.run_dir / "manifest.json").read_text())["driver"] != "fake")


def lacking(lab: Any, *wanted: Impairment) -> str | None:
    """Returns the first kind of queue of these impairments that the host's kernel lacks; None if it
    has all.
    """
    if not on_the_host(lab):
        return None
    kinds = [kind for one in wanted for kind in _kinds_of(set_text("x", one))]
    return next((kind for kind in kinds if host_facts().lacks(kind) is not None), None)


def put(lab: Any, wanted: Impairment) -> Impairment:
    """Sets the impairment, which the lab reads back and compares, and returns what was read."""
    call = Control(lab).call
    answer = call("link", link="far", forward=dataclasses.asdict(wanted))
    assert answer["ok"], answer
    read = call("inspect")["links"]["far"]["forward"]["read"]
    return build(Impairment, read) if read is not None else Impairment()


@pytest.mark.parametrize(("first", "second"), STEPS)
def test_every_kind_of_queue_is_set_read_back_and_replaced(lab: Any, first: str, second: str) -> None:
    if (kind := lacking(lab, ALL[first], ALL[second])) is not None:
        pytest.skip(f"this machine's kernel has no {kind}")
    for name in (first, second):
        read, wanted = put(lab, ALL[name]), ALL[name]
        assert (read.rate_bps, read.delay_ns, read.queue) == (wanted.rate_bps, wanted.delay_ns, wanted.queue)


@pytest.mark.parametrize("kind", RATED)
def test_numbers_change_under_the_queue(lab: Any, kind: str) -> None:
    if (lacks := lacking(lab, RATED[kind])) is not None:
        pytest.skip(f"this machine's kernel has no {lacks}")
    put(lab, RATED[kind])
    after = changed(kind)
    assert put(lab, after).queue == after.queue
    assert put(lab, Impairment()).queue is None


def test_the_machine_here_has_at_least_htb() -> None:
    """Shows that this kernel has at least htb; otherwise the tests above would have skipped every queue of
    the host.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root")
    assert host_facts().lacks("htb") is None
