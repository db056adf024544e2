"""Implements `vnet`: lists the commands, runs one of them, and turns failures into exit statuses.

Imports a command's module only when the command runs, so that `vnet --help` answers at once.
"""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import re
import select
import sys
import traceback

import click
from click.shell_completion import CompletionItem

from orchestrator.cli.errors import DONE, FAILED, INTERRUPTED, CliError, expected
from orchestrator.cli.output import say
from orchestrator.project import keep_others_out

# A command is short and needs its objects until its end. Fewer garbage collections, and none at the end, save
# 0.1 s.
gc.set_threshold(50_000)
atexit.register(gc.freeze)
# Without this setting, pydantic searches all installed packages for plug-ins.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# Name of a command: (module below orchestrator.cli, its line in the list of commands, heading of the list).
COMMANDS: dict[str, tuple[str, str, str]] = {
    "run": ("run", "Run an experiment from its file to its report.", "Experiments"),
    "campaign": ("campaign", "Run a matrix of experiments, resume it, show its progress.", "Experiments"),
    "hunt": ("hunt", "Look for the faults that break an expectation; shrink them.", "Experiments"),
    "verify": ("verify", "Run a run in virtual time again and compare every byte.", "Experiments"),
    "crate": ("crate", "Pack a run or campaign as an RO-Crate that others can verify.", "Experiments"),
    "expect": ("expect", "Judge conditions on a run or campaign that has ended.", "Experiments"),
    "report": ("report", "Write the report page of a run or campaign again.", "Experiments"),
    "compare": ("compare", "Compare runs, campaigns or baselines, figure by figure.", "Experiments"),
    "trend": ("trend", "Show figures over dates, each judged against the first.", "Experiments"),
    "baseline": ("baseline", "Keep the figures of a run or campaign for comparisons.", "Experiments"),
    "atlas": ("atlas", "Find the interaction models that meet requirements on a network.", "Experiments"),
    "results": ("results", "List, remove and archive runs by age, size and verdict.", "Experiments"),
    "why": ("why", "Show where messages' time went, and what dropped lost ones.", "Experiments"),
    "packets": ("packets", "Show dissected packets of a run's capture points.", "Experiments"),
    "reduce": ("reduce", "Reduce a pcap file to a table of packets.", "Experiments"),
    "doctor": ("doctor", "Show what this machine can do, and remedies for the rest.", "Before a run"),
    "calibrate": ("calibrate", "Measure what load this machine carries faithfully.", "Before a run"),
    "check": ("check", "Check a topology file; show all its mistakes at once.", "Before a run"),
    "plan": ("plan", "Show what would be made, with predictions; make nothing.", "Before a run"),
    "graph": ("graph", "Draw a topology file as SVG, PNG or PDF.", "Before a run"),
    "import": ("importing", "Make a topology file from one of another tool.", "Before a run"),
    "export": ("exporting", "Write a topology as a file of another tool.", "Before a run"),
    "images": ("images", "Build, add, save, list and remove what virtual machines boot.", "Before a run"),
    "profiles": ("profiles", "List named impairments, with the source of every figure.", "Before a run"),
    "migrate": ("migrate", "Rewrite retired keys of topology files; show the difference.", "Before a run"),
    "explain": ("explain", "Explain a key of topology files.", "Before a run"),
    "new": ("new", "Write a first topology file by questions, or a plug-in.", "Before a run"),
    "plugins": ("plugins", "List plug-ins, with version, origin and errors.", "Before a run"),
    "schema": ("schema", "Print the JSON Schema of topology files, for editors.", "Before a run"),
    "completion": ("completion", "Print the script for completion in bash, zsh or fish.", "Before a run"),
    "up": ("up", "Bring a lab up and leave it running.", "Running labs"),
    "down": ("down", "Take labs down and remove all that belongs to them.", "Running labs"),
    "ls": ("ls", "List the labs on this machine.", "Running labs"),
    "reserve": ("reserve", "Reserve cores, memory and NICs of this machine.", "Running labs"),
    "serve": ("serve", "Show labs and runs live in a browser.", "Running labs"),
    "inspect": ("inspect", "Show a lab's nodes, addresses and links as read back.", "Running labs"),
    "inventory": ("inventory", "Print a lab as an Ansible inventory.", "Running labs"),
    "exec": ("exec", "Run a command on nodes.", "Running labs"),
    "cp": ("copying", "Copy a file to nodes, or from them.", "Running labs"),
    "shell": ("shell", "Open a terminal on a node.", "Running labs"),
    "console": ("console", "Open a virtual machine's serial console.", "Running labs"),
    "wireshark": ("wireshark", "Show packets of a running lab in Wireshark as they pass.", "Running labs"),
    "start": ("power", "Start nodes, or one software on them.", "Running labs"),
    "stop": ("power", "Stop nodes, or one software on them.", "Running labs"),
    "restart": ("power", "Restart nodes, or one software on them.", "Running labs"),
    "set": ("set", "Change nodes' MTU, CPU limit, CPU reservation or host name.", "Running labs"),
    "snapshot": ("snapshot", "Keep virtual machines as they are now, under a name.", "Running labs"),
    "revert": ("snapshot", "Take virtual machines back to a snapshot.", "Running labs"),
    "apply": ("apply", "Change a running lab to match its changed file.", "Running labs"),
    "link": ("link", "Change a link's impairment, or take it down and up.", "Running labs"),
    "add": ("add", "Clone nodes of a group into a running lab.", "Running labs"),
    "remove": ("remove", "Destroy single nodes of a running lab.", "Running labs"),
}

