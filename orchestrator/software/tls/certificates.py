"""Encodes X.509 certificates with Ed25519 keys (RFC 5280, RFC 8410) in DER and PEM."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from . import ed25519

LONGEST_NAME = 64  # ub-common-name, RFC 5280, appendix A
# A lab's clock may stand at any date; UTCTime ends with 2049 (RFC 5280, 4.1.2.5).
FIRST, LAST = b"000101000000Z", b"491231235959Z"
_ED25519 = bytes.fromhex("06032b6570")
_COMMON_NAME = bytes.fromhex("0603550403")
_CONSTRAINTS, _USAGE, _PURPOSES, _NAMES, _OWN_KEY, _ISSUERS_KEY = (
    bytes.fromhex(f"0603551d{last}") for last in ("13", "0f", "25", "11", "0e", "23")
)
_SERVER_AND_CLIENT = bytes.fromhex("06082b06010505070301") + bytes.fromhex("06082b06010505070302")


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate with its private key, both in PEM."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority; its key, and those that it certifies, come from `seed`."""

    seed: bytes
    name: str

    @property
    def certificate(self) -> str:
        """The authority's own certificate in PEM, signed by itself."""
        rights = (
            _extension(_CONSTRAINTS, _tlv(0x30, b"\x01\x01\xff")),
            _extension(_USAGE, b"\x03\x02\x01\x06"),
        )
        return self._certified(self.name, self._secret, rights)

    def issue(self, name: str, dns: Sequence[str] = (), addresses: Sequence[str] = ()) -> Identity:
        """Returns the identity of a server or client with these names and addresses."""
        secret = hashlib.sha256(self.seed + b"\0" + name.encode()).digest()
        rights = [
            _extension(_USAGE, b"\x03\x02\x07\x80"),
            _extension(_PURPOSES, _tlv(0x30, _SERVER_AND_CLIENT), False),
        ]
        names = [_tlv(0x82, one.encode()) for one in dns]
        names += [_tlv(0x87, ipaddress.ip_address(one).packed) for one in addresses]
        if names:
            rights.append(_extension(_NAMES, _tlv(0x30, *names), False))
        wrapped = _tlv(0x04, _tlv(0x04, secret))
        key = _tlv(0x30, b"\x02\x01\x00", _tlv(0x30, _ED25519), wrapped)
        return Identity(self._certified(name, secret, rights), _pem("PRIVATE KEY", key))

    @property
    def _secret(self) -> bytes:
        return hashlib.sha256(self.seed).digest()

    def _certified(self, name: str, secret: bytes, extensions: Sequence[bytes]) -> str:
        algorithm, public = _tlv(0x30, _ED25519), ed25519.public_key(secret)
        issuers = ed25519.public_key(self._secret)
        keys = (
            _extension(_OWN_KEY, _tlv(0x04, _digest(public)), False),
            _extension(_ISSUERS_KEY, _tlv(0x30, _tlv(0x80, _digest(issuers))), False),
        )
        body = _tlv(
            0x30,
            b"\xa0\x03\x02\x01\x02",  # version 3
            _tlv(0x02, b"\x01" + _digest(b"serial", public)[:15]),  # above zero
            algorithm,
            _name(self.name),
            _tlv(0x30, _tlv(0x17, FIRST), _tlv(0x17, LAST)),
            _name(name),
            _tlv(0x30, algorithm, _tlv(0x03, b"\0", public)),
            _tlv(0xA3, _tlv(0x30, *extensions, *keys)),
        )
        signature = _tlv(0x03, b"\0", ed25519.sign(self._secret, body))
        return _pem("CERTIFICATE", _tlv(0x30, body, algorithm, signature))


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:20]


def _tlv(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    if len(body) < 128:
        return bytes((tag, len(body))) + body
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes((tag, 128 | len(size))) + size + body


def _name(text: str) -> bytes:
    common = _tlv(0x30, _COMMON_NAME, _tlv(0x0C, text[:LONGEST_NAME].encode()))
    return _tlv(0x30, _tlv(0x31, common))


def _extension(oid: bytes, value: bytes, critical: bool = True) -> bytes:
    return _tlv(0x30, oid, b"\x01\x01\xff" if critical else b"", _tlv(0x04, value))


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
