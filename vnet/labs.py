"""Defines the class `Lab` for tests and notebooks, which brings a lab up, queries it and takes it down with
the command line `vnet`.
"""

from __future__ import annotations

import html
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract import findings
from contract.manifest import Manifest

from .measured import Measured

if TYPE_CHECKING:
    import polars as pl

    from .run import Run
    from .topology import Topology

UNABLE = 4  # docs/contracts/exit-statuses.md: this machine cannot carry the lab
UNMET, UNTOLD = 7, 8  # an expectation fails or is open; the answer names it
SHOWN = 20  # lines of a command's output in a failure
_numbers = itertools.count(1)


class LabError(AssertionError):
    """Raised if a `vnet` command, a command on a node, or an assertion about the run fails; pytest shows it
    as a failed assertion.
    """


class UnableError(Exception):
    """Raised if this machine cannot carry the lab; the text gives the reason."""


@dataclass(frozen=True)
class Spec:
    """The specification of a lab for tests: a topology file, its parameters, and the options of its run. With
    `scenario`, the scenario runs to its end before the test begins.
    """

    file: Path
    parameters: tuple[tuple[str, str], ...] = ()
    kernel: str = "auto"
    time: str = "real"
    seed: int | None = None
    scenario: bool = False  # True: the scenario runs to its end before the test begins

    @property
    def options(self) -> list[str]:
        """The arguments of `vnet` for the parameters, the seed if there is one, and the kernel in real time
        or else `--time`.
        """
        words = [word for name, value in self.parameters for word in ("-p", f"{name}={value}")]
        words += ["--kernel", self.kernel] if self.time == "real" else ["--time", self.time]
        return [*words, *([] if self.seed is None else ["--seed", str(self.seed)])]


@dataclass(frozen=True)
class Done:
    """The result of a command on a node: exit status and output."""

    node: str
    command: str
    status: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        said = [f"  {line}" for line in (self.stdout + self.stderr).splitlines()[-SHOWN:]]
        return "\n".join([f"{self.node}: `{self.command}`: exit status {self.status}", *said])


@dataclass(frozen=True)
class Node:
    """A node of the lab, on which tests run commands and which they power on and off."""

    lab: Lab
    name: str

    def exec(self, command: str | Sequence[str], *, check: bool = True) -> Done:
        """Runs a command on the node, a text by `sh -c`, a sequence as argument words, and returns its exit
        status and output. LabError if the command could not run or, with `check`, if its exit status is not
        0.
        """
        __tracebackhide__ = True
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        (answer,) = self.lab.ask("exec", self.name, "--json", "--", *words, may_fail=True)
        said = command if isinstance(command, str) else shlex.join(command)
        if answer["error"]:
            raise LabError(f"{self.name}: `{said}`: {answer['error']}")
        done = Done(self.name, said, answer["status"], answer["stdout"], answer["stderr"])
        if check and done.status:
            raise LabError(str(done))
        return done

    def start(self) -> None:
        """Powers the node on."""
        self.lab.ask("start", self.name)

    def stop(self) -> None:
        """Powers the node off: its programs end and its links go down."""
        self.lab.ask("stop", self.name)


@dataclass(frozen=True)
class Link:
    """A link of the lab, which tests can impair, take down and bring up."""

    lab: Lab
    name: str

    def impair(self, *, direction: str = "both", **quantities: str | int | float) -> dict[str, Any]:
        """Changes the given quantities (`delay="50 ms", loss="1 %"`) in the `direction` (both, forward or
        reverse) and leaves the others; returns the impairment read back from the kernel, by direction.
        """
        words = [] if direction == "both" else [f"--{direction}"]
        words += [w for key, value in quantities.items() for w in (f"--{key.replace('_', '-')}", str(value))]
        answer: dict[str, Any] = self.lab.ask("link", self.name, *words, "--json")
        return answer

    def clear(self) -> None:
        """Removes all impairments of the link."""
        self.lab.ask("link", self.name, "--clear")

    def down(self) -> None:
        """Takes the link down, so that it carries no packets."""
        self.lab.ask("link", self.name, "--down")

    def up(self) -> None:
        """Brings the link up again."""
        self.lab.ask("link", self.name, "--up")


