"""Finds paths of this machine that a topology uses in a node but that the node will not see.

The check runs before the lab starts, because a program that needs such a path would fail late, with an error
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from contract.plan import Node, Plan
from orchestrator.lab.sandbox import SYSTEM, paths_of
from orchestrator.language.problem import Problem

# Paths over which a lab kernel mounts its own files (kernel/uml/init.py, kernel/virtual/guest.py).
OF_GUEST = ("/dev", "/proc", "/run", "/sys", "/tmp")
# directories in which a lab kernel shows those of the machine's files that nodes read
CARRIED = ("/run", "/tmp")
OF_NODE = (*OF_GUEST, "/var/tmp")  # directories that are private to each node, and writable
READ = "mounts.read"
# least number of names in a directory's path, because `GET /data` in a command is no directory of the machine
SHORTEST = 3
ALL_READ = 0o004
ELSEWHERE = "keep it in another directory, for example below /srv, or use --kernel host"


def problems(plan: Plan, kernel: str) -> list[Problem]:
    """Returns a problem for each path that light nodes of `plan` would not see under `kernel` (host or uml),
    once per group. Skips nodes with a container image and nodes of a host of a multi-host lab.
    """
    guest = kernel == "uml"
    found: dict[Problem, None] = {}
    for node in plan.nodes:
        if node.kind == "light" and not node.image and not node.host:
            for path, rule, remedy in (*_opened(node, guest), *_named(node, guest)):
                found[Problem(plan.topology, 0, _place(plan, node, path[0]), path[1], rule, remedy)] = None
    return list(found)


def shown_in_guest(plan: Plan) -> list[str]:
    """Returns the paths below /run and /tmp that light nodes of `plan` read, sorted, each once: the paths of
    `mounts.read`, and files in commands that every user may read. A link into these directories gives its
    target.

    Skips nodes with a container image, and paths that do not exist.
    """
    found: set[str] = set()
    for node in plan.nodes:
        if node.kind == "light" and not node.image:
            files = [path for _, path in paths_of(node) if Path(path).is_file()]
            named = [path for path in files if Path(path).stat().st_mode & ALL_READ]
            for path in (*node.mounts_read, *named):
                both = {path, str(Path(path).resolve())}
                found |= {one for one in both if _below(one, CARRIED) and Path(one).exists()}
    return sorted(one for one in found if one.startswith(tuple(f"{top}/" for top in CARRIED)))


def _place(plan: Plan, node: Node, key: str) -> str:
    alone = sum(other.group == node.group for other in plan.nodes) == 1 and node.group == node.name
    return f"{'nodes' if alone else 'groups'}.{node.group}.{key}"


Found = tuple[tuple[str, str], str, str]  # key and path, rule, remedy


def _opened(node: Node, guest: bool) -> Iterator[Found]:
    """Yields the paths in `mounts` that do not exist or, in a guest, are hidden or cannot be written."""
    opened = {"read": node.mounts_read, "write": node.mounts_write, "copy": node.mounts_copy}
    for key, paths in ((f"mounts.{mode}", paths) for mode, paths in opened.items()):
        for path in paths:
            if not Path(path).exists():
                yield (key, path), "is not on this machine", "make it, or correct the path"
            elif key == "mounts.copy" and path == "/run":
                continue  # the node's own, with the directories that packages declare there
            elif guest and (top := _below(path, OF_GUEST)) and not (key == READ and top in CARRIED):
                yield (key, path), f"is not seen in the lab: a lab kernel has a {top} of its own", ELSEWHERE


def _named(node: Node, guest: bool) -> Iterator[Found]:
    """Yields the hidden paths in commands, variables and probes, except those below a path in `mounts`."""
    open_ = [Path(path).resolve() for path in (*node.mounts_read, *node.mounts_write)]
    for software, path in paths_of(node):
        place, file = f"software.{software}", Path(path)
        if any(file.resolve().is_relative_to(top) for top in open_):
            continue
        if guest and file.is_file() and (top := _below(path, OF_GUEST)) and top not in CARRIED:
            yield (place, path), f"is not seen in the lab: a lab kernel has a {top} of its own", ELSEWHERE
        elif _hidden(file):
            rule = "is on this machine, but the node does not see it"
            yield (
                (place, path),
                rule,
                f"write `mounts: {{read: [{path}]}}`, or a directory above it (docs/security.md)",
            )


def _hidden(path: Path) -> bool:
    """Returns whether the sandbox (images/agent/src/launch/sandbox) hides a path that a command names.

    Outside the system's directories and the nodes' private directories, it hides a directory of more than two
    levels, a file with a dotted part in its path, and a file that not everybody can read. Below the private
    directories, nodes see the named files that everybody can read.
    """
    if _below(str(path), OF_GUEST) and not _below(str(path), CARRIED):
        return False
    own = _below(str(path), OF_NODE)
    if not own and _below(str(path), SEEN):
        return False
    if path.is_dir():
        return len(path.parts) > SHORTEST
    if own:
        return path.is_file() and not path.stat().st_mode & ALL_READ
    dotted = any(part.startswith(".") for part in path.parts)
    return dotted or not path.stat().st_mode & ALL_READ


# The machine's system directories, in which only secrets are hidden; a missing path there is seldom meant as
# a path.
SEEN = (*SYSTEM, "/lib32", "/libx32", "/nix", "/gnu", "/opt", "/var")


def _below(path: str, tops: Sequence[str]) -> str:
    """Returns the first of `tops` that contains the path or its link target; empty if none does."""
    both = (Path(path), Path(path).resolve())
    return next((top for top in tops if any(one.is_relative_to(top) for one in both)), "")
