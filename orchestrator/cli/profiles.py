"""Implements `vnet profiles`, which lists named impairments and the sources of their figures."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.output import console, print_json, table


@click.command("profiles")
@click.argument("names", nargs=-1)
@click.option("--beside", default=".", show_default=True, help="Directory of the topology file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def profiles_command(names: tuple[str, ...], beside: str, as_json: bool) -> None:
    """List the impairments for `profile: NAME` in topologies, or show the sources of their figures.

    \b
    Example:  vnet profiles ieee-802.15.4
    """
    from orchestrator.topology import profiles

    directory = Path(beside)
    try:
        found = [profiles.find(name, directory) for name in names or profiles.names(directory)]
    except profiles.ProfileError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json([{"name": p.name, "title": p.title, "forward": p.forward, "reverse": p.reverse,
                     "link": p.link, "sources": p.sources} for p in found])  # fmt: skip
        return
    if not names:
        console().print(table(["profile", "what"], [[p.name, p.title] for p in found]))
        return
    for profile in found:
        rows = [
            [side, key, str(value), profile.sources[f"{side} {key}"]]
            for side in (*profiles.SIDES, "link")
            for key, value in getattr(profile, side).items()
        ]
        console().print(f"{profile.name}: {profile.title}")
        console().print(table(["of", "quantity", "value", "source"], rows))
