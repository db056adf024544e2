"""Defines the scene of a lab on another machine whose ssh connection is cut after a number of messages."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cases import MARK, RUN, Case, Scene, pair, reports
from faults import CUT, Fault

sys.path.append(str(Path(__file__).parents[1] / "remote"))
from far_machine import SSHD, FarMachine

GONE_S = 20.0


def why_not() -> str:
    return "" if SSHD.exists() and shutil.which("ssh") else "no ssh server to start (images/packages.sh far)"


@contextmanager
def far_run(folder: Path) -> Iterator[Scene]:
    """Yields the scene of a run by the fake driver on another machine, one machine for all cases. Without an
    ssh server the scene is skipped with that reason.
    """
    if why_not():
        yield Scene("far run", pair, RUN, reports, lambda fault: False, why_not)
        return
    place = folder / "f"
    place.mkdir()
    machine = FarMachine(place)
    config = machine.ssh()["VNET_SSH"]
    proxy = f"{sys.executable} {Path(__file__).with_name('cut.py')} %h %p"

    def prepare(case: Case) -> None:
        pair(case)
        machine.more[MARK] = str(case.base)  # processes on that machine belong to the case, too
        machine.stop()
        machine.start()

    def holds(case: Case, results: Path) -> str:
        until = time.monotonic() + GONE_S
        while (left := machine.left()) and time.monotonic() < until:
            time.sleep(0.05)
        return f"left there: {left}" if left else reports(case, results)

    def bears(fault: Fault) -> bool:
        return fault.name == CUT

    words = tuple(f"{machine.url}/fake" if word == "fake" else word for word in RUN)
    more = (("VNET_SSH", f"{config} -o 'ProxyCommand={proxy}'"),)
    try:
        yield Scene("far run", prepare, words, holds, bears, why_not, more)
    finally:
        machine.stop()