@dataclass(frozen=True)
class Flow:
    """The messages of one flow, or of all flows of one class, with their times and fates."""

    name: str
    messages: pl.DataFrame = field(repr=False)

    @property
    def expected(self) -> int:
        """The number of rows (message and expected receiver) whose message was sent."""
        return self._sent.height

    @property
    def received(self) -> int:
        """The number of sent messages that arrived or were answered, counted for each receiver."""
        there, back = (self._sent.get_column(name).is_not_null() for name in ("received_ns", "replied_ns"))
        return int((there | back).sum())

    @property
    def lost(self) -> int:
        """The number of sent messages that neither arrived nor were answered: `expected` less `received`."""
        return self.expected - self.received

    @property
    def late(self) -> int:
        """The number of messages, counted for each receiver, that arrived after their deadline or never; 0 if
        the flow has no deadline.
        """
        return int(self.messages.get_column("late").sum() or 0)

    def latency(self, percent: float) -> Measured:
        """Returns the given percentile (0 to 100) of the latency from the scheduled time; LabError if no
        message arrived.
        """
        __tracebackhide__ = True
        return self._percentile("latency_ns", "latency", percent)

    def round_trip(self, percent: float) -> Measured:
        """Returns the given percentile (0 to 100) of the time from the scheduled sending until the reply;
        LabError if no reply came.
        """
        __tracebackhide__ = True
        return self._percentile("round_trip_ns", "round trip", percent)

    @property
    def latency_p50(self) -> Measured:
        """The median latency from the scheduled time; LabError if no message arrived."""
        return self.latency(50)

    @property
    def latency_p99(self) -> Measured:
        """The 99th percentile of the latency from the scheduled time; LabError if no message arrived."""
        return self.latency(99)

    @property
    def latency_max(self) -> Measured:
        """The highest latency from the scheduled time; LabError if no message arrived."""
        return self.latency(100)

    @property
    def _sent(self) -> pl.DataFrame:
        return self.messages.filter(
            self.messages.get_column("sent_ns").is_not_null()
            & self.messages.get_column("receiver").is_not_null()
        )

    def _percentile(self, column: str, what: str, percent: float) -> Measured:
        __tracebackhide__ = True
        values = self.messages.get_column(column).drop_nulls()
        found = values.quantile(percent / 100, "higher")
        if found is None:
            raise LabError(
                f"flow {self.name}: no {what}: {self.expected} messages sent, {self.received} came"
            )
        return Measured(found / 1e9, f"{what} p{percent:g} of flow {self.name}, {values.len()} messages")


