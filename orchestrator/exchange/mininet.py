"""Imports Mininet scripts: runs them with recording stand-ins for Mininet's modules (mininet_recorder), in a
sandbox without network.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from ..language.problem import Problem, TopologyError
from .files import utf8
from .linux.commands import act, bare
from .linux.tc import duration
from .mininet_switches import Places, root_of
from .network import Lan, Machine, Network, Origin, Wire, insist_few, name_of
from .sandboxed import CPU_S, OUTPUT, UNAVAILABLE
from .startup import Startup

TOOL = "Mininet"
HERE = Path(__file__).parent
PATIENCE_S = 120  # s on a busy machine; sandboxed.py limits the CPU time
_START = (
    "import sys; sys.path.insert(0, {place!r}); from mininet_recorder.main import main; sys.path.pop(0); "
    "main({file!r}, {stop}, {words!r})"
)


def read(
    path: Path, arguments: Sequence[str] = (), stop_at_start: bool = False, sandbox: bool = True
) -> Network:
    """Returns the first network that a script builds, and reports the number of others. Raises TopologyError
    with the line where the script fails, or if it builds none or cannot run in a sandbox. `arguments`: the
    script's own. With `stop_at_start`, the script ends when its network starts. Without `sandbox`, it runs
    with the user's rights.
    """
    utf8(path)
    found = _recorded(path, arguments, stop_at_start, sandbox)
    network = Network(name_of(path.stem, set()), f"{TOOL}, {path.name}", source=str(path), has_routes=True)
    nets, error = found["nets"], found["error"]
    if error:
        raise _failed(path, error, bool(nets))
    if not nets:
        raise _refused(path, 0, "builds no network")
    network.left += dict.fromkeys(found["left"])
    network.changed += dict.fromkeys(found["changed"])
    network.left += [f"{len(nets) - 1} more networks that the script builds"] if len(nets) > 1 else []
    insist_few(str(path), sum(len(nets[0][key]) for key in ("hosts", "switches", "links")))
    _take(network, nets[0])
    return network


def _failed(path: Path, error: dict[str, Any], has_network: bool) -> TopologyError:
    """Returns the error for a script that failed before its end. Its remedy names --stop-at-start if the
    script had built a network, and a conversion if the script is Python 2.
    """
    if error["python2"]:
        return _refused(path, error["line"], f"is Python 2 ({error['text']})", "convert it to Python 3 first")
    remedy = "mend the script, or give the arguments that it needs after --"
    if has_network:
        remedy += "; --stop-at-start takes the network as it is when it starts"
    return _refused(path, error["line"], f"fails ({error['text']})", remedy)


def _recorded(path: Path, arguments: Sequence[str], stop_at_start: bool, sandbox: bool) -> dict[str, Any]:
    file = str(path.resolve())
    start = _START.format(place=str(HERE), file=file, stop=stop_at_start, words=list(arguments))
    argv = [sys.executable, "-s", "-P", "-c", start]  # -P: modules beside the script are not the recorder's
    with tempfile.TemporaryDirectory(prefix="vnet-import-") as root, tempfile.TemporaryFile() as out:
        if sandbox:
            shown = [str(HERE / "mininet_recorder"), str(path.resolve().parent), sys.prefix, sys.base_prefix]
            argv = [sys.executable, "-I", "-S", str(HERE / "sandboxed.py"), root, ":".join(shown),
                    str(path.resolve().parent), *argv]  # fmt: skip
        return _answer(path, argv, out)


def _answer(path: Path, argv: list[str], out: IO[bytes]) -> dict[str, Any]:
    """Runs the recorder and returns the JSON that it wrote to `out`, read up to a size limit because the
    script may print too. Raises TopologyError if the recorder runs longer than PATIENCE_S, gets no sandbox or
    prints no JSON.
    """
    try:
        with tempfile.TemporaryFile() as errors:
            done = subprocess.run(
                argv, stdout=out, stderr=errors, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False
            )
            errors.seek(max(0, errors.tell() - 400))
            said = " ".join(errors.read(400).decode("utf-8", "replace").split())[-200:]
    except subprocess.TimeoutExpired:
        raise _refused(path, 0, f"does not end within {PATIENCE_S} s") from None
    if done.returncode == UNAVAILABLE:
        remedy = "run where user namespaces are allowed, or with --no-sandbox if you trust the script"
        raise _refused(path, 0, f"cannot be run in a sandbox here ({said})", remedy)
    out.seek(0)
    try:
        found: dict[str, Any] = json.loads(out.read(OUTPUT))
        if not _whole(found):
            raise ValueError
    except ValueError:
        how, status = f"with status {done.returncode}", done.returncode
        if 256 - 64 < status < 256:  # sandboxed.py: 256 less the signal
            how = f"by signal {256 - status}: more than {CPU_S} s of CPU time, or a fault"
        raise _refused(path, 0, f"ended {how} ({said})") from None
    return found


def _whole(found: Any) -> bool:
    """Returns whether the recorder's answer has its parts; a script may write one of its own, and end."""

    def has(one: Any, *keys: str) -> bool:
        return isinstance(one, dict) and all(key in one for key in keys)

    if not has(found, "nets", "left", "changed", "error") or not isinstance(found["nets"], list):
        return False
    parts = {
        "hosts": ("name", "addresses", "commands", "line", "cpu"),
        "switches": ("name", "commands", "line", "plumbing", "stp"),
        "links": ("ends", "down", "line"),
    }
    return all(
        has(net, *parts) and all(has(one, *keys) for part, keys in parts.items() for one in net[part])
        for net in found["nets"]
    )