REMEDIES = {
    errno.ENOSPC: "free some and try again",
    errno.EDQUOT: "free some and try again",
    errno.EROFS: "choose another place, or make it writable",
    errno.EACCES: "choose another place, or make it writable",
}
# Error number -> remedy, for errors by which the machine or the account lacks a resource.
SHORT = {
    errno.EMFILE: "raise `ulimit -n`",
    errno.ENFILE: "close what holds files open, or raise fs.file-max",
    errno.ENOMEM: "free some memory",
    errno.EAGAIN: "end some of the account's processes and threads, or raise `ulimit -u`",
}


class ReaderGoneError(Exception):
    """Raised if the reader of the output (such as head or less) has ended. It replaces BrokenPipeError, for
    which click would return exit status 1.
    """


class LazyGroup(click.Group):
    """A group of commands that imports the module of a command only when the command runs, and not to list
    it. Turns a BrokenPipeError into ReaderGoneError, or into CliError if the reader of the output still
    exists.
    """

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if _reader_is_there():
                raise CliError("the other side of a connection has closed it") from error
            raise ReaderGoneError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"orchestrator.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{meant}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        rows = [(name, text) for name, (_, text, _) in COMMANDS.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=text) for name, text in rows), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        headings = dict.fromkeys(heading for _, _, heading in COMMANDS.values())
        for heading in headings:
            rows = [(name, text) for name, (_, text, h) in COMMANDS.items() if h == heading]
            with formatter.section(heading):
                formatter.write_dl(rows)


@click.command(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="vnet-testbed", prog_name="vnet", message="%(prog)s %(version)s")
def vnet() -> None:
    """A testbed for networked software: one file describes an experiment; vNET builds it from real parts,
    runs it and reports, with evidence that the numbers can be trusted.

    NODES are names, groups, ranges and globs, separated by commas: broker,client[1-20],meter*

    \b
    First steps:  vnet doctor
                  vnet run topologies/pair.yaml
    """


def main(argv: list[str] | None = None) -> int:
    """Runs one command line, by default that of the process; prints failures, and returns the exit status:
    DONE if the reader of the output has ended, INTERRUPTED after Ctrl-C.
    """
    keep_others_out()
    try:
        status = vnet.main(args=argv, prog_name="vnet", standalone_mode=False)
        sys.stdout.flush()
    except (ReaderGoneError, BrokenPipeError):
        # Without this, Python would print another error when it flushes the output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        return _failed(error)
    except KeyboardInterrupt:
        say("interrupted", err=True)
        return INTERRUPTED
    return status if isinstance(status, int) else DONE


def _reader_is_there() -> bool:
    outputs = select.poll()
    for stream in (sys.stdout, sys.stderr):
        outputs.register(stream.fileno(), 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in outputs.poll(0))


def _printing(error: Exception) -> bool:
    """Returns whether the error was raised by code that prints: in this package, in click or in rich."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    module = "" if at is None else str(at.tb_frame.f_globals.get("__name__", ""))
    return module in (__name__, "__main__") or module.partition(".")[0] in ("click", "rich")


def _failed(error: Exception) -> int:
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):  # click raises it for Ctrl-C
        say("interrupted", err=True)
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if (known := expected(error)) is not None:
        say(known.text, err=True)
        return known.status
    if isinstance(error, OSError) and error.filename is None and _printing(error):
        error.filename = "standard output"
    if isinstance(error, OSError) and error.strerror and error.filename:
        remedy = (REMEDIES | SHORT).get(error.errno or 0)
        said = f"{error.filename}: {error.strerror}"
        say(f"{said}; {remedy}" if remedy else said, err=True)
        return FAILED
    if (short := _short_of(error)) in SHORT:
        say(f"this machine: {os.strerror(short)}; {SHORT[short]}", err=True)
        return FAILED
    if isinstance(error, OSError) and error.strerror:
        say(f"vnet: {error.strerror}", err=True)
        return FAILED
    return _internal(error)


def _short_of(error: Exception) -> int:
    """Returns the error number (errno) of an exception, or of its cause if a library raised it; 0 if there is
    none.
    """
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, RuntimeError) and "start new thread" in str(error):  # the text of module threading
        return errno.EAGAIN
    if isinstance(error, ImportError):  # the loader could not open a library
        if "failed to map segment" in str(error):
            return errno.ENOMEM
        return next((number for number in SHORT if os.strerror(number) in str(error)), 0)
    # Error texts of libraries in Rust, which have no error number.
    if told := re.search(r"\(os error (\d+)\)", str(error)):
        return int(told[1])
    return (error.errno or 0) if isinstance(error, OSError) else 0


def _internal(error: Exception) -> int:
    if os.environ.get("VNET_DEBUG"):
        traceback.print_exception(error)
    else:
        said = " ".join(str(error).split())
        say(
            f"vnet: internal error: {type(error).__name__}: {said} (VNET_DEBUG=1 shows where)",
            err=True,
        )
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
