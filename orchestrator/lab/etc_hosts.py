"""Writes /etc/hosts and the resolver's other files for nodes, in place of the machine's own.

Nodes resolve each other by name, and the result depends only on the lab, because programs see neither the
machine's hosts file nor its name servers. Formats: hosts(5), resolv.conf(5), nsswitch.conf(5), host.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from contract.plan import Node
from contract.plan.family import faces

HOSTS = "/etc/hosts"
LOCAL = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
# The resolver's address is the node's loopback: a name server on the node answers there; without one, the
# query fails at once.
FIXED = {
    "/etc/resolv.conf": "nameserver 127.0.0.1\n",
    "/etc/host.conf": "multi on\n",
    "/etc/nsswitch.conf": "".join(
        f"{database}: files\n"
        for database in ("passwd", "group", "shadow", "networks", "protocols", "services", "ethers", "rpc")
    )
    + "hosts: files dns\n",
}


def hosts(nodes: Iterable[Node]) -> str:
    """Returns the lines of /etc/hosts, one for each address of each node; a resolver that returns only one
    address takes the first.
    """
    return LOCAL + "".join(f"{i.address} {n.name}\n" for n in nodes for i in faces(n.interfaces) if i.address)


def write(directory: Path, nodes: Iterable[Node]) -> dict[str, str]:
    """Writes the files below `directory`, and returns the paths of these files by the paths that nodes see.
    Called again when nodes are added or removed.

    Running nodes see the new text, because each file keeps its inode.
    """
    directory.mkdir(exist_ok=True)
    written = {}
    for place, text in {**FIXED, HOSTS: hosts(nodes)}.items():
        file = directory / Path(place).name
        with file.open("r+" if file.exists() else "w") as stream:
            stream.write(text)
            stream.truncate()
        # The file is readable for all users whatever the umask, because a node's programs read it as any
        # user.
        file.chmod(0o644)
        written[place] = str(file)
    return written
