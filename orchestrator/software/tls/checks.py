"""Checks TLS settings: files that belong together, server names, and whether a client and its broker fit."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

from ...language.source import Path
from ..checking import Checks
from .file import ClientTls, Tls

_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")  # RFC 1123, section 2.1


def check_tls(report: Checks, path: Path, tls: Tls) -> None:
    """Reports a certificate without its key or the reverse, a file without the right PEM block or with an
    encrypted key, and an invalid `server_name`.
    """
    for one, other in (("cert", "key"), ("key", "cert")):
        if getattr(tls, one) is not None and getattr(tls, other) is None:
            report.add((*path, one), getattr(tls, one), f"has no `{other}`", f"write `{other}:`, too")
    for name, label in (("ca", "CERTIFICATE"), ("cert", "CERTIFICATE"), ("key", "PRIVATE KEY")):
        file = getattr(tls, name)
        if file is None or not file.readable:
            continue
        if "-----BEGIN ENCRYPTED PRIVATE KEY-----" in file.text or "Proc-Type: 4,ENCRYPTED" in file.text:
            rule = "is encrypted, and nobody enters its passphrase in a run"
            report.add((*path, name), str(file), rule, "decrypt it: openssl pkey -in KEY -out PLAIN")
        elif f"{label}-----" not in file.text:
            rule = f"holds no {label.lower()} in PEM"
            report.add((*path, name), str(file), rule, f"name a file with -----BEGIN {label}-----")
    server = tls.server_name if isinstance(tls, ClientTls) else None
    if server is not None and not _HOST.fullmatch(server) and not _is_address(server):
        rule = "is neither a host's name nor an IP address"
        report.add((*path, "server_name"), server, rule, "write for example broker.example")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def check_both_ends(
    report: Checks, path: Path, client: ClientTls | None, broker: Tls | None, node: str
) -> None:
    """Reports a client that uses TLS with a broker on `node` that does not, or the reverse, and a client
    without the certificate that its broker demands.
    """
    if (client is None) != (broker is None):
        rule, remedy = (
            (f"the broker of {node} speaks TLS only", "write `tls: lab` here")
            if broker is not None
            else (f"the broker of {node} speaks no TLS", "write `tls: lab` there, or leave it out")
        )
        report.add((*path, "tls"), None, rule, remedy)
    if client is None or broker is None:
        return
    if getattr(broker, "mutual", False) and client.cert is None and not client.mutual:
        rule = f"the broker of {node} demands a certificate"
        report.add((*path, "tls"), None, rule, "write `mutual: true`, or `cert:` and `key:`")


def check_authorities(report: Checks, path: Path, client: ClientTls, broker: Tls, node: str) -> None:
    """Reports a certificate that the other end cannot trust. Either one end uses the lab's authority and the
    other end uses files, or the files of the certificate do not lead to those that the other end trusts.
    """
    there = f"broker of {node}"
    _one_authority(report, (*path, "tls", "ca"), client.ca, broker.cert, there, "client")
    shown = client.cert is not None or client.mutual
    if getattr(broker, "mutual", False) and shown:
        _one_authority(report, (*path, "tls", "cert"), broker.ca, client.cert, "client", there)


def _one_authority(report: Checks, path: Path, ca: Any, cert: Any, shows: str, trusts: str) -> None:
    if (
        cert is not None
        and ca is not None
        and cert.readable
        and ca.readable
        and _is_foreign(cert.text, ca.text)
    ):
        rule = f"the certificate of the {shows} is not issued by the `ca` that the {trusts} trusts"
        report.add(path, None, rule, "name the certificate of the authority that signed it as `ca:`")
    if cert is not None and ca is None:
        rule = f"the {shows} shows a certificate of its own, and the {trusts} trusts the lab's authority only"
        report.add(path, None, rule, f"write `ca:` at the {trusts}, with the certificate that signed it")
    if cert is None and ca is not None:
        rule = (
            f"the {shows} shows a certificate of the lab's authority, and the {trusts} trusts only its `ca`"
        )
        report.add(path, None, rule, f"leave `ca:` out at the {trusts}, or write `cert:` and `key:`")


def _is_foreign(shown: str, trusted: str) -> bool:
    """Returns whether the first certificate of `shown` is neither among the `trusted` ones nor issued by one
    of them, directly or through other certificates of `shown`; both are PEM. False if a certificate cannot be
    read, or if its algorithm is not supported here, since the programs of a run may support it. Ignores
    dates.
    """
    from cryptography import x509  # imported here, because importing it takes 50 ms
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    def issued(one: x509.Certificate, by: Iterable[x509.Certificate]) -> x509.Certificate | None:
        for authority in by:
            try:
                one.verify_directly_issued_by(authority)
            except (ValueError, InvalidSignature):  # the certificate has another name or another key
                continue
            return authority
        return None

    try:
        chain = x509.load_pem_x509_certificates(shown.encode())
        roots = x509.load_pem_x509_certificates(trusted.encode())
        one, others = chain[0], chain[1:]
        while one not in roots and issued(one, roots) is None:
            above = issued(one, others)
            if above is None:
                return True
            others.remove(above)
            one = above
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return False
