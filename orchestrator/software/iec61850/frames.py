"""Computes the lengths of frames directly above Ethernet: head, tag, and values with their tags and
lengths.
"""

from __future__ import annotations

HEAD_BYTES = 8  # bytes of APPID, length and two reserved words (IEC 61850-9-2, annex A)
ETHERNET_BYTES = 14
TAG_BYTES = 4


def tlv_bytes(content: int) -> int:
    """Returns the length of a value of `content` bytes together with its tag and length fields (ITU-T
    X.690).
    """
    return content + (2 if content < 0x80 else 3 if content < 0x100 else 4)
