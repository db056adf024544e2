"""Simulates `ip` and `tc` in memory: reads the batch text of the real tools and returns what their `-j`
shows.
"""

from __future__ import annotations

from typing import Any

from orchestrator.lab.drivers import fake_queues
from orchestrator.lab.errors import LabError
from orchestrator.queueing import half_duplex
from orchestrator.queueing.words import RATES, TIMES, scaled

Entry = dict[str, Any]


class FakeTools:
    """Stores the devices and qdiscs of each namespace and changes them by batch text of `ip` and `tc`."""

    def __init__(self) -> None:
        self._devices: dict[str, dict[str, Entry]] = {}
        self._qdiscs: dict[str, dict[str, Entry]] = {}

    def run(self, tool: str, netns: str, text: str) -> None:
        for line in filter(None, text.splitlines()):
            (self._ip if tool == "ip" else self._tc)(netns, line.split())

    def devices(self, netns: str) -> list[Entry]:
        return list(self._devices.get(netns, {}).values())

    def qdiscs(self, netns: str) -> list[Entry]:
        return list(self._qdiscs.get(netns, {}).values())

    def forget(self, netns: str) -> None:
        self._devices.pop(netns, None)
        self._qdiscs.pop(netns, None)

    def drop(self, netns: str, device: str) -> None:
        self._devices.get(netns, {}).pop(device, None)

    def _ip(self, netns: str, words: list[str]) -> None:
        if words[:2] == ["link", "add"]:
            ends = " ".join(words[2:]).split(" peer ")
            for end in ends:
                self._add(netns, end.split())
        elif words[:3] == ["link", "del", "dev"]:
            self.drop(netns, words[3])
        elif words[:2] == ["link", "set"]:
            self._set(netns, words[2:])
        elif words[:2] == ["route", "replace"]:
            return  # the fake driver does not read routes back, though a real agent's answer has them
        else:
            raise LabError(f"fake ip in {netns}: does not know: {' '.join(words)}")

    def _add(self, netns: str, words: list[str]) -> None:
        named = _pairs(words)
        home = named.get("netns", netns)
        entry = {
            "ifname": named["name"],
            "mtu": int(named.get("mtu", 1500)),
            "flags": [],
            "address": named.get("address"),
        }
        self._devices.setdefault(home, {})[named["name"]] = entry

    def _set(self, netns: str, words: list[str]) -> None:
        words = words[1:] if words[0] == "dev" else words
        entry = self._devices.get(netns, {}).get(words[0])
        if entry is None:
            raise LabError(f'ip in {netns}: Cannot find device "{words[0]}"')
        for word, value in zip(words[1:], [*words[2:], ""], strict=True):
            if word == "mtu":
                entry["mtu"] = int(value)
            elif word == "master":
                entry["master"] = value
            elif word in ("up", "down"):
                entry["flags"] = ["UP"] if word == "up" else []

    def _tc(self, netns: str, words: list[str]) -> None:
        qdiscs = self._qdiscs.setdefault(netns, {})
        if "0x88b5" in words:
            return  # a proof's frames pass as if the device did not exist
        if words[:3] == ["filter", "add", "block"]:
            qdiscs[f"block {words[3]}"] = {"block": int(words[3]), "redirect": words[-1]}
            return
        device = words[words.index("dev") + 1]
        if device not in self._devices.get(netns, {}):
            raise LabError(f'tc in {netns}: Cannot find device "{device}"')
        if words[-1] == half_duplex.HOOK:
            block = {"ingress_block": int(words[5])} if words[4] == "ingress_block" else {}
            qdiscs[f"{device} {half_duplex.HOOK}"] = {"dev": device, "kind": half_duplex.HOOK, **block}
            return
        if "redirect" in words:
            way = {"dev": device, "way": words[4], "redirect": words[-1]}
            qdiscs[f"{device} {words[4]}"] = way
            return
        if words[0] != "qdisc":
            entry = fake_queues.of_class(words) if words[0] == "class" else fake_queues.of_filter(words)
            qdiscs[f"{device} {words[0]} {entry.get('handle', entry.get('pref'))}"] = {"dev": device, **entry}
            return
        if words[1] == "del":
            for key in [key for key in qdiscs if key.split(" ")[0] == device]:
                del qdiscs[key]
            return
        place = {"root": True} if "root" in words else {"parent": words[words.index("parent") + 1]}
        at = words.index("handle") + 2
        options = _options(words[at], words[at + 1 :])
        key = device if "root" in words else f"{device} {place['parent']}"
        handle = words[at - 1]
        if fake_queues.keeps(words[at]) and qdiscs.get(key, {}).get("handle") == handle:
            options = qdiscs[key]["options"] | options
        qdiscs[key] = {"kind": words[at], "handle": handle, "dev": device, **place, "options": options}


