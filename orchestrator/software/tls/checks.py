"""Checks TLS settings: files that belong together, and what the two ends need of each other."""

from __future__ import annotations

from ...language.source import Path
from ..checking import Checks
from .file import ClientTls, Tls


def check_tls(report: Checks, path: Path, tls: Tls) -> None:
    """Reports files of `tls` that miss another, or have the wrong content."""
    for one, other in (("cert", "key"), ("key", "cert")):
        if getattr(tls, one) is not None and getattr(tls, other) is None:
            report.add((*path, one), getattr(tls, one), f"has no `{other}`", f"write `{other}:`, too")
    for name, label in (("ca", "CERTIFICATE"), ("cert", "CERTIFICATE"), ("key", "PRIVATE KEY")):
        file = getattr(tls, name)
        if file is not None and file.text and f"{label}-----" not in file.text:
            rule = f"holds no {label.lower()} in PEM"
            report.add((*path, name), str(file), rule, f"name a file with -----BEGIN {label}-----")


def check_both_ends(
    report: Checks, path: Path, client: ClientTls | None, broker: Tls | None, node: str
) -> None:
    """Reports a client whose TLS does not fit that of its broker on `node`."""
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
