"""Finding a running lab by name, and asking it."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.control import Control, ControlError, Message
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.nodes import PatternError, expand


@dataclass(frozen=True)
class Running:
    """A lab with a state directory of this user."""

    name: str
    state_dir: Path

    @property
    def control(self) -> Path:
        """Its control socket."""
        return self.state_dir / "control.sock"


def names() -> list[str]:
    """Labs of this user of which anything is here, serving or not; for root also what crashes have left.

    With VNET_STATE_DIR only those below it: namespaces without a state directory there may be of other labs.
    """
    from orchestrator.lab.cleanup import labs
    from orchestrator.lab.state import is_state, state_root

    if os.geteuid() == 0 and "VNET_STATE_DIR" not in os.environ:
        return labs()
    root = state_root()  # an ordinary user's labs have nothing outside it, and namespaces are another's
    return sorted(d.name for d in root.iterdir() if is_state(d)) if root.is_dir() else []


def find(lab: str) -> Running:
    """The running lab of that name; CliError that names those that run."""
    from orchestrator.lab.state import state_root

    running = Running(lab, state_root() / lab)
    if not (running.state_dir / "lab.json").exists():
        there = ", ".join(names())
        raise CliError(
            f"lab {lab}: no such lab runs here; "
            + (f"running: {there}" if there else "`vnet up FILE` starts one")
        )
    return running


def connect(lab: str) -> Control:
    """A connection to a running lab; CliError where it does not answer, with the remedy."""
    from orchestrator.lab.state import read_lab

    running = find(lab)
    about = read_lab(running.state_dir)
    if "died" in about:
        raise CliError(
            f"lab {lab}: died: {about['died']}; what it left is in {about['run_dir']}, "
            f"`vnet down {lab}` clears it"
        )
    if about.get("time") == "virtual":
        raise CliError(
            f"lab {lab}: runs in virtual time, where nothing can be asked of it: while it waited for you its "
            "clock would run away, and the run would not repeat; the timeline of its file does everything"
        )
    try:
        return Control.connect(running.control)
    except ControlError as error:
        raise CliError(
            f"lab {lab}: {error}; it is being made, runs a scenario, or has died: `vnet ls` says which, "
            f"`vnet down {lab}` removes it"
        ) from error


def ask(lab: str, op: str, **fields: Any) -> Message:
    """One request to a running lab; CliError with the lab's text if it is refused."""
    with connect(lab) as control:
        return asked(control, op, **fields)


def asked(control: Control, op: str, **fields: Any) -> Message:
    """One request on a connection; CliError with the lab's text if it is refused."""
    try:
        return control.call(op, **fields)
    except ControlError as error:
        raise CliError(str(error)) from error


def by(how: str = "") -> str:
    """Who changes a lab, as its events have it: the account, and `how` where not by a command."""
    return f"{getpass.getuser()} {how}".rstrip()


def choose(patterns: str, groups: dict[str, str]) -> list[str]:
    """Node names that NODES means; CliError (wrong usage) that names what exists."""
    try:
        return expand(patterns, groups)
    except PatternError as error:
        raise CliError(str(error), USAGE) from error


def one(patterns: str, groups: dict[str, str]) -> str:
    """The single node that a pattern means; CliError if it means several."""
    found = choose(patterns, groups)
    if len(found) > 1:
        raise CliError(
            f'node: "{patterns}" means {len(found)} nodes; name one, for example {found[0]}', USAGE
        )
    return found[0]


def groups(control: Control) -> dict[str, str]:
    """Group of every node, in the lab's order."""
    found: dict[str, str] = asked(control, "status")["groups"]
    return found
