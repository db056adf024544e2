"""Generates files of the closed root that no package lists: accounts, alternatives, the loader's cache,
settings.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.images.cpio import Entry, directory, file, link
from orchestrator.kernel.virtual.root import elf
from orchestrator.kernel.virtual.root.dpkg import Alternative, Database

# The first id of the accounts that packages make; Debian numbers them in the order of installation.
FIRST_ID = 900
_MASTER = "usr/share/base-passwd"
_CACHE = b"glibc-ld.so.cache1.1"
_X86_64 = 0x0303  # FLAG_ELF_LIBC6 | FLAG_X8664_LIB64, glibc's sysdeps/generic/ldconfig.h
_LIBRARY = re.compile(r"^(lib|ld-).*\.so(\.|$)")
_LITTLE_ENDIAN = 2
_MAKES = re.compile(r"\b(?:adduser|addgroup|useradd|groupadd)\b([^\n;&|)]*)")
# Links, directories and copies that the installation of a package makes in addition to its listed files, by
# the name of the package (its postinst in Debian 12). The list has only those that the package's program
# needs to start.
_LINKS_MADE = {"nginx-common": {"etc/nginx/sites-enabled/default": "/etc/nginx/sites-available/default"}}
_DIRECTORIES_MADE = {"redis-tools": ("var/lib/redis", "var/log/redis")}
_COPIES_MADE = {"nginx-common": {"var/www/html/index.nginx-debian.html": "/usr/share/nginx/html/index.html"}}
_DIRECTORIES = (
    "home",
    "root",
    "mnt",
    "opt",
    "srv",
    "proc",
    "sys",
    "dev",
    "run",
    "var/log",
    "var/lib",
    "var/cache",
)


@dataclass(frozen=True, slots=True)
class Accounts:
    """The users and groups of the closed root with their numbers, and the texts of /etc/passwd and
    /etc/group.
    """

    users: Mapping[str, int]
    groups: Mapping[str, int]
    passwd: str
    group: str


def accounts(database: Database, packages: Iterable[str]) -> Accounts:
    """Returns Debian's fixed accounts and those that the packages' installation makes, numbered in the order
    of their names.
    """
    made = _made_by(database, packages)
    groups = _lines(database, "group") if made else {}
    users = {name: fields for name, fields in _lines(database, "passwd").items() if name in made}
    own = sorted(name for name in groups if name in made)
    numbers = {name: FIRST_ID + at for at, name in enumerate(sorted({*users, *own}))}
    fixed = {name: _master(database, f"{name}.master") for name in ("passwd", "group")}
    gids = {line.split(":")[0]: int(line.split(":")[2]) for line in fixed["group"]} | {
        n: numbers[n] for n in own
    }
    by_number = {fields[2]: name for name, fields in groups.items()}
    passwd, uids = (
        list(fixed["passwd"]),
        {line.split(":")[0]: int(line.split(":")[2]) for line in fixed["passwd"]},
    )
    for name, fields in sorted(users.items()):
        uids[name] = numbers[name]
        gid = gids.get(by_number.get(fields[3], ""), gids.get("nogroup", 65534))
        passwd.append(f"{name}:x:{numbers[name]}:{gid}:{fields[4]}:{fields[5]}:{fields[6]}")
    group = list(fixed["group"])
    for name in own:
        members = ",".join(one for one in sorted(groups[name][3].split(",")) if one in users)
        group.append(f"{name}:x:{numbers[name]}:{members}")
    return Accounts(uids, gids, "\n".join([*passwd, ""]), "\n".join([*group, ""]))


def _made_by(database: Database, packages: Iterable[str]) -> set[str]:
    """Returns the names of the accounts that the packages' installation scripts make."""
    return {name for package in packages for name in accounts_in(database.script(package, "postinst"))}


def accounts_in(script: str) -> Iterator[str]:
    """Yields the names of accounts that a shell script makes: the last argument of each call of adduser,
    addgroup, useradd or groupadd.
    """
    text = re.sub(r"(?m)^\s*#.*$", "", script).replace("\\\n", " ")
    for call in _MAKES.findall(text):
        last = re.sub(r"'[^']*'|[<>].*", "", call).split()[-1:]
        name = "".join(last).strip('"')
        if name.startswith("$"):
            set_to = re.search(rf"(?m)^\s*{re.escape(name.strip('${}'))}=[\"']?([\w.-]+)", text)
            name = set_to[1] if set_to else ""
        if name and not name.startswith("-"):
            yield name


def _lines(database: Database, name: str) -> dict[str, list[str]]:
    """Returns the accounts of this machine's services (numbers from 100 to 999; Debian's policy, 9.2.2), by
    name, as fields.
    """
    path = database.real(f"/etc/{name}")
    split = (line.split(":") for line in (path.read_text().splitlines() if path.exists() else ()))
    return {fields[0]: fields for fields in split if len(fields) > 3 and 100 <= int(fields[2]) <= 999}


def _master(database: Database, name: str) -> list[str]:
    path = database.root / _MASTER / name
    if path.exists():
        return [line.replace(":*:", ":x:", 1) for line in path.read_text().splitlines()]
    return ["root:x:0:0:root:/root:/bin/sh"] if name.startswith("passwd") else ["root:x:0:"]


