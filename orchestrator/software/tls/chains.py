"""Tells whether a chain of certificates leads to trusted ones."""

from __future__ import annotations

from collections.abc import Iterable


def is_foreign(shown: str, trusted: str) -> bool:
    """Returns whether the first certificate of `shown` is neither among the `trusted` ones nor issued by one
    of them, also by way of the others of `shown`; both are PEM. False if one cannot be read, or if an
    algorithm is unknown here, since the programs of a run may know it. Dates do not count.
    """
    from cryptography import x509  # where files are named only: importing it takes 50 ms
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    def issued(one: x509.Certificate, by: Iterable[x509.Certificate]) -> x509.Certificate | None:
        for authority in by:
            try:
                one.verify_directly_issued_by(authority)
            except (ValueError, InvalidSignature):  # another name, or another key
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
