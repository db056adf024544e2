"""Applies the directory and the startup scripts of a Kathará machine to the imported machine: addresses,
routes and the configuration of its routing daemons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..language.problem import Problem
from .commands import interfaces_file
from .daemons import DAEMONS, FOREIGN, KIND
from .files import script
from .linux.commands import act, bare
from .network import Machine
from .startup import Startup

SHARED = "shared.startup"  # name of the script that each machine runs before its own
SHUTDOWN = "shutdown"
FOLDER = "shared"  # directory of the lab that each machine has as /shared
_INTERFACES = re.compile(
    r"^(/etc/init\.d/networking (re)?start|(systemctl|service) .*\bnetworking\b|(/sbin/)?ifup (-a|eth\d+))"
)
INTERFACES = "etc/network/interfaces"
FOLDERS = tuple(f"/{folder}/" for folder in DAEMONS.folders)
_STATIC = re.compile(r"^ip route (\S+ \S+.*?)\s*$", re.MULTILINE)
# other forms of this command have a distance, a device or a table
_STATIC_WORDS = re.compile(r"^(\S+) (\d+\.\d+\.\d+\.\d+)$")
_DAEMON = re.compile(r"^(\w+)=\"?(\w+)", re.MULTILINE)


@dataclass
class Furnished:
    """The result of `furnished`: one report line for each part that is left out, and the problems that
    prevent the import.
    """

    left: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def furnished(machine: Machine, lab: Path, theirs: str, variables: Mapping[str, str]) -> Furnished:
    """Applies shared.startup, then `theirs`.startup, and the interfaces file and daemons that they start, to
    the machine. Returns report lines for the parts that are left out, and the problems. lab: the lab's
    directory; theirs: the machine's name in it; variables: of the scripts' environment.
    """
    own, found = lab / theirs, Furnished()
    daemons: list[int] = []

    def of_the_tool(words: Sequence[str], line: int) -> bool:
        text = " ".join(words)
        if DAEMONS.starts(text):
            daemons.append(line)
        elif _INTERFACES.match(text) and (own / INTERFACES).is_file():
            only = [word for word in words if bare(words[0]) == "ifup" and re.fullmatch(r"eth\d+", word)]
            listed = interfaces_file(machine, script(own / INTERFACES), only)
            found.left.extend(f"{theirs}/{INTERFACES}: `{line}` is not done" for line in listed)
        else:
            return False
        return True

    files = _written_files(own, "/") | _written_files(lab / FOLDER, f"/{FOLDER}/")
    for file in (lab / SHARED, lab / f"{theirs}.startup"):
        if not file.is_file():
            continue
        startup = Startup(machine, theirs, lambda line, name=file.name: f"{name}, line {line}", of_the_tool)  # type: ignore[misc]
        startup.files = files
        startup.script(script(file), variables)
        found.left += startup.left
        found.problems += [Problem(str(file), line, "", *rest) for line, *rest in startup.problems]
    _daemons_of(machine, files if daemons else {}, bool(daemons), theirs, found)
    found.left += _files(theirs, own)
    for place in (lab / f"{theirs}.{SHUTDOWN}", lab / f"{FOLDER}.{SHUTDOWN}"):
        if place.is_file():
            found.left.append(f"{place.name}: what a machine does when the lab ends")
    return found


def _daemons_of(
    machine: Machine, files: dict[str, str], started: bool, theirs: str, found: Furnished
) -> None:
    config = _daemons(files)
    loopback = machine.addresses.pop("lo", [])
    found.left += _not_started(files, config, theirs)
    if config:
        _route(machine, config, loopback)
        return
    without = "its daemons have no protocol configured: a router without any"
    found.left += [f"{theirs}: {without}"] * started
    for text in (text for name, text in files.items() if name.endswith(".conf") and name.startswith(FOLDERS)):
        for port, addresses in FOREIGN.addresses(text).items():
            machine.addresses.setdefault(port, []).extend(addresses)
        for line in _STATIC.findall(text):
            if act(machine, ["ip", "route", "add", *_STATIC_WORDS.sub(r"\1 via \2", line).split()]) is None:
                found.left.append(f"{theirs}: `ip route {line}` is not done")
    found.left += [f"{theirs}: the address {address} of lo" for address in loopback]


def _not_started(files: dict[str, str], config: str, theirs: str) -> Iterator[str]:
    """Yields a line on each daemon that the file `daemons` does not start though a protocol is configured."""
    listed = next((text for name, text in files.items() if name.endswith("/daemons")), "")
    stopped = {name for name, value in _DAEMON.findall(listed) if value.lower() not in ("yes", "1", "true")}
    for protocol in dict.fromkeys(re.findall(r"^router ([a-z]+)", config, re.MULTILINE)):
        if f"{protocol}d" in stopped:
            yield f"{theirs}: {protocol}d is not started there, and is here: take `router {protocol}` out"


def _written_files(own: Path, inside: str) -> dict[str, str]:
    """Returns path in the machine -> text of the files that its scripts may read or change: configurations of
    daemons and interfaces, and scripts (*.sh). own: the folder; inside: its path in the machine, with "/" at
    the end.
    """
    places = sorted(own.rglob("*")) if own.is_dir() else []
    texts = [file for file in places if file.is_file() and _is_config(file.relative_to(own).as_posix())]
    return {f"{inside}{file.relative_to(own).as_posix()}": script(file) for file in texts}


def _is_config(name: str) -> bool:
    return name.startswith((*DAEMONS.folders, "etc/network/")) or name.endswith(".sh")


def _daemons(files: dict[str, str]) -> str:
    """Returns the configurations of the machine's routing daemons in one text, from the first folder whose
    files configure a protocol; "" if none does. Omits vtysh.conf.
    """
    for folder, head in DAEMONS.folders.items():
        names = sorted(name for name in files if re.fullmatch(rf"/{folder}/[\w.-]+\.conf", name))
        texts = [files[name] for name in names if not name.endswith("/vtysh.conf")]
        if config := DAEMONS.config(texts):
            return head + config
    return ""


def _route(machine: Machine, config: str, loopback: list[str]) -> None:
    lines = [f" ip{'v6' if ':' in address else ''} address {address}\n" for address in loopback]
    machine.kind = KIND
    machine.config = config + ("!\ninterface lo\n" + "".join(lines) if lines else "")
    for port, addresses in FOREIGN.addresses(config).items():
        known = machine.addresses.setdefault(port, [])
        known += [address for address in addresses if address not in known]


def _files(theirs: str, own: Path) -> Iterator[str]:
    """Yields one report line that names the first file of the machine's directory and counts the others,
    without files in the folders of daemons and the interfaces file; yields nothing if no file remains.
    """
    names = [file.relative_to(own).as_posix() for file in sorted(own.rglob("*")) if file.is_file()]
    others = [name for name in names if not name.startswith((*DAEMONS.folders, INTERFACES))]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        yield f"{theirs}/{others[0]}{more}: files are not put into the node"
