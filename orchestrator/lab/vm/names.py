"""Writes the names of a lab's nodes into its machines: a block in /etc/hosts, after the machine's
own lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from contract.plan import Node
from orchestrator.lab import etc_hosts
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Exec
from orchestrator.lab.vm.dialogue import Dialogue, ask, begin
from orchestrator.lab.vm.guest import Guest

BEGIN, END = "# vnet: the nodes of this lab", "# vnet: end"
# A built-in image has neither file at first. Without the second, some versions of glibc query name servers
# before they read the first (nss(5)).
SCRIPT = f"""
set -e
hosts=/etc/hosts
kept=$(sed '/^{BEGIN}$/,/^{END}$/d' "$hosts" 2>/dev/null || true)
printf '%s\\n' "$kept" "$0" | sed '/^$/d' >"$hosts"
[ -e /etc/nsswitch.conf ] || echo 'hosts: files dns' >/etc/nsswitch.conf
"""
Warn = Callable[[str, str, str, bool], None]  # code, text, remedy, whether the run is suspect


def block(nodes: Sequence[Node], own: Node) -> str:
    """Returns the lines for a machine's /etc/hosts between two marks: those of `nodes`, and one for its own
    host name if no node with an address has that name.
    """
    lines = etc_hosts.hosts(nodes)
    if own.hostname not in {n.name for n in nodes if any(i.address for i in n.interfaces)}:
        lines += f"127.0.1.1 {own.hostname}\n"
    return f"{BEGIN}\n{lines}{END}"


class Names:
    """Writes node names into machines; `nodes` returns all nodes that the lab has now."""

    def __init__(self, loop: Loop, nodes: Callable[[], Sequence[Node]], warn: Warn) -> None:
        self._loop, self._nodes, self._warn = loop, nodes, warn

    def written(self, guest: Guest) -> Dialogue[None]:
        """Writes the names of all nodes into a machine, as a dialogue; warns if that fails; does nothing for
        a bridge VM.
        """
        if guest.node.vm is not None and guest.node.vm.netem:
            return
        text = block(self._nodes(), guest.node)
        argv = ["/bin/sh", "-c", SCRIPT, text]
        answer = yield from ask(Exec(guest.name, argv, {}, None))
        if answer["status"] != 0:
            self._told(guest, None, f"status {answer['status']}")

    def renew(self, guests: Iterable[Guest]) -> None:
        """Begins to write the names again into those of the machines that are ready, after nodes came or
        went; warns of failures and does not wait.
        """
        for guest in guests:
            if guest.ready:
                begin(guest, self.written(guest), partial(self._told, guest))

    def _told(self, guest: Guest, _: Any, why: str | None) -> None:
        if why is not None:
            self._warn(
                "names", f"nodes.{guest.name}: /etc/hosts cannot be written ({why}): it does not find nodes "
                "by name", "make /etc writable in its image, or use addresses", False,
            )  # fmt: skip
