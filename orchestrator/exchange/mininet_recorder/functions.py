"""Replaces the functions of Mininet's module `util` that compute something for a script."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from .said import leave


def number(text: Any) -> Any:
    """Returns a number as int or float, and any other text as it is, as Mininet's makeNumeric."""
    for kind in (int, float):
        try:
            return kind(text)
        except (TypeError, ValueError):
            continue
    return text


def split_args(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Returns the name, the arguments and the keywords of a text such as `tc,3,bw=10`, as splitArgs."""
    name, *given = text.split(",")
    keys = dict(one.partition("=")[::2] for one in given if "=" in one)
    return name, [number(one) for one in given if "=" not in one], {key: number(keys[key]) for key in keys}


def custom_class(classes: dict[str, Any], text: str) -> Any:
    """Returns the class that a text such as `tc,bw=10` names, with its keywords, as customClass."""
    name, words, keys = split_args(text)
    return functools.partial(classes[name], *words, **keys)


def special_class(
    cls: Any, prepend: Any = None, append: Any = None, defaults: Any = None, override: Any = None
) -> Any:
    """Returns the class with other defaults, as specialClass; reports words before and after."""
    if prepend or append:
        leave("specialClass: words before and after those of the class")

    def make(*words: Any, **keys: Any) -> Any:
        return cls(*words, **{**(defaults or {}), **keys, **(override or {})})

    is_class = isinstance(cls, type)
    return functools.partial(cls, **{**(defaults or {}), **(override or {})}) if is_class else make


def natural(name: Any) -> list[Any]:
    """Returns a sort key for a name that puts h2 before h10, as Mininet's function of that name."""
    return [(0, int(one), "") if one.isdigit() else (1, 0, one) for one in re.split(r"(\d+)", str(name))]


def ip_text(address: int) -> str:
    """Returns an IPv4 address as text, as ipStr."""
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def ip_number(*parts: int) -> int:
    """Returns an IPv4 address as a number from its four parts, as ipNum."""
    return functools.reduce(lambda whole, part: whole << 8 | part, parts)


def ip_parsed(text: str) -> int:
    """Returns an IPv4 address as a number; of less than four parts the last is the host's, as ipParse."""
    parts = list(map(int, text.split(".")))
    while len(parts) < 4:
        parts.insert(len(parts) - 1, 0)
    return ip_number(*parts)


def net_parsed(text: str) -> tuple[int, int]:
    """Returns the address and the length of a network's text, as netParse; /24 without one."""
    address, _, length = text.partition("/")
    return ip_parsed(address), int(length or 24)


def ip_added(i: int, prefixLen: int = 8, ipBaseNum: int = 0x0A000000) -> str:
    """Returns the i-th address of a network, as ipAdd."""
    hosts = 0xFFFFFFFF >> prefixLen
    assert i <= hosts, "Not enough IP addresses in the subnet"
    return ip_text((ipBaseNum & ~hosts) + i)


def tried(_retries: int, _delay: float, call: Callable[..., Any], *words: Any, **keys: Any) -> Any:
    """Calls a function once, as a success of retry."""
    return call(*words, **keys)


def cores() -> int:
    """Returns 1, and reports it: the machine's own number is another."""
    leave("the script asks for numCores, which is 1 in this import")
    return 1


def _is(kind: type) -> Callable[[Any], bool]:
    def check(text: Any) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


FUNCTIONS: dict[str, Any] = {
    "custom": functools.partial, "customClass": custom_class, "customConstructor": custom_class,
    "specialClass": special_class, "splitArgs": split_args, "makeNumeric": number, "checkInt": _is(int),
    "checkFloat": _is(float), "natural": natural, "naturalSeq": lambda names: list(map(natural, names)),
    "irange": lambda a, b: range(a, b + 1), "numCores": cores, "retry": tried, "ipAdd": ip_added,
    "ipStr": ip_text, "ipNum": ip_number, "ipParse": ip_parsed, "netParse": net_parsed,
    "macColonHex": lambda mac: ":".join(f"{mac >> shift & 255:02x}" for shift in range(40, -8, -8)),
    "unitScale": lambda value, prefix="": (float(value), prefix),
    "fmtBps": lambda value, prefix="", fmt="%.1f %sbits/sec": fmt % (float(value), prefix),
    "buildTopo": lambda topos, text: custom_class(topos, text)(),
}  # fmt: skip
