"""Implements `vnet calibrate`, which measures how much load this machine carries faithfully."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import json_option, note, print_json, say
from orchestrator.cli.topologies import kernel_option

if TYPE_CHECKING:
    from orchestrator.calibrate.judge import Step
    from orchestrator.calibrate.ladder import Ladder
    from orchestrator.calibrate.store import Calibration


@click.command("calibrate")
@kernel_option
@json_option
def calibrate_command(kernel: str, as_json: bool) -> None:
    """Measure what this machine carries faithfully in real time; takes two minutes, so leave it idle.

    Four labs send UDP messages at rising rates until they leave or arrive more than 1 ms late, or are lost.
    `vnet check` and `vnet plan` then warn of topologies that ask for more.

    \b
    Example:  vnet calibrate
              vnet calibrate --kernel uml
    """
    if kernel == "fake" or kernel.startswith("ssh:"):
        raise CliError(f"--kernel {kernel}: a calibration is of this machine; leave --kernel out", USAGE)
    from dataclasses import asdict

    from orchestrator.calibrate.run import calibrate
    from orchestrator.calibrate.store import save

    found = calibrate(kernel, _tell)
    path = save(found)
    if as_json:
        print_json({**asdict(found), "path": str(path)})
    else:
        say(f"{words(found)}\nkept in {path}")


def _tell(ladder: Ladder, steps: Sequence[Step]) -> None:
    from orchestrator.calibrate.judge import limit

    note(f"{ladder.name}: faithful up to {limit(steps):,.0f} packets/s of {steps[-1].per_s:,.0f} tried")


def words(found: Calibration) -> str:
    """Returns the results of a calibration as text, one quantity a line."""
    return "\n".join((
        f"this machine under kernel {found.kernel} ({found.release}) is faithful up to",
        f"  packets/s    {found.link_packets_per_s:>10,.0f} over one link, {found.packets_per_s:,.0f} in all",
        f"  Mbit/s       {found.link_bits_per_s / 1e6:>10,.0f} over one link, "
        f"{found.bits_per_s / 1e6:,.0f} in all",
        f"  messages/s   {found.messages_per_s:>10,.0f} that leave in time",
        f"  timer error  {found.timer_error_ns / 1e3:>10,.0f} us (99th percentile at the lowest load)",
    ))  # fmt: skip