def settings(known: Accounts) -> list[Entry]:
    """Returns the files of /etc that depend on no package, and the directories that every system has."""
    databases = "".join(
        f"{name}: files\n" for name in ("passwd", "group", "shadow", "hosts", "services", "protocols")
    )
    return [
        *(directory(path) for path in _DIRECTORIES),
        directory("tmp", 0o1777),
        directory("var/tmp", 0o1777),
        link("var/run", "/run"),
        link("var/lock", "/run/lock"),
        link("etc/mtab", "../proc/self/mounts"),
        file("etc/passwd", known.passwd.encode()),
        file("etc/group", known.group.encode()),
        file("etc/nsswitch.conf", databases.encode()),
        file("etc/hosts", b"127.0.0.1\tlocalhost\n::1\tlocalhost\n"),
        file("etc/hostname", b"vnet-lab\n"),
        file("etc/resolv.conf", b"nameserver 127.0.0.1\n"),
    ]


def made_at_installation(there: Mapping[str, Entry], packages: Iterable[str]) -> Iterator[Entry]:
    """Yields the objects that the installation of the packages makes in addition to their files, so that the
    packages' programs start as after `apt-get install`. Leaves out a link to, or a copy of, a file that is
    not in the root `there`.
    """
    for package in sorted(packages):
        for path, target in _LINKS_MADE.get(package, {}).items():
            if target.lstrip("/") in there:
                yield link(path, target)
        for path, origin in _COPIES_MADE.get(package, {}).items():
            if (copied := there.get(origin.lstrip("/"))) is not None:
                yield replace(copied, path=path)
        for path in _DIRECTORIES_MADE.get(package, ()):
            yield directory(path)


def merged(database: Database) -> list[Entry]:
    """Returns links such as /bin to /usr/bin if this machine has them, and the directories below /usr."""
    names = ("bin", "sbin", "lib", "lib64")
    links = [link(name, f"usr/{name}") for name in names if (database.root / name).is_symlink()]
    return [*links, *(directory(f"usr/{name}") for name in names)]


def alternatives(database: Database, there: Mapping[str, Entry]) -> Iterator[Entry]:
    """Yields the links of each alternative that has a program in the root `there`; they lead to the program
    of highest priority among those in the root.
    """
    for one in database.alternatives.values():
        choices = sorted(one.choices, key=lambda choice: (-choice[1], choice[0]))
        chosen = next((c for c in choices if database.canonical(c[0]).lstrip("/") in there), None)
        if chosen is not None:
            yield from _links(database, one, chosen, there)


def _links(
    database: Database,
    one: Alternative,
    chosen: tuple[str, int, tuple[tuple[str, str, str], ...]],
    there: Mapping[str, Entry],
) -> Iterator[Entry]:
    for name, place, target in ((one.name, one.link, chosen[0]), *chosen[2]):
        if database.canonical(target).lstrip("/") in there:
            yield link(f"etc/alternatives/{name}", target)
            yield link(database.canonical(place), f"/etc/alternatives/{name}")


def libraries(there: Mapping[str, Entry], searched: Iterable[str]) -> dict[str, str]:
    """Returns the path of each library in the searched directories by its name; the first one if several
    directories have it.
    """
    found: dict[str, str] = {}
    for place in searched:
        for path, entry in there.items():
            above, name = os.path.split(path)
            if above == place.lstrip("/") and _LIBRARY.match(name) and _is_library(there, path, entry):
                found.setdefault(name, f"/{path}")
    return found


def loader_cache(found: Mapping[str, str]) -> Entry:
    """Returns /etc/ld.so.cache, as ldconfig writes it.

    Without this file, the loader tries several directories, for each level of processors that this one
    supports, which costs system calls.
    """
    names = sorted(found, key=_as_the_loader_sorts, reverse=True)
    start = 48 + 24 * len(names)  # sizes of struct cache_file_new and file_entry_new (glibc's dl-cache.h)
    strings, entries = bytearray(), bytearray()
    for name in names:
        value = start + len(strings)
        strings += found[name].encode() + b"\0"
        key = value + found[name].rindex("/") + 1
        entries += struct.pack("<iIIIQ", _X86_64, key, value, 0, 0)
    head = _CACHE + struct.pack("<IIBxxxI12x", len(names), len(strings), _LITTLE_ENDIAN, 0)
    return file("etc/ld.so.cache", head + bytes(entries) + bytes(strings))


def _is_library(there: Mapping[str, Entry], path: str, entry: Entry) -> bool:
    for _ in range(8):
        if entry.source is not None:
            return elf.is_library(entry.source)
        if entry.mode & 0o170000 != 0o120000:
            return False
        path = os.path.normpath(Path("/", path).parent / os.fsdecode(entry.data)).lstrip("/")
        if path not in there:
            return False
        entry = there[path]
    return False


def _as_the_loader_sorts(name: str) -> list[tuple[int, int]]:
    """Returns a sort key like glibc's _dl_cache_libcmp: digits count as numbers, and follow
    everything else.
    """
    parts = re.findall(r"\d+|\D", name)
    return [(1, int(part)) if part.isdigit() else (0, ord(part)) for part in parts]
