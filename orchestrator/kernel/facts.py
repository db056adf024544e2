"""Finds out what this machine's own kernel supports, by trials in a temporary network namespace."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.lab import cgroup
from orchestrator.queueing import trials

LIBRARIES = ("usr/local/lib", "usr/lib/*-linux-gnu", "usr/lib64", "usr/lib")
SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
QDISCS = {  # kind -> further arguments of `tc qdisc add dev lo root`
    **trials(),
    "ingress": "",  # is attached elsewhere than at the root
}
# s; a trial takes a tenth of a second on an idle machine, and long in a nested one beside other work
TRIAL_S = 60
LINKS = {
    "veth": "ip link add t0 type veth peer name t1",
    "bridge": "ip link add t2 type bridge",
    "ifb": "ip link add t3 type ifb",
    "vlan": "ip link add t5 type veth peer name t6 && ip link add link t5 name t7 type vlan id 5",
    "vxlan": "ip link add t4 type vxlan id 1 dstport 4789 dev lo",
}
_MATCH = "tc qdisc add dev lo clsact && tc filter add dev lo egress"
MATCHES = {
    "matchall": f"{_MATCH} matchall action drop",
    "u32": f"{_MATCH} protocol ip u32 match u32 0 0 classid 1:1",
    "mirred": f"{_MATCH} protocol all u32 match u32 0 0 action mirred egress redirect dev lo",
    "flower": f"{_MATCH} protocol 802.1q flower vlan_prio 6 classid 1:1",
}
_TRIAL = (
    "if out=$( {{ {command}; }} 2>&1 ); then echo '{kind} ok'; {done}; else echo '{kind}' $out; fi; {after}"
)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The features of this machine's kernel. In `namespaces` and the values of `kinds`, None means that the
    feature works; any other value is the error text.
    """

    kernel: str
    root: bool
    namespaces: str | None
    # names such as netem, htb, veth and bridge -> why each does not work; None: it works
    kinds: Mapping[str, str | None] = field(default_factory=dict)
    controllers: frozenset[str] = frozenset()  # cgroup controllers of either version
    cgroup_version: int = 0
    tools: Mapping[str, str | None] = field(default_factory=dict)  # name -> path

    def lacks(self, kind: str) -> str | None:
        """Returns why `kind` does not work; None if it does."""
        return self.kinds.get(kind, "not tried") if self.namespaces is None else self.namespaces


TOOLS = ("ip", "tc", "tcpdump", "qemu-system-x86_64", "qemu-img", "zstd")
_LOOKING = threading.Lock()


def host_facts() -> HostFacts:
    """Returns the facts of this machine. The first call takes about 0.1 s; later ones, of any thread, use its
    result.
    """
    with _LOOKING:
        return _look()


@functools.cache
def _look() -> HostFacts:
    layout = cgroup.this_machine()
    root = os.geteuid() == 0
    namespaces, kinds = try_kinds(root)
    tools = {name: find_tool(name) for name in TOOLS}
    return HostFacts(
        os.uname().release, root, namespaces, kinds, frozenset(layout.mounts), layout.version, tools
    )


def find_tool(name: str) -> str | None:
    """Returns the path of a file; None if it does not exist.

    A name that begins with "/" is a path. A name with ".so." is searched in the directories of libraries. Any
    other name is searched as a program in PATH and in system directories, which PATH often lacks.
    """
    if name.startswith("/"):
        return name if Path(name).is_file() else None  # a library of Python is not a program
    if ".so." in name:
        found = (path for pattern in LIBRARIES for path in sorted(Path("/").glob(f"{pattern}/{name}")))
        return next(map(str, found), None)
    return shutil.which(name, path=os.environ.get("PATH", "") + ":" + SBIN)


def try_kinds(root: bool) -> tuple[str | None, dict[str, str | None]]:
    """Makes every kind of qdisc, filter and link in a temporary network namespace; for an ordinary user, it
    is in a user namespace.

    Returns two results: None, or the reason why no namespace can be made; and for each kind None if it works,
    else the error text.
    """
    unshare = ["unshare", "--net"] if root else ["unshare", "--user", "--map-root-user", "--net"]
    try:
        answer = subprocess.run(
            [*unshare, "sh", "-c", _script()],
            capture_output=True,
            text=True,
            timeout=TRIAL_S,
            check=False,
            env={"PATH": SBIN, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return "unshare is not installed (package util-linux)", {}
    except subprocess.TimeoutExpired:
        return f"no answer from a throwaway namespace within {TRIAL_S} s", {}
    if not answer.stdout:
        return answer.stderr.strip().splitlines()[-1] if answer.stderr.strip() else "unshare failed", {}
    return None, dict(_verdict(line) for line in answer.stdout.splitlines())


def _script() -> str:
    """Returns a shell script that prints a line for each kind. It removes only what a trial leaves in the way
    of the next one: each program that it starts costs every run 1 ms of CPU time.
    """
    root = {kind: f"tc qdisc add dev lo root {rest}" for kind, rest in QDISCS.items() if kind != "ingress"}
    ingress = {"ingress": "tc qdisc add dev lo ingress"}
    return "\n".join(
        _TRIAL.format(kind=kind, command=command, done=done, after=after)
        for tries, done, after in (
            (root, "tc qdisc del dev lo root", ":"),
            (ingress, "tc qdisc del dev lo ingress", ":"),
            (LINKS, ":", ":"),
            (MATCHES, ":", "tc qdisc del dev lo clsact 2>/dev/null"),  # a refused filter leaves its hook
        )
        for kind, command in tries.items()
    )


def _verdict(line: str) -> tuple[str, str | None]:
    kind, _, words = line.partition(" ")
    return kind, None if words == "ok" else " ".join(words.split()) or "refused without an error message"
