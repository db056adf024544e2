"""Defines the options and the error handling that commands with a topology file share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from orchestrator.cli.errors import USAGE, CliError
from orchestrator.language.kernels import LISTED, NAMES, WORDS
from orchestrator.run.directories import Place

if TYPE_CHECKING:
    from contract.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])

RESULTS = "results"
file_argument = click.argument("file", type=click.Path(path_type=Path))


def read_by(name: str, read: Callable[[Any], Any]) -> Callable[[F], F]:
    """Returns a decorator that replaces the value of the option `name` by `read(value)` before the command
    receives it.
    """

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def called(*arguments: Any, **named: Any) -> Any:
            return command(*arguments, **{**named, name: read(named[name])})

        return cast(F, called)

    return decorate


def parameters_option(command: F) -> F:
    """Adds the option `-p NAME=VALUE`, which may be repeated; the command gets a dictionary `parameters`."""
    option = click.option(
        "-p",
        "--parameter",
        "parameters",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a parameter of the file; may be given several times.",
    )
    return option(read_by("parameters", pairs_of)(command))


def seed_option(command: F) -> F:
    """Adds the option `--seed N` to a command."""
    return click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed, instead of the file's.")(
        command
    )


def lab_option(command: F) -> F:
    """Adds the option `--lab NAME` to a command."""
    return click.option("--lab", metavar="NAME", help="Name of the lab, instead of the file's.")(command)


def hosts_option(command: F) -> F:
    """Adds the option `--hosts NAME,NAME...` for multi-host labs; the command receives a tuple of names,
    empty without the option. CliError for an empty or repeated name.
    """
    return named_hosts("Hosts that carry the lab together, in place of the file's")(command)


def named_hosts(what: str) -> Callable[[F], F]:
    """Returns a decorator that adds `--hosts NAME,NAME...`; the command receives a tuple of names, empty
    without the option; CliError for an empty or repeated name. what: the beginning of the option's help.
    """
    option = click.option(
        "--hosts",
        metavar="NAME,NAME...",
        default="",
        help=f"{what}: names of inventory/hosts.yml ($VNET_INVENTORY), or all.",
    )
    return lambda command: option(read_by("hosts", _hosts)(command))


def _hosts(given: str) -> tuple[str, ...]:
    names = [name.strip() for name in given.split(",")] if given else []
    if not all(names) or len(set(names)) < len(names):
        raise CliError(f'--hosts "{given}": names hosts once each, for example --hosts lab1,lab2', USAGE)
    return tuple(names)


def pairs_of(given: tuple[str, ...]) -> dict[str, str]:
    """Returns the names and values of texts NAME=VALUE; CliError for a text of another form or a repeated
    name.
    """
    pairs: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise CliError(
                f'-p "{text}": a parameter is written NAME=VALUE, for example -p clients=50', USAGE
            )
        if name in pairs:
            raise CliError(f'-p "{text}": {name} is given twice; give it once', USAGE)
        pairs[name] = value
    return pairs


def kernel_option(command: F) -> F:
    """Adds the option `--kernel`, by default `auto`; its help does not list the kernel `fake`, which is for
    tests. CliError for an unknown kernel.
    """
    return click.option(
        "--kernel",
        default="auto",
        metavar=f"[{'|'.join(LISTED)}|ssh://[USER@]HOST[:PORT]]",
        help="Kernel that the lab runs in; auto: the first that can; ssh: that machine's.",
    )(read_by("kernel", known_kernel)(command))


def known_kernel(given: str) -> str:
    """Returns the kernel that `--kernel` names, also `ssh://HOST`; CliError if there is no such kernel or the
    address is malformed.
    """
    if given.startswith("ssh:"):
        return _machine(given)
    if given not in NAMES:
        raise CliError(f'--kernel "{given}": no such kernel; write {WORDS}, or ssh://HOST', USAGE)
    return given


def _machine(url: str) -> str:
    from orchestrator.language.units import UnitError
    from orchestrator.language.uris import kernel_machine

    try:
        return kernel_machine(url).url
    except UnitError as error:
        raise CliError(f'--kernel "{url}": {error.rule}; {error.remedy}', USAGE) from error


def time_option(command: F) -> F:
    """Adds the option `--time real|virtual` to a command."""
    return click.option(
        "--time",
        "time_mode",
        type=click.Choice(["real", "virtual"]),
        default="real",
        show_default=True,
        help="Virtual: the lab's clock jumps over waiting, and the run repeats to the bit.",
    )(command)


def fits_in(time_mode: str, assume_nics: bool = False) -> Callable[[Plan], None]:
    """Returns a function that raises TopologyError for a plan that cannot run on this machine in time mode
    `time_mode`; assume_nics: True if the check assumes that the machine has the NICs that the plan names.
    """
    from orchestrator.run.prepare import insist_it_fits

    return functools.partial(insist_it_fits, time=time_mode, assume_nics=assume_nics)


def refuse_to_stay(time_mode: str, what: str) -> None:
    """Raises CliError in virtual time, for an option or command `what` that would keep a lab up."""
    if time_mode == "virtual":
        raise CliError(
            f"{what} --time virtual: the clock of a lab that waits for commands would run ahead; "
            "leave out one of the two",
            USAGE,
        )


def refuse_host_clock(time_mode: str, kernel: str) -> None:
    """Raises CliError if virtual time is requested with the machine's own kernel or another machine."""
    if time_mode == "virtual" and kernel == "host":
        raise CliError(
            "--time virtual --kernel host: the machine's own clock cannot jump; leave --kernel out", USAGE
        )
    if time_mode == "virtual" and kernel.startswith("ssh:"):
        raise CliError(
            f"--time virtual --kernel {kernel}: a run in virtual time gives the same result on every "
            "machine, so it runs on this one; leave --kernel out",
            USAGE,
        )


