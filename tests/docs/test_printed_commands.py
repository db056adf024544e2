"""Tests every command line that README.md and the pages print.

`vnet` accepts it, its file and parameters exist, and `make` has its target. Lines that make no lab are run as
printed; a command of another program is listed with the test that checks it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from printed import ROOT, SHELL, Block, blocks, spans
from who_runs_it import MADE, NOT_RUN, why_not

sys.path.insert(0, str(ROOT / "tests/virtual"))
from virtual_place import kernel_missing

from orchestrator.cli.main import vnet
from orchestrator.cli.topologies import known_kernel, pairs_of
from orchestrator.topology import load, load_campaign

TYPED = ("docs/tutorial/", "docs/how-to/")  # test_tutorial.py types their blocks of ```console


def typed(block: Block) -> bool:
    return block.page.startswith(TYPED) and block.info == "console"


COMMANDS = [(block.where, line) for block in blocks() for line in block.commands() if not typed(block)]
VNET = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?vnet ")
MAKE = re.compile(r"^make (.*)")
GALLERY = "docs/gallery.md"  # test_gallery.py reads each of its files with its parameters
# Commands of other programs: how they begin -> why they are not run here.
OTHERS = {
    "apt-get install": "tests/bare/root.sh installs what make needs and no more",
    "cat inventory/hosts.yml": "shows a file that the reader has written",
    "docker save": "Docker's; tests/images/test_oci.py reads archives of that form",
    "export PATH=": "for a shell of the reader's",
    "export VNET_LAB=": "tests/ansible sets it",
    "images/hil/machine.sh": "an hour of a nested machine: make test-hil",
    "images/packages.sh": "installs packages: its sets are checked below",
    "open http": "a browser: tests/cli/test_page_browser.py",
    "pip install ./vnet-line-echo": "tests/cli/test_plugins.py builds and installs it",
    "podman": "make test-container",
    "ssh": "other machines: tests/remote, tests/multi_host",
    "/usr/bin/python3 -m pip install --target": "a program of the registry: docs/hunt.md names its version",
    "/opt/vnet/bin/dask": "tests/multi_host and tests/virtual start schedulers and workers",
    ".venv/bin/ansible": "tests/ansible plays the playbooks: their files are checked below",
}
# Commands that make no lab and need no file but the project's: run as printed. The other commands of `vnet`
# need a lab, a run or a machine, and have tests of their own; here, only their arguments are checked.
STILL = (
    "check",
    "plan",
    "graph",
    "export",
    "explain",
    "schema",
    "profiles",
    "new --",
    "atlas query",
    "atlas show",
    "images export",
)
# Lines of these commands that cannot run here, with the reason.
NOT_HERE = {
    "--hosts": "hosts of an inventory",
    "FILE": "stands for a file",
    "KEY": "stands for a key",
    "clients=298": "30 GB of memory",
}


def lines_of_vnet() -> list[tuple[str, str]]:
    chained = [(where, part) for where, line in COMMANDS for part in re.split(r" && | >> | \| ", line)]
    return [(where, VNET.sub("", part)) for where, part in chained if VNET.match(part)]


def parsed(arguments: str) -> click.Context:
    """Returns the context of the command that accepts the line; click's own error if none does."""
    command: click.Command = vnet
    context, words = click.Context(vnet, info_name="vnet"), shlex.split(arguments)
    while isinstance(command, click.Group) and not alone(command, words):
        name, found, words = command.resolve_command(context, words)
        assert found is not None and name is not None
        command = found
        context = click.Context(command, info_name=name, parent=context)
    return command.make_context(context.info_name, words, parent=context.parent)


def alone(command: click.Group, words: Sequence[str]) -> bool:
    """Returns whether a group of commands can run without a subcommand and the line names none."""
    return command.invoke_without_command and (not words or words[0].startswith("-"))


def test_a_block_without_a_language_shows_commands() -> None:
    fenced = [block for block in blocks() if block.info in SHELL and not typed(block)]
    unknown = [f"{block.where}: {block.lines()[0]}" for block in fenced if not block.commands()]
    assert unknown == [], "write ```text where it shows no commands, or add the program to printed.PROGRAMS"


def test_every_command_line_has_who_checks_it() -> None:
    known = (*OTHERS, "make ")
    others = [(where, line) for where, line in COMMANDS if not VNET.match(line)]
    assert [f"{where}: {line}" for where, line in others if not line.startswith(known)] == []


@pytest.mark.parametrize(("where", "line"), lines_of_vnet())
def test_a_line_of_vnet_is_taken(where: str, line: str) -> None:
    context = parsed(line)
    file = context.params.get("file")
    given = pairs_of(context.params.get("parameters") or ())
    known_kernel(context.params.get("kernel") or "auto")
    if isinstance(file, Path) and file.parts[0] == "topologies" and where.split(":")[0] != GALLERY:
        if not context.command_path.startswith("vnet campaign"):
            load(ROOT / file, given)
        elif given:  # checks all cells, which takes seconds
            load_campaign(ROOT / file, given)
        assert (ROOT / file).is_file()


def test_what_stands_in_backticks_names_commands_and_their_options() -> None:
    """Shows that commands in backticks, which may lack arguments, use existing commands and options."""
    wrong = [f"{where}: {text}: {word}" for where, text in spans() for word in unknown_words(text)]
    assert wrong == []


