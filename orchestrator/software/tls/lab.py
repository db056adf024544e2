"""Provides software with its certificates: those of the file, or else those of the lab's authority."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from contract.plan import File

from ..scene import Placed, Scene
from .file import ClientTls, Tls

if TYPE_CHECKING:  # imported only if a lab has TLS, because importing cryptography takes 50 ms
    from .certificates import Authority, Identity


def authority(scene: Scene) -> Authority:
    """Returns the lab's certificate authority; equal seeds give the same."""
    from .certificates import Authority

    return Authority(scene.seed_for("tls").to_bytes(8, "big"), f"vNET {scene.lab}")


@cache
def _root(authority: Authority) -> str:
    return authority.certificate


@cache
def _issued(authority: Authority, name: str, dns: tuple[str, ...], addresses: tuple[str, ...]) -> Identity:
    return authority.issue(name, dns, addresses)


def trusted(scene: Scene, tls: Tls) -> str:
    """Returns the certificates that the software trusts, in PEM."""
    return _root(authority(scene)) if tls.ca is None else str(tls.ca.text)


def server_identity(scene: Scene, node: str, tls: Tls) -> Identity:
    """Returns the identity of a server on `node`: that of the file, or else one of the lab's authority for
    the node's name, localhost and its addresses.
    """
    from .certificates import Identity

    if tls.cert is not None:
        return Identity(tls.cert.text, tls.key.text)
    addresses = tuple(dict.fromkeys(one for card in scene.interfaces[node] for one in card.addresses))
    return _issued(authority(scene), node, (node, "localhost"), addresses)


def server_files(scene: Scene, placed: Placed, tls: Tls) -> list[File]:
    """Returns the files of a server: `NAME/ca.pem` with the certificates that it trusts, `NAME/server.pem`
    and, for its account alone, `NAME/server.key`; NAME is that of the software.
    """
    own = server_identity(scene, placed.node, tls)
    return [
        File(f"{placed.name}/ca.pem", trusted(scene, tls)),
        File(f"{placed.name}/server.pem", own.certificate),
        File(f"{placed.name}/server.key", own.key, 0o600),
    ]


def client_spec(scene: Scene, tls: ClientTls, broker: str, name: str) -> dict[str, Any]:
    """Returns the agent's TLS settings of a client of the broker on node `broker`; `name` is the name in a
    certificate of the lab's authority, which it has with `mutual`.
    """
    spec: dict[str, Any] = {
        "ca": trusted(scene, tls),
        "server_name": tls.server_name or broker,
        "versions": list(tls.versions),
    }
    if tls.cert is not None:
        spec |= {"cert": tls.cert.text, "key": tls.key.text}
    elif tls.mutual:
        own = _issued(authority(scene), name, (), ())
        spec |= {"cert": own.certificate, "key": own.key}
    return spec