def place_options(below: str) -> Callable[[F], F]:
    """Returns a decorator that adds `--out` and `--results`; the command receives a Place. CliError if both
    are given. below: the path below `--results` that the command makes, for the help.
    """

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def called(*arguments: Any, out: Path | None, results: Path | None, **named: Any) -> Any:
            if out and results:
                raise CliError(
                    f"--out {out} --results {results}: --out names the directory that is made, --results its "
                    "parent; leave out one",
                    USAGE,
                )
            return command(*arguments, place=Place(out, results or Path(RESULTS)), **named)

        path = click.Path(path_type=Path)
        help_ = f"Parent directory: the results are in RESULTS/{below}.  [default: {RESULTS}]"
        results = click.option("--results", type=path, help=help_)(called)
        return cast(F, click.option("--out", type=path, help="Directory to make for the results.")(results))

    return decorate


def _endpoints(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    from orchestrator.language.endpoints import endpoint
    from orchestrator.language.units import UnitError

    try:
        return tuple(endpoint(one) for one in given)
    except UnitError as error:
        raise click.BadParameter(str(error), context, option) from None


outside_option = click.option(
    "--allow-outside",
    multiple=True,
    metavar="ADDRESS:PORT",
    callback=_endpoints,
    help="Let nodes reach this endpoint outside the lab, if the file's `outside` names it, too.",
)


def lab_options(command: F) -> F:
    """Adds the argument FILE and the options that all commands that make a lab have; the command refuses
    virtual time with the machine's own kernel or another machine.
    """

    @functools.wraps(command)
    def called(*arguments: Any, time_mode: str, kernel: str, **named: Any) -> Any:
        refuse_host_clock(time_mode, kernel)
        return command(*arguments, time_mode=time_mode, kernel=kernel, **named)

    made = cast(F, called)
    for option in (
        outside_option, hosts_option, lab_option, place_options("LAB/TIME"), time_option, kernel_option,
        seed_option, parameters_option, file_argument,
    ):  # fmt: skip
        made = option(made)
    return made
