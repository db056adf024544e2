"""Signs with Ed25519 (RFC 8032, section 5.1), in which equal keys and messages give equal signatures.

The keys are a lab's, made from its seed: they protect nothing, so this need not run in constant time.
"""

from __future__ import annotations

import hashlib
from functools import cache

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int, int, int]  # extended homogeneous coordinates
NEUTRAL: Point = (0, 1, 1, 0)
_NIBBLES = 64  # of a scalar of 256 bits


def public_key(secret: bytes) -> bytes:
    """Returns the public key of a secret of 32 bytes."""
    return _encoded(_times_base(_scalar(secret)))


def sign(secret: bytes, message: bytes) -> bytes:
    """Returns the signature of a message, 64 bytes."""
    scalar, key = _scalar(secret), public_key(secret)
    nonce = _number(hashlib.sha512(secret).digest()[32:], message)
    commitment = _encoded(_times_base(nonce))
    response = (nonce + _number(commitment, key, message) * scalar) % ORDER
    return commitment + response.to_bytes(32, "little")


def _scalar(secret: bytes) -> int:
    bits = int.from_bytes(hashlib.sha512(secret).digest()[:32], "little")
    return (bits & ((1 << 254) - 8)) | (1 << 254)


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % ORDER


def _add(one: Point, other: Point) -> Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _base() -> Point:
    y = 4 * pow(5, -1, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return (x, y, 1, x * y % P)


@cache
def _multiples() -> tuple[tuple[Point, ...], ...]:
    """Returns the multiples 0 to 15 of the base point times 16**n, for each n: a product is then 63 sums."""
    rows: list[tuple[Point, ...]] = []
    step = _base()
    for _ in range(_NIBBLES):
        row = [NEUTRAL]
        for _ in range(15):
            row.append(_add(row[-1], step))
        rows.append(tuple(row))
        step = _add(row[-1], step)
    return tuple(rows)


def _times_base(scalar: int) -> Point:
    total = NEUTRAL
    for n, row in enumerate(_multiples()):
        total = _add(total, row[scalar >> 4 * n & 15])
    return total


def _encoded(point: Point) -> bytes:
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")
