"""Issues X.509 certificates with Ed25519 keys (RFC 5280, RFC 8410); equal seeds give equal bytes."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LONGEST_NAME = 64  # ub-common-name, RFC 5280, appendix A
# Dates of certificates, because a lab's clock can have any date; UTCTime ends with 2049 (RFC 5280, 4.1.2.5).
FIRST, LAST = datetime.datetime(2000, 1, 1), datetime.datetime(2049, 12, 31, 23, 59, 59)


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
        """Returns the authority's own certificate in PEM, signed by itself."""
        made = self._builder(self.name, self._key).add_extension(
            x509.BasicConstraints(True, None), critical=True
        )
        return self._signed(made.add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True))

    def issue(self, name: str, dns: Sequence[str] = (), addresses: Sequence[str] = ()) -> Identity:
        """Returns the identity of a server or client with these names and addresses; equal arguments give
        equal bytes.
        """
        # The key, and so the serial number, depends on all names, because a user can choose a node's name for
        # another one.
        key = _key(b"\0".join((self.seed, *(text.encode() for text in (name, *dns, *addresses)))))
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        made = self._builder(name, key).add_extension(_usage(digital_signature=True), critical=True)
        made = made.add_extension(purposes, critical=False)
        names: list[x509.GeneralName] = [x509.DNSName(one) for one in dns]
        names += [x509.IPAddress(ipaddress.ip_address(one)) for one in addresses]
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Identity(self._signed(made), _pem(key))

    @property
    def _key(self) -> Ed25519PrivateKey:
        return _key(self.seed)

    def _builder(self, name: str, key: Ed25519PrivateKey) -> x509.CertificateBuilder:
        public, issuers = key.public_key(), self._key.public_key()
        serial = hashlib.sha256(public.public_bytes_raw()).digest()[:15]
        return (
            x509.CertificateBuilder(_name(self.name), _name(name), public)
            .serial_number(int.from_bytes(b"\1" + serial, "big"))
            .not_valid_before(FIRST)
            .not_valid_after(LAST)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuers), critical=False)
        )

    def _signed(self, made: x509.CertificateBuilder) -> str:
        return made.sign(self._key, None).public_bytes(serialization.Encoding.PEM).decode()


def _key(secret: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(secret).digest())


def _usage(**granted: bool) -> x509.KeyUsage:
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: granted.get(name, False) for name in names})


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:LONGEST_NAME])])


def _pem(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
