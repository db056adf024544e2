"""Holds the lab process's view of one host's part: connection, clock and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import PATIENCE_NS, OnMessage
from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host import files
from orchestrator.lab.multi_host.channel import Channel
from orchestrator.lab.vm import clocks
from orchestrator.lab.vm.clocks import GuestClock
from orchestrator.lab.vm.dialogue import Dialogue, together
from orchestrator.lab.vm.records import Fetched, Records

# number of round trips for a clock estimate; a network's shortest round trip is rarer than a serial line's
ROUNDS = 24
FETCH_NS = 600 * SECOND  # time to fetch all files of a host, over a slow network


class HostPart:
    """The part on one host. argv: the command that starts the part and carries the connection to it."""

    def __init__(
        self, loop: Loop, run_dir: Path, name: str, argv: Sequence[str], on_event: OnMessage,
        on_lost: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.name = name
        self.clock = GuestClock()
        self.facts: dict[str, Any] = {}
        self._loop, self._run_dir = loop, run_dir
        self._own = run_dir / "raw" / "hosts" / name
        self._own.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, Fetched] = {}
        records = Records(self.clock)
        records.path = run_dir / files.MESSAGES
        self._follow(files.MESSAGES, records.take)
        for sample in files.SAMPLES:
            self._follow(f"raw/{sample}")
        self._follow(files.HOST)
        self.channel = Channel(loop, name, argv, self._own / "part.log", on_event, on_lost)

    @property
    def there(self) -> bool:
        """Whether the connection to the part is open."""
        return self.channel.lost is None

    def estimate(self) -> Dialogue[None]:
        """Returns a dialogue with the part that estimates the host's clock again."""
        self.clock.estimates.append((yield from clocks.estimate(self._loop.clock, ROUNDS)))

    def keep_up(self) -> Dialogue[None]:
        """Returns a dialogue with the part that estimates the clock and fetches new records and samples."""
        yield from self.estimate()
        for file in list(self._files.values()):
            yield from file.rest()

    def everything(self, names: Sequence[str]) -> Dialogue[None]:
        """Returns a dialogue with the part that fetches these files; captures are fetched when they end."""
        for name in names:
            if not name.startswith("pcap/"):
                self._follow(name)
        yield from self.keep_up()

    def fetch(self, name: str, take: Callable[[bytes], None]) -> None:
        """Fetches one file in its present state and passes its bytes to `take`; raises LabError if that
        fails.
        """
        dialogue = files.fetched(str(self._run_dir / name), take).rest()
        _, errors = together(self._loop, f"{name} of host {self.name}", FETCH_NS, [(self, dialogue)])
        if errors:
            raise LabError(errors[self.name])

    def _follow(self, name: str, take: Callable[[bytes], None] | None = None) -> None:
        if name not in self._files:
            take = take or files.taker(self._run_dir, name, self.name, self.clock.to_lab)
            self._files[name] = files.fetched(str(self._run_dir / name), take)


def ask_all(
    loop: Loop, verb: str, asked: Mapping[HostPart, Message], patience_ns: int = PATIENCE_NS
) -> dict[str, Message]:
    """Sends a verb to several parts in parallel and returns the answers by host; raises LabError with the
    first error.
    """
    answers: dict[str, Message] = {}
    for part, fields in asked.items():
        part.channel.ask(verb, fields, partial(answers.__setitem__, part.name))
    deadline = loop.clock.now_ns() + patience_ns
    loop.until(deadline, f"the hosts' answer to {verb}", lambda: len(answers) == len(asked))
    for name, answer in answers.items():
        if not answer.get("ok"):
            said = str(answer.get("error"))
            raise LabError(said if said.startswith("host ") else f"host {name}: {said}")
    return answers


CAPTURE_STOP_NS = 30 * SECOND


class HostCapture:
    """A running capture on another host. It counts as listening from the start, because the part answers only
    when tcpdump captures.
    """

    listening = True

    def __init__(self, loop: Loop, part: HostPart, name: str, run_dir: Path, file: Path) -> None:
        self._loop, self._part, self._name, self._run_dir, self._file = loop, part, name, run_dir, file

    def stop(self) -> dict[str, int]:
        """Ends the capture, fetches its file, with the packets' times on the lab's clock, and returns its
        counts of packets and drops. Raises LabError.
        """
        answer = ask_all(self._loop, "capture-stop", {self._part: {"name": self._name}}, CAPTURE_STOP_NS)
        packets = files.Packets(self._file, self._part.clock.to_lab)
        try:
            self._part.fetch(str(self._file.relative_to(self._run_dir)), packets.take)
        finally:
            packets.close()
        counts: dict[str, int] = answer[self._part.name]["value"]
        return counts
