"""Implements `vnet migrate`, which replaces retired keys of topology and campaign files by their present
names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

import click

from orchestrator.cli.errors import DONE, REFUSED, CliError
from orchestrator.cli.output import note, say
from orchestrator.cli.topologies import parameters_option


@click.command("migrate")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@parameters_option
@click.option("--check", is_flag=True, help="Change nothing; the exit status is 3 if a file would change.")
def migrate_command(files: tuple[Path, ...], parameters: dict[str, str], check: bool) -> int:
    """Rewrite retired keys in FILES, topologies or campaigns, and show the difference.

    Comments and layout stay. A file with mistakes stays as it is.

    \b
    Example:  vnet migrate topologies/*.yaml
              vnet migrate --check my.yaml
    """
    changed, wrong = 0, 0
    for file in files:
        try:
            changed += _migrate(file, parameters, check)
        except CliError as error:
            note(error.text)
            wrong += 1
    if wrong:
        note(f"{wrong} of {len(files)} files stay as they are")
    elif not changed:
        note(f"{len(files)} file{'s' * (len(files) != 1)}: no retired keys")
    return REFUSED if wrong or (check and changed) else DONE


def _migrate(file: Path, parameters: dict[str, str], check: bool) -> bool:
    """Prints the difference between the file and the file with present keys, and rewrites the file unless
    `check`. Returns whether the file has retired keys. Raises CliError if it has mistakes or cannot be
    written.
    """
    from orchestrator.topology import TopologyError
    from orchestrator.topology.loading import read_bytes
    from orchestrator.topology.migrate import MigrateError, migrated

    try:
        before = read_bytes(file)
        after = migrated(str(file), before, parameters)
    except (TopologyError, MigrateError) as error:
        raise CliError(f"{error}\n{file}: stays as it is") from error
    if after == before:
        return False
    say("\n".join(_difference(file, before, after)))
    if not check:
        _write(file, after)
    return True


def _difference(file: Path, before: bytes, after: bytes) -> Iterable[str]:
    old, new = before.decode().splitlines(), after.decode().splitlines()
    return difflib.unified_diff(old, new, f"{file} (before)", f"{file} (after)", lineterm="")


def _write(file: Path, content: bytes) -> None:
    """Replaces the file atomically and keeps its mode, so that a full disk leaves no incomplete file;
    CliError if it cannot be written.
    """
    target = file.resolve()
    beside = target.with_name(f".{target.name}.migrating")
    try:
        beside.write_bytes(content)
        beside.chmod(target.stat().st_mode & 0o7777)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise CliError(f"{file}: cannot be written: {error.strerror}; make its directory writable") from error