def unknown_words(text: str) -> list[str]:
    """Returns the commands and options of the text that do not exist; words after ` -- ` are for another
    program.
    """
    command: click.Command = vnet
    words = VNET.sub("", " ".join(text.split())).split(" -- ")[0].split()
    ends = ("COMMAND", "NAME", "--help")  # NAME is the importer of a plug-in
    while isinstance(command, click.Group) and words and words[0] not in ends and not alone(command, words):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return words[:1]
        command, words = found, words[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {
        "--help"
    }
    return [word for word in words if re.match(r"--?[a-z]", word) and word not in known]


def test_what_is_not_there_is_found() -> None:
    assert unknown_words("vnet frobnicate DIR") == ["frobnicate"]
    assert unknown_words("vnet campaign run FILE --jbos 2") == ["--jbos"]
    assert unknown_words("vnet exec LAB server -- uname -r") == []
    with pytest.raises(click.NoSuchOption):
        parsed("run topologies/pair.yaml --kernle uml")


def test_targets_of_make_exist_and_each_has_who_makes_it() -> None:
    targets = set(re.findall(r"^([a-z-]+)(?: [a-z-]+)*:", (ROOT / "Makefile").read_text(), re.MULTILINE))
    printed = {
        word
        for _, line in COMMANDS
        if (made := MAKE.match(line))
        for word in shlex.split(made[1])
        if "=" not in word
    }
    assert printed <= targets
    assert printed == set(MADE), "who_runs_it.py lists each target that is printed, and no other"


def test_named_packages_and_playbooks_exist() -> None:
    for where, line in COMMANDS:
        words = shlex.split(line)
        if words[0] == "images/packages.sh":
            done = subprocess.run([ROOT / words[0], "--list", *words[1:]], capture_output=True, text=True)
            assert done.stdout.split(), f"{where}: no such set"
        for word in words:
            if word.startswith(("playbooks/", "inventory/", "tests/", "images/")):
                assert (ROOT / word).exists(), f"{where}: {word}"


def still() -> list[str]:
    """Returns the lines that make no lab: all of blocks, and the complete ones in backticks."""
    spanned = [VNET.sub("", " ".join(text.split())) for _, text in spans()]
    lines = {line for line in [line for _, line in lines_of_vnet()] + spanned if line.startswith(STILL)}
    return sorted(line for line in lines if not any(word in line for word in NOT_HERE) and _whole(line))


def _whole(line: str) -> bool:
    try:
        parsed(line)
    except (click.UsageError, click.exceptions.Exit):
        return False
    return True


def to_run() -> dict[str, str]:
    """Returns the lines of labs that must run as printed, each with the first page that has it."""
    found: dict[str, str] = {}
    for where, line in lines_of_vnet():
        if not line.startswith(STILL) and not why_not(line):
            found.setdefault(line, where.rpartition(":")[0])
    return found


def test_each_line_runs_or_is_listed_with_the_reason() -> None:
    known = ("run topologies/", "campaign run broker.yaml", "up topologies/", "atlas page")
    assert [f"{page}: vnet {line}" for line, page in to_run().items() if not line.startswith(known)] == [], (
        "run it (STILL, to_run), or say why not in who_runs_it.py"
    )


@pytest.mark.parametrize("pattern", NOT_RUN)
def test_each_entry_of_the_list_has_its_lines(pattern: str) -> None:
    lines = [line for _, line in lines_of_vnet() if not line.startswith(STILL) or "clients=298" in line]
    assert [line for line in lines if re.search(pattern, line)], "nobody prints this any more: remove it"


def files_of(page: str) -> dict[str, str]:
    """Returns the files that a page shows with their names."""
    named = re.compile(r'title="([^"]+)"')
    return {title[1]: b.text for b in blocks() if b.page == page and (title := named.search(b.info))}


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(kernel_missing() is not None, reason=str(kernel_missing()))
@pytest.mark.parametrize(("line", "page"), to_run().items())
def test_a_lab_ends_well_as_printed(line: str, page: str, tmp_path: Path) -> None:
    (tmp_path / "topologies").symlink_to(ROOT / "topologies")
    for name, text in files_of(page).items():
        (tmp_path / name).write_text(text)
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "VNET_STATE_DIR": str(tmp_path / "s"),
    }
    typed_last = f" && vnet down {Path(line.split()[1]).stem}" if line.startswith("up ") else ""
    done = subprocess.run(
        ["bash", "-c", f"vnet {line}{typed_last}"], cwd=tmp_path, env=os.environ | own,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert line.startswith(("up ", "atlas page")) or list(tmp_path.glob("results/*/*/report/index.html"))


def test_what_makes_no_lab_runs_as_printed(tmp_path: Path) -> None:
    """Shows that lines which make no lab succeed, all in one process, because starting Python a hundred times
    would take longer.
    """
    for name in ("topologies", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "lines").write_text("\n".join(still()))
    script = Path(__file__).with_name("run_lines.py")
    done = subprocess.run(
        [sys.executable, script, "lines"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    shutil.rmtree(tmp_path, ignore_errors=True)