class Lab:
    """A lab for tests, up while tests use it, and the run of its scenario with the measurements. In virtual
    time there is only the run.
    """

    def __init__(self, spec: Spec, name: str, out: Path) -> None:
        self.spec, self.name, self._out = spec, name, out
        self._up = False
        self.run_dir: Path | None = None
        self.failed_in: list[str] = []  # ids of the failed tests

    def __repr__(self) -> str:
        return f"Lab({self.name} of {self.spec.file})"

    def bring_up(self) -> None:
        """Brings the lab up or, if its Spec has a scenario, runs the scenario to its end. In real time, the
        lab stays up afterwards. Raises UnableError or LabError.
        """
        stays = self.spec.time == "real"
        words = ["run", *(["--keep"] if stays else [])] if self.spec.scenario else ["up"]
        file = [str(self.spec.file), "--lab", self.name, "--results", str(self._out), "--json"]
        self._up = stays
        try:
            answer = self._vnet(*words, *file, *self.spec.options, may_fail=True)
        except (LabError, UnableError):
            self._up = False  # False before `vnet up` and after `vnet down`
            raise
        self.run_dir = Path(answer["run_dir"])
        if answer.get("up") is False or answer.get("state", "complete") != "complete":
            self._up = False
            raise LabError(f"{self}: {answer['error'] or answer.get('state')}")

    def take_down(self) -> None:
        """Takes the lab down if it is up; LabError if `vnet down` fails."""
        if self._up:
            self._up = False
            self._vnet("down", self.name, "--json")

    def node(self, name: str) -> Node:
        """Returns the node of that name; the name is not checked."""
        return Node(self, name)

    def link(self, name: str) -> Link:
        """Returns the link of that name; the name is not checked."""
        return Link(self, name)

    def impair(self, link: str, *, direction: str = "both", **quantities: str | int | float) -> pl.DataFrame:
        """Changes the given quantities of a link (`delay="50 ms", loss="1 %"`) and leaves the others; returns
        the impairment that the kernel has now: a row for each direction and quantity.
        """
        import polars as pl

        read = self.link(link).impair(direction=direction, **quantities)
        rows = [
            {"link": link, "direction": way, "quantity": key, "value": str(value)}
            for way in ("forward", "reverse")
            for key, value in (read.get(way) or {}).items()
        ]
        schema = {"link": pl.String, "direction": pl.String, "quantity": pl.String, "value": pl.String}
        return pl.DataFrame(rows, schema=schema)

    @property
    def nodes(self) -> pl.DataFrame:
        """The nodes of the lab, which is up: name, group, state, addresses, software with its state."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "node": name,
                    "group": node["group"],
                    "state": node["state"],
                    "addresses": [f"{card['address']}/{card['prefix']}" for card in node["interfaces"]],
                    "software": [f"{key}: {one.get('state')}" for key, one in node["software"].items()],
                }
                for name, node in self.inspect()["nodes"].items()
            ]
        )

    def _repr_html_(self) -> str:
        """Shows the lab in a notebook: its nodes while it is up, else its run directory."""
        if self._up:
            return f"<p>{html.escape(repr(self))}</p>{self.nodes._repr_html_()}"
        return f"<p>{html.escape(repr(self))}: {html.escape(str(self.run_dir))}</p>"

    def flow(self, name: str) -> Flow:
        """Returns the messages of the flow or class `name` in the run of the scenario; LabError if none has
        that name, or if no scenario was run.
        """
        __tracebackhide__ = True
        import polars as pl

        all_of_them = self.run.messages.collect()
        found = all_of_them.filter((pl.col("name") == name) | (pl.col("class") == name))
        if found.is_empty():
            known = sorted({*all_of_them.get_column("name"), *all_of_them.get_column("class")})
            raise LabError(
                f"flow {name}: none of that name or class; there are: {', '.join(known) or 'none'}"
            )
        return Flow(name, found)

    @cached_property
    def run(self) -> Run:
        """The run of the scenario, as `vnet.load` returns it; LabError if no scenario was run."""
        from .run import Run

        if not self.spec.scenario or self.run_dir is None:
            raise LabError(f"{self}: no scenario has been run; write @pytest.mark.vnet(..., scenario=True)")
        return Run(self.run_dir)

    def inspect(self) -> dict[str, Any]:
        """Returns the current nodes, addresses, programs and links of the lab; LabError if the lab
        is not up.
        """
        found: dict[str, Any] = self.ask("inspect", "--json")
        return found

    def assert_trusted(self) -> None:
        """Raises LabError with the reasons if the run of the scenario is suspect, or if no scenario
        was run.
        """
        __tracebackhide__ = True
        if why := [f"  {reason}" for reason in findings.reasons(Manifest.of(self.run.manifest))]:
            raise LabError("\n".join([f"the run is suspect: {self.run_dir}", *why]))

    def assert_proven(self) -> None:
        """Raises LabError if a quantity of the link proof fails, and names all that do; also if no scenario
        was run.
        """
        __tracebackhide__ = True
        failed = [
            f"  {row['link']} {row['direction']} {row['quantity']}: {row['reason']}"
            for row in self.run.proof.to_dicts()
            if row["verdict"] == "fails"
        ]
        if failed:
            raise LabError("\n".join(["links that fail their proof:", *failed]))

    def expect(self, *conditions: str) -> None:
        """Raises LabError, with the reasons, unless every condition holds in the run of the scenario; a
        condition that the run does not decide does not hold.

        A condition is a line as in a topology's `expect`, such as `"latency_p99[class=a] < 5 ms"`; without
        one, the file's own expectations count.
        """
        __tracebackhide__ = True
        path = self.run.path
        answer = self._vnet("expect", str(path), "--json", "--", *conditions)
        wrong = [one for one in answer["expectations"] if one["verdict"] != "holds"]
        if wrong:
            lines = [f"  {one['verdict']}: {one['expectation']}: {one['reason']}" for one in wrong]
            raise LabError(
                "\n".join(
                    [f"{len(wrong)} of {len(answer['expectations'])} expectations do not hold:", *lines]
                )
            )

    def ask(self, command: str, *words: str, may_fail: bool = False) -> Any:
        """Runs one `vnet` command on the lab and returns its JSON answer, or None without `--json`. LabError
        if the lab is not up or the command fails; with `may_fail`, not for exit status 1 with a JSON answer.
        """
        __tracebackhide__ = True
        if not self._up:
            why = "ran in virtual time, and is over" if self.spec.time == "virtual" else "is down"
            raise LabError(f"{self}: {why}; `{command}` needs a lab that is up")
        return self._vnet(command, self.name, *words, may_fail=may_fail)

    def _vnet(self, *words: str, may_fail: bool = False) -> Any:
        """Runs a `vnet` command and returns its JSON answer, or None without `--json`.

        Exit status 4 raises UnableError, any other failure LabError. An answer in JSON is returned also for
        the exit statuses of expectations (7 and 8) and, with `may_fail`, for 1.
        """
        __tracebackhide__ = True
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli.main", *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        answered = (1, UNMET, UNTOLD) if may_fail else (UNMET, UNTOLD)
        if done.returncode and not (done.returncode in answered and "--json" in words and done.stdout):
            said = done.stderr.strip() or f"exit status {done.returncode}"
            if done.returncode == UNABLE:
                raise UnableError(said)
            raise LabError(f"vnet {shlex.join(words)}: exit status {done.returncode}\n{said}\n{done.stdout}")
        return json.loads(done.stdout) if "--json" in words else None


def spec_of(topology: Path, parameters: Mapping[str, Any], **how: Any) -> Spec:
    """Returns a Spec with its parameters as texts; `how` has the other fields. In virtual time it always runs
    the scenario, because a lab in virtual time cannot do anything else. ValueError for a kernel in virtual
    time, which has a kernel of its own.
    """
    if how.get("time") == "virtual" and how.get("kernel", "auto") != "auto":
        raise ValueError(
            f"kernel {how['kernel']!r}: virtual time has a kernel of its own; leave one of them out"
        )
    given = tuple((name, str(value)) for name, value in parameters.items())
    scenario = bool(how.pop("scenario", False)) or how.get("time") == "virtual"
    return Spec(topology, given, scenario=scenario, **how)


@contextmanager
def opened(
    topology: str | Path | Topology, results: Path, parameters: Mapping[str, Any], how: dict[str, Any]
) -> Iterator[Lab]:
    """Yields a lab that is up, and takes it down at the end; arguments and errors are those of `vnet.lab`."""
    with tempfile.TemporaryDirectory(prefix="vnet-") as directory:
        if isinstance(topology, str | Path):
            file = Path(topology)
        else:
            file = Path(directory) / "lab.yaml"
            topology.write(file)
        lab = Lab(spec_of(file, parameters, **how), f"n{os.getpid()}-{next(_numbers)}", results)
        lab.bring_up()
        try:
            yield lab
        finally:
            lab.take_down()
