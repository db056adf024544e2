"""Escapes characters in untrusted text that control a terminal or change how text looks, before it is
printed.
"""

from __future__ import annotations

import re
from typing import Any

# Characters that control a terminal, or make text look like other text. They are escaped because output
# contains text of programs.
_ORDERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(value: Any) -> Any:
    """Returns the value with such characters escaped in every text, also inside lists and in the values of
    mappings; keys stay.
    """
    if isinstance(value, str):
        return _ORDERS.sub(lambda found: repr(found[0])[1:-1], value)
    if isinstance(value, dict):
        return {key: printable(one) for key, one in value.items()}
    return [printable(one) for one in value] if isinstance(value, list) else value


def escaped(document: str) -> str:
    """Returns the same JSON document; in its texts, such characters are replaced by JSON's escapes of four
    hexadecimal digits.
    """
    return _ORDERS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
