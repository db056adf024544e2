"""Scripts of Mininet: run against a recorder (mininet_recorder.py), in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..language.problem import Problem, TopologyError
from ..topology.loading import read_bytes
from .commands import commands, understood
from .network import Lan, Machine, Network, Wire, name_of

TOOL = "Mininet"
RECORDER = Path(__file__).with_name("mininet_recorder.py")
PATIENCE_S = 30


def read(path: Path) -> Network:
    """The network that a script builds first; TopologyError with the line where the script fails before."""
    read_bytes(path)
    found = _recorded(path)
    network = Network(name_of(path.stem, set()), f"{TOOL}, {path.name}")
    nets, error = found["nets"], found["error"]
    if not nets:
        line, text = (error["line"], error["text"]) if error else (0, "builds no network")
        raise _refused(path, line, f"fails ({text})" if error else text)
    network.left += dict.fromkeys(found["left"])
    if error:
        network.left.append(f"line {error['line']}: ended with {error['text']}, after its network was built")
    network.left += [f"{len(nets) - 1} more networks that the script builds"] if len(nets) > 1 else []
    _take(network, nets[0])
    return network


def _recorded(path: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, str(RECORDER), str(path)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise _refused(path, 0, f"does not end within {PATIENCE_S} s") from None
    except ValueError:
        said = " ".join(done.stderr.split())[-200:]
        raise _refused(path, 0, f"ended with status {done.returncode} ({said})") from None
    return found


def _refused(path: Path, line: int, rule: str) -> TopologyError:
    return TopologyError([Problem(str(path), line, "", "", rule, "name a script that builds a Mininet")])


def _take(network: Network, net: dict[str, Any]) -> None:
    names: dict[str, str] = {}
    for name in [*net["switches"], *(host["name"] for host in net["hosts"])]:
        names[name] = name_of(name, set(names.values()))
        if names[name] != name:
            network.changed.append(f"node {name} is {names[name]} here")
    for switch in net["switches"]:
        network.lans[names[switch]] = Lan(names[switch])
    for host in net["hosts"]:
        machine = Machine(names[host["name"]], addresses={p: [a] for p, a in host["addresses"].items()})
        network.machines[machine.name] = machine
        for line in host["commands"]:
            for words in commands(line):
                if not understood(machine, words):
                    network.left.append(f"{host['name']}: `{' '.join(words)}` is not run")
    for link in net["links"]:
        (a, first), (b, second) = link["ends"]
        wire = Wire(((names[a], first), (names[b], second)), impairments=_impairments(link["sides"], network))
        network.join(wire)


def _impairments(sides: list[dict[str, Any]], network: Network) -> dict[str, dict[str, Any]]:
    forward, reverse = ({k: v for k, v in map(_quantity, side.items()) if k} for side in sides)
    if forward == reverse:
        return {"both": forward} if forward else {}
    return {name: side for name, side in (("forward", forward), ("reverse", reverse)) if side}


def _quantity(item: tuple[str, Any]) -> tuple[str, Any]:
    """Mininet's word and value in ours: megabits a second, percent, times with or without a unit (us)."""
    key, value = item
    match key:
        case "bw":
            return "rate", f"{value:g} Mbit/s"
        case "loss":
            return "loss", f"{value:g} %"
        case "max_queue_size":
            return "limit", int(value)
    text = str(value)
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    return key, f"{number} {text[len(number) :].strip() or 'us'}"