def _pairs(words: list[str]) -> dict[str, str]:
    """Returns the values of name, address, mtu and netns from the arguments of `ip link add`."""
    known = ("name", "address", "mtu", "netns")
    return {w: words[i + 1] for i, w in enumerate(words[:-1]) if w in known}


def netem_options(words: list[str]) -> Entry:
    """Returns netem's arguments as the options that `tc -j qdisc` shows; like the kernel, omits options that
    are not set.
    """
    found: Entry = {"limit": 1000}
    for name, values in _grouped(words):
        if name == "limit":
            found["limit"] = int(values[0])
        elif name == "delay":
            seconds = [scaled(v, TIMES) for v in values[:2]] + [0.0]
            found["delay"] = {"delay": seconds[0], "jitter": seconds[1], "correlation": _share(values, 2)}
        elif name == "loss" and values[0] == "gemodel":
            found["loss-gemodel"] = dict(
                zip(("p", "r", "1-h", "1-k"), map(_percent, values[1:]), strict=True)
            )
        elif name == "loss":
            shares = values[1:] if values[0] == "random" else values
            found["loss-random"] = {"loss": _share(shares, 0), "correlation": _share(shares, 1)}
        elif name in ("duplicate", "corrupt", "reorder"):
            found[name] = {name: _share(values, 0), "correlation": _share(values, 1)}
        elif name == "rate":
            found["rate"] = {"rate": round(scaled(values[0], RATES)) // 8}
        elif name == "slot":
            found["slot"] = _slot(values)
    return found


def _slot(values: list[str]) -> Entry:
    names, times = ("min-delay", "max-delay"), 2
    if values[0] == "distribution":  # the name of the distribution follows
        names, values = ("distribution", "jitter"), values[2:]
    seconds = [scaled(value, TIMES) for value in values[:times]]
    given = dict(zip(values[times::2], map(int, values[times + 1 :: 2]), strict=True))
    return dict(zip(names, seconds, strict=True)) | {"packets": 0, "bytes": 0} | given


def _tbf_options(words: list[str]) -> Entry:
    given = dict(zip(words[::2], words[1::2], strict=True))
    return {"rate": round(scaled(given["rate"], RATES)) // 8, "burst": int(given["burst"])}


def _fifo_options(words: list[str]) -> Entry:
    return {"limit": int(words[1])}


OPTIONS = {"netem": netem_options, "tbf": _tbf_options, "pfifo": _fifo_options}


def _options(kind: str, words: list[str]) -> Entry:
    """Returns the options that tc would show for a qdisc; raises LabError for an unknown kind."""
    found = OPTIONS[kind](words) if kind in OPTIONS else fake_queues.options(kind, words)
    if found is None:
        raise LabError(f"fake tc: does not know the qdisc {kind}")
    return found


def _grouped(words: list[str]) -> list[tuple[str, list[str]]]:
    names = ("limit", "delay", "distribution", "loss", "duplicate", "corrupt", "reorder", "rate", "slot")
    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if word in names and groups[-1:] != [("slot", [])]:  # slots may have a distribution of their own
            groups.append((word, []))
        else:
            groups[-1][1].append(word)
    return groups


def _percent(text: str) -> float:
    return float(text.removesuffix("%")) / 100


def _share(values: list[str], index: int) -> float:
    return _percent(values[index]) if index < len(values) else 0.0