def _refused(
    path: Path, line: int, rule: str, remedy: str = "name a script that builds a Mininet"
) -> TopologyError:
    return TopologyError([Problem(str(path), line, "", "", rule, remedy)])


def _take(network: Network, net: dict[str, Any]) -> None:
    names: dict[str, str] = {}
    for name in [*(one["name"] for one in net["switches"]), *(host["name"] for host in net["hosts"])]:
        names[name] = name_of(name, set(names.values()))
        if names[name] != name:
            network.changed.append(f"node {name} is {names[name]} here")
    machines: dict[str, Machine] = {}  # by the name of the node in the script
    for host in net["hosts"]:
        ours = names[host["name"]]
        addresses = {port: [address] for port, address in host["addresses"].items()}
        machine = Machine(ours, addresses=addresses, origin=Origin(network.source, host["line"]))
        machines[host["name"]] = network.machines[ours] = machine
        if host["cpu"]:
            machine.keys["cpu_limit"] = f"{host['cpu']:g} cores"
            said = f"{host['name']}: {host['cpu']:g} of all CPUs is {host['cpu']:g} of one core here"
            network.changed.append(f"line {host['line']}: {said}")
    ports = [(node, port) for link in net["links"] for node, port in link["ends"]]
    root = root_of(net, ports)
    for switch in net["switches"]:
        ours, machines[switch["name"]] = names[switch["name"]], root
        network.lans[ours] = Lan(ours, stp=switch["stp"], origin=Origin(network.source, switch["line"]))
    _commanded(network, machines, root, net, set(ports))
    places = Places(network, net, names, root)
    for link in net["links"]:
        _joined(network, link, names, places)
    for port in sorted({*root.queues, *root.addresses, *root.down} - places.linux()):
        network.left.append(f"what the switches' commands do at {port}, on no link of the script")


def _commanded(
    network: Network, machines: dict[str, Machine], root: Machine, net: dict[str, Any],
    ports: set[tuple[str, str]],
) -> None:  # fmt: skip
    """Applies the recorded commands of all nodes, as their shells would run them, in the script's order with
    the impairments that it gives to interfaces among `ports` (node, interface; those of links). ovs-vsctl
    acts on the switches from every node. Reports parts without a counterpart; raises TopologyError for the
    first problem.
    """
    given = [(*one, node["name"]) for node in (*net["hosts"], *net["switches"]) for one in node["commands"]]
    for _, line, text, name in sorted(given, key=lambda one: int(one[0])):
        machine = machines[name]
        if isinstance(text, dict):
            if (name, port := text["port"]) in ports:
                _shape(machine, port, text["side"])
            continue
        startup = Startup(machine, name, lambda _line, line=line, name=name: f"line {line}: {name}")  # type: ignore[misc]
        if machine is not root:
            startup.own = lambda words, _line: bare(words[0]) == "ovs-vsctl" and act(root, words) is not None
        startup.script(text)
        network.left += [one for one in startup.left if one not in network.left]
        for _, value, rule, remedy in startup.problems:
            raise TopologyError([Problem(network.source, line, "", value, rule, remedy)])


def _shape(machine: Machine, port: str, side: dict[str, Any]) -> None:
    """Replaces all impairments of an interface, as TCIntf.config does. With a bandwidth its root qdisc is
    Mininet's HTB.
    """
    machine.queues.pop(port, None)
    machine.shaped.discard(port)
    if side:
        machine.queues[port] = dict(map(_quantity, side.items()))
    if "bw" in side:
        machine.shaped.add(port)


def _joined(network: Network, link: dict[str, Any], names: dict[str, str], places: Places) -> None:
    """Adds a wire for a recorded link, with the impairments that its ends have at the end of the script.
    Reports addresses at switch ports as left out; a link with such a port that is
    down is down.
    """
    sides: list[dict[str, Any]] = [{}, {}]
    down, ends = link["down"], []
    for side, (node, port) in zip(sides, link["ends"], strict=True):
        ours = names[node]
        machine = network.machines.get(ours) or places.root
        side |= machine.queues.pop(port, {})
        if machine is places.root:
            for address in machine.addresses.pop(port, []):
                network.left.append(f"{ours}: the address {address} of {port}, a port of a switch")
            ours, off = places.of(node, port)
            down = down or off or port in machine.down
            machine.down.discard(port)
        ends.append((ours, port))
    origin = Origin(network.source, link["line"])
    network.join(Wire((ends[0], ends[1]), None, _impairments(*sides), down, origin=origin))


def _impairments(forward: dict[str, Any], reverse: dict[str, Any]) -> dict[str, dict[str, Any]]:
    if forward == reverse:
        return {"both": forward} if forward else {}
    return {name: side for name, side in (("forward", forward), ("reverse", reverse)) if side}


def _quantity(item: tuple[str, Any]) -> tuple[str, Any]:
    """Converts a Mininet parameter and value (bw in Mbit/s, loss in percent, max_queue_size in packets,
    otherwise a time, without a unit in microseconds) to the topology's form.
    """
    key, value = item
    match key:
        case "bw":
            mbps = float(value)
            return "rate", f"{mbps:.12g} Mbit/s" if mbps >= 0.001 else f"{mbps * 1e6:.12g} bit/s"
        case "loss":
            return "loss", f"{float(value):.12g} %"
        case "max_queue_size":
            return "limit", int(value)
    return key, duration(str(value))
