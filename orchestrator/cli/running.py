"""Finds running labs and their nodes by name, and sends requests to labs."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.control import Control, ControlError, Message
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.nodes import PatternError, expand


@dataclass(frozen=True)
class Running:
    """A lab of this user, by its name and its state directory."""

    name: str
    state_dir: Path

    @property
    def control(self) -> Path:
        """The path of the lab's control socket."""
        return self.state_dir / "control.sock"


def find(lab: str) -> Running:
    """Returns the running lab of that name; raises CliError with the names of all labs if there is none."""
    from orchestrator.lab.cleanup import running_labs
    from orchestrator.lab.state import state_root

    running = Running(lab, state_root() / lab)
    if not (running.state_dir / "lab.json").exists():
        there = ", ".join(running_labs())
        raise CliError(
            f"lab {lab}: no such lab runs here; "
            + (f"running: {there}" if there else "`vnet up FILE` starts one")
        )
    return running


def connect(lab: str, *, looks: bool = False) -> Control:
    """Connects to a running lab. Raises CliError with a remedy if it does not exist, has died, runs in
    virtual time or does not answer, or if another account began it, unless the caller only `looks`.
    """
    from orchestrator.lab.state import read_lab
    from orchestrator.reservations.running import of_another

    running = find(lab)
    if not looks and (theirs := of_another(lab)) is not None:
        raise CliError(f"{theirs}: only {theirs.account} or root uses it; `vnet inspect {lab}` shows it")
    about = read_lab(running.state_dir)
    if "died" in about:
        raise CliError(
            f"lab {lab}: died: {about['died']}; what it left is in {about['run_dir']}, "
            f"`vnet down {lab}` clears it"
        )
    if about.get("time") == "virtual":
        raise CliError(
            f"lab {lab}: runs in virtual time and takes no commands: its clock would run ahead while it "
            "waits for you, and the run would not repeat; put the command into the timeline of its file"
        )
    try:
        return Control.connect(running.control)
    except ControlError as error:
        raise CliError(
            f"lab {lab}: {error}; it is starting, runs a scenario, or has died; `vnet ls` shows which, "
            f"`vnet down {lab}` removes it"
        ) from error


def asked(control: Control, op: str, **fields: Any) -> Message:
    """Sends one request and returns the answer; CliError with the lab's text if the lab refuses."""
    try:
        return control.call(op, **fields)
    except ControlError as error:
        raise CliError(str(error)) from error


def by(how: str = "") -> str:
    """Returns the author of a change for the lab's events: the account name, with `how` if that is
    not empty.
    """
    return f"{getpass.getuser()} {how}".rstrip()


def choose(patterns: str, groups: dict[str, str]) -> list[str]:
    """Returns the nodes that match the argument NODES; CliError (USAGE) if a part of it matches none."""
    try:
        return expand(patterns, groups)
    except PatternError as error:
        raise CliError(str(error), USAGE) from error


def one(patterns: str, groups: dict[str, str]) -> str:
    """Returns the single node that matches a pattern; CliError if there are several or none."""
    found = choose(patterns, groups)
    if len(found) > 1:
        raise CliError(
            f'node: "{patterns}" matches {len(found)} nodes; name one, for example {found[0]}', USAGE
        )
    return found[0]


def groups(control: Control) -> dict[str, str]:
    """Returns the group of each node, in the lab's order, from the lab's answer."""
    found: dict[str, str] = asked(control, "status")["groups"]
    return found
