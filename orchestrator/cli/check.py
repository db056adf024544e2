"""Implements `vnet check`, which lists all mistakes of a topology or campaign file at once, or its contents
and warnings if it has none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.errors import DONE, REFUSED, USAGE, CliError
from orchestrator.cli.output import json_option, note, print_json, say
from orchestrator.cli.topologies import (
    file_argument,
    fits_in,
    hosts_option,
    parameters_option,
    time_option,
)

if TYPE_CHECKING:
    from contract.plan import Note, Plan
    from orchestrator.topology import Campaign, Problem


@click.command("check")
@file_argument
@parameters_option
@time_option
@hosts_option
@json_option
def check_command(
    file: Path, parameters: dict[str, str], time_mode: str, hosts: tuple[str, ...], as_json: bool
) -> int:
    """Check a topology or campaign file: names, references, units, addresses, combinations, fit.

    \b
    Example:  vnet check topologies/pair.yaml
              vnet check topologies/pair.yaml --time virtual
    """
    from orchestrator.topology import TopologyError

    problems: Sequence[Problem] = ()
    notes: Mapping[Note, str] = {}
    said = ""
    try:
        said, notes = _examine(file, parameters, time_mode, hosts)
    except TopologyError as error:
        problems = error.problems
    if as_json:
        warnings = [dataclasses.asdict(one) for one in notes]
        listed = [dataclasses.asdict(problem) for problem in problems]
        print_json({"ok": not problems, "problems": listed, "warnings": warnings})
    elif problems:
        note("\n".join(str(problem) for problem in problems))
        note(f"{file}: {len(problems)} mistake{'s' if len(problems) > 1 else ''}")
    else:
        say(f"{file}: good: {said}")
        for one, word in notes.items():
            note(f"{word}: {one.place}: {one.text}; {one.remedy}")
    return REFUSED if problems else DONE


def _examine(
    file: Path, parameters: dict[str, str], time_mode: str, hosts: tuple[str, ...]
) -> tuple[str, Mapping[Note, str]]:
    """Returns the contents of a correct file as text (`3 nodes, 1 segment, ...`), and a list of remarks, each
    with its word: `note` for a remark on the file's requests, `warning` for one on this machine's abilities.

    Raises TopologyError if the file has mistakes or does not fit this machine.
    """
    from orchestrator.language.source import read_document
    from orchestrator.plan.build import make_plan
    from orchestrator.run import filters
    from orchestrator.topology import TopologyError, load, load_campaign
    from orchestrator.topology.loading import read_bytes

    insist_it_fits = fits_in(time_mode)
    document = read_document(str(file), read_bytes(file))
    data = document.data
    if isinstance(data, dict) and "campaign" in data and "segments" not in data:
        if hosts:
            raise CliError(
                "--hosts: applies to one lab; the topologies of a campaign name their own hosts", USAGE
            )
        campaign = load_campaign(file, parameters)
        found: dict[Note, str] = {}
        for cell in campaign.cells:
            if cell.repetition > 1:  # the plan is the same, with another seed
                break
            plan = make_plan(cell.loaded, None, cell.seed)
            insist_it_fits(plan)
            found |= _notes(plan, time_mode)
        return _runs(campaign), found
    try:
        topology = load(file, parameters, hosts)
    except TopologyError as error:
        raise TopologyError([*error.problems, *filters.written(document)]) from None
    plan = make_plan(topology)
    insist_it_fits(plan)
    counted = (
        ("node", plan.nodes),
        ("segment", plan.segments),
        ("link", plan.links),
        ("capture", plan.captures),
    )
    said = [f"{len(what)} {word}{'s' * (len(what) != 1)}" for word, what in counted]
    if topology.campaign is not None:
        fixed = {name: value for name, value in parameters.items() if name not in topology.campaign.factors}
        said.append(_runs(load_campaign(file, fixed)))
    return ", ".join(said), _notes(plan, time_mode)


def _notes(plan: Plan, time_mode: str) -> dict[Note, str]:
    of_machine = [*_of_machines(plan), *of_calibration(plan, time_mode)]
    return dict.fromkeys(plan.notes, "note") | dict.fromkeys(of_machine, "warning")


def _of_machines(plan: Plan) -> list[Note]:
    """Returns warnings on images of virtual machines that this machine lacks, and on disks that may fill it.

    Empty for a plan without virtual machines, and for a multi-host lab.
    """
    from contract.plan import Note

    if plan.hosts or not any(node.vm is not None for node in plan.nodes):
        return []
    from orchestrator.kernel.virtual_machines import growing_disks, missing_images
    from orchestrator.lab.vm import storage

    absent = [(f"{one.what} ({one.reason}) on this machine", one) for one in missing_images(plan)]
    growing = [(f"{o.what}: {o.reason}", o) for o in growing_disks(plan, storage.existing(storage.root()))]
    return [Note("nodes", text, one.remedy) for text, one in (*absent, *growing)]


def of_calibration(plan: Plan, time_mode: str) -> list[Note]:
    """Returns warnings if the plan's load exceeds the load that this machine can carry according to `vnet
    calibrate`. Empty in virtual time, for labs on other machines, and without a calibration of the kernel
    that would run the plan.
    """
    from orchestrator.calibrate import demand, store
    from orchestrator.kernel.protocol import KernelError
    from orchestrator.kernel.registry import choose, machine_of

    if time_mode == "virtual" or plan.hosts or not any(store.directory().glob("*.json")):
        return []
    try:
        if machine_of(plan) is not None:
            return []
        kernel = choose(plan).kernel.name
    except KernelError:
        return []  # no kernel can run the plan; `insist_it_fits` reports this if it is a mistake
    known = store.read(kernel)
    return [] if known is None else list(demand.notes(plan, known))


def _runs(campaign: Campaign) -> str:
    """Returns the number of runs in words, with `at least` if searches or `until` may add runs."""
    grows = campaign.searches or campaign.until is not None
    return f"campaign of {'at least ' if grows else ''}{len(campaign.cells)} runs"
