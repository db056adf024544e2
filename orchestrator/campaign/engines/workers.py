"""Admits the workers of an engine: checks the facts of each before it receives a cell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.campaign.engines.engine import EngineError
from orchestrator.campaign.engines.examine import examine, versions
from orchestrator.campaign.engines.task import Facts
from orchestrator.campaign.engines.worker import admit

if TYPE_CHECKING:
    from distributed import Client

Observe = Callable[[dict[str, Any]], None]
FIRST_S = 30.0  # s to wait for the first worker; Slurm jobs may wait for hours instead


class Workers:
    """The workers of an engine that may run cells.

    alone: True if cells are labs in real time under the machine's own kernel, so that a machine gets one
    worker at most. virtual: True if cells run in virtual time, so that all workers must have equal inputs.
    """

    def __init__(self, client: Client, observe: Observe, *, alone: bool, virtual: bool) -> None:
        self._client = client
        self._observe = observe
        self._alone = alone
        self._virtual = virtual
        self._ours = versions()
        self.admitted: dict[str, Facts] = {}  # address of each connected worker -> its facts
        self._left_out: set[str] = set()
        self._seen: set[str] = set()  # boot ids of the machines that were reported to the user

    def look(self) -> bool:
        """Admits or leaves out new workers, and removes lost ones; returns whether it admitted one. As long
        as none is admitted or left out, raises EngineError if a new one has other versions or inputs than
        needed.
        """
        present = set(self._client.nthreads())
        first = not self.admitted and not self._left_out
        before = self.admitted
        self.admitted = {address: facts for address, facts in before.items() if address in present}
        if before and not present:
            self._observe({"event": "worker", "text": "no worker is left; the cells wait for one to come"})
        fresh = sorted(present - self.admitted.keys() - self._left_out)
        if not fresh:
            return False
        answers = self._client.run(examine, workers=fresh, on_error="return")
        wrong = {address: why for address in fresh if (why := self._refusal(address, answers.get(address)))}
        if wrong and first:
            raise EngineError("\n".join(wrong.values()))
        for address in fresh:
            answer = answers.get(address)
            if address in wrong:
                self._leave_out(address, wrong[address])
            elif isinstance(answer, Facts):
                self._admit(address, answer)
        return not self.admitted.keys().isdisjoint(fresh)

    def wait(self, patience_s: float, over: Callable[[], bool]) -> None:
        """Returns when a worker is admitted or `over()` holds; raises EngineError after `patience_s` seconds,
        and the errors of `look`.
        """
        deadline = time.monotonic() + patience_s
        self.look()
        while not self.admitted and not over():
            if time.monotonic() > deadline:
                raise EngineError(
                    "the scheduler has no worker that can be used; start `dask worker` where labs shall run "
                    "(docs/many-machines.md)"
                )
            time.sleep(0.2)  # waits for a worker until the deadline
            self.look()

    def _refusal(self, address: str, answer: Any) -> str | None:
        """Returns the reason why a worker cannot be used, from its answer to `examine`; None if it can be
        used, or if it has left.
        """
        if isinstance(answer, ImportError | AttributeError):
            return f"worker {address}: {answer}; install there the vNET that runs here"
        if not isinstance(answer, Facts):
            return None
        name = f"worker {address} on {answer.machine}"
        if differing := different(self._ours, answer.versions):
            return f"{name}: differs from this command in {differing}; install the same versions there"
        known = next(iter(self.admitted.values()), answer)
        if self._virtual and (differing := different(known.inputs, answer.inputs)):
            return (
                f"{name}: differs from {known.machine} in {differing}, so that runs in virtual time "
                "would not be the same there; install the same on both"
            )
        return None

    def _leave_out(self, address: str, why: str) -> None:
        self._left_out.add(address)
        self._observe({"event": "worker", "text": f"{why} (left out)"})

    def _admit(self, address: str, facts: Facts) -> None:
        # each new worker must have the same versions as the earlier ones
        if why := self._refusal(address, facts):
            self._leave_out(address, why)
            return
        if self._alone and any(other.boot == facts.boot for other in self.admitted.values()):
            why = "labs in real time would disturb one another on one machine"
            self._leave_out(address, f"worker {address} on {facts.machine}: {why}")
            return
        self._client.run(admit, workers=[address], on_error="ignore")
        self.admitted[address] = facts
        if facts.boot not in self._seen:
            self._seen.add(facts.boot)
            self._observe({"event": "worker", "text": str(facts)})

    def hosts_but(self, machines: Iterable[str]) -> list[str]:
        """Returns the network names (hosts of their addresses) of admitted workers on other machines than
        `machines` (boot ids). A worker that connects again keeps its network name, but not its address.
        """
        from distributed.comm.addressing import get_address_host

        without = set(machines)
        return sorted(
            {get_address_host(a) for a, facts in self.admitted.items() if facts.boot not in without}
        )


def different(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Returns the versions that differ, as `NAME (OURS, there THEIRS)`, separated by commas; empty if all are
    equal.
    """
    names = sorted(ours.keys() | theirs.keys())
    return ", ".join(
        f"{name} ({_short(ours.get(name))}, there {_short(theirs.get(name))})"
        for name in names
        if ours.get(name) != theirs.get(name)
    )


def _short(value: str | None) -> str:
    """Returns the value for a message: a SHA-256 shortened to 12 digits, `none` for None, any other text
    unchanged.
    """
    return "none" if value is None else value[:12] if len(value) == 64 else value
