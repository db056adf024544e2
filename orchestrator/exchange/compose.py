"""Imports projects of Docker Compose: services become nodes on LANs, with the programs of their images.

Images come from a directory of archives, or from an installed runtime (docker, podman) that saves them there.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
from pathlib import Path
from typing import Any

from ..images.errors import ImageError
from ..images.oci.archive import read as read_archive
from ..language.problem import TopologyError
from ..language.source import Document, read_document
from .compose_forms import (
    Refusals,
    interpolated,
    listed,
    mapping,
    networks_of,
    pairs,
    port_text,
    seconds,
    size,
    sorted_services,
    split,
    unmapped,
    wrong_forms,
)
from .files import bounded, readable, script
from .linux.addresses import is_a
from .linux.commands import act
from .network import Lan, Machine, Network, Origin, insist_few, name_of

TOOL = "Docker Compose"
RUNTIMES = ("docker", "podman")
MOST_REPLICAS = 1000
SAVE_S = 600  # s; saving a large image on a slow disk takes long
READ = {
    "image", "command", "entrypoint", "environment", "env_file", "working_dir", "networks", "depends_on",
    "healthcheck", "cpus", "mem_limit", "pids_limit", "deploy", "sysctls", "network_mode", "scale", "ports",
    "profiles", "expose",
}  # fmt: skip
HEALTH = {"test", "interval", "timeout", "retries", "start_period", "disable"}
Place = tuple[str | int, ...]


def read(path: Path, images: Path | None = None, runtime: str | None = None) -> Network:
    """Returns the network of the Compose file `path`. Raises TopologyError with the lines of all parts that
    cannot be imported.

    `images` is the directory of image archives, by default `images` beside the file if there is a `runtime`:
    the program that saves absent archives there. Without both, nodes have no programs.
    """
    content, said = interpolated(path, bounded(path))
    network = _Reader(path, read_document(str(path), content), images, runtime).network()
    network.changed += said
    return network


class _Reader:
    def __init__(self, path: Path, document: Document, images: Path | None, runtime: str | None) -> None:
        self._directory, self._document = path.parent, document
        self._images, self._runtime = images, runtime
        self._refusals = Refusals(document)
        data = mapping(document.data)
        name = str(data.get("name") or path.absolute().parent.name)
        self._network = Network(
            name_of(name, set()), f"{TOOL}, {path.name}", source=str(path), keeps_routes=True
        )
        self._lans: dict[str, str] = {}  # network in the Compose file -> LAN
        # service in the Compose file -> its nodes, one for each replica
        self._names: dict[str, list[str]] = {}

    def network(self) -> Network:
        data = mapping(readable(self._document.data))
        for place, value in unmapped(data):
            self._refuse(place, "is no mapping", "mend it: docker compose config", f"{value!s:.60}")
        services = mapping(data.get("services"))
        for key in sorted(data.keys() - {"services", "networks", "name", "version"}):
            if not key.startswith("x-"):
                self._leave((key,), f"{key}: no counterpart")
        if "include" in data:
            self._refuse(("include",), "another file cannot be taken over", "join the files: compose config")
        active = {name: mapping(keys) for name, keys in services.items() if not mapping(keys).get("profiles")}
        for name in services.keys() - active.keys():
            self._leave(("services", name), f"{name}: is of a profile, which is not started by default")
        given = mapping(data.get("networks"))
        insist_few(self._document.file, len(services) + len(given))
        self._networks(active, given)
        for name in sorted_services(active, self._refuse):
            self._service(name, active[name])
        for name in given.keys() - self._lans.keys():
            self._leave(("networks", name), f"the network {name}: no service is on it")
        if not active:
            self._refuse(("services",), "has no services", "name a file of Docker Compose")
        if self._refusals.problems:
            raise TopologyError(self._refusals.problems)
        return self._network

    def _refuse(self, path: Place, rule: str, remedy: str, value: str = "") -> None:
        self._refusals.add(path, rule, remedy, value)

    def _leave(self, path: Place, said: str) -> None:
        self._network.left.append(f"line {self._refusals.line(path)}: {said}")

    def _change(self, path: Place, said: str) -> None:
        self._network.changed.append(f"line {self._refusals.line(path)}: {said}")

    def _networks(self, services: dict[str, Any], given: dict[str, Any]) -> None:
        """Makes a LAN for each network that a service is on: first the file's networks in their order, then
        others. A service that names no network is on the network `default`. Refuses another network that the
        file does not define.
        """
        used = [name for keys in services.values() for name in networks_of(keys)]
        taken = {name_of(name, set()) for name in services}
        for name in dict.fromkeys([*given, *used]):
            if name not in used:
                continue
            if name not in given and name != "default":
                self._refuse(
                    ("services",),
                    "a service names a network that the file has not",
                    "name it in `networks`",
                    name,
                )
            ours = self._lans[name] = name_of(name, taken)
            taken.add(ours)
            keys = mapping(given.get(name))
            path: Place = ("networks", name)
            if keys.get("driver") not in (None, "bridge", "overlay"):
                self._leave(
                    (*path, "driver"), f"the driver {keys['driver']} of {name}: a segment stands for it"
                )
            if keys.get("external"):
                self._change(path, f"the network {name} is made for the lab here, and joined to nothing else")
            for key in sorted(keys.keys() - {"driver", "external", "ipam", "internal", "name", "attachable"}):
                self._leave((*path, key), f"{key} of {name}: no counterpart")
            self._network.lans[ours] = Lan(ours, subnet=self._subnet(path, keys), origin=self._origin(path))

    def _subnet(self, path: Place, keys: dict[str, Any]) -> str | None:
        configs = listed(mapping(keys.get("ipam")).get("config"))
        for key in sorted(mapping(keys.get("ipam")).keys() - {"config"}):
            if mapping(keys["ipam"])[key] not in ("default", None):
                self._leave((*path, "ipam"), f"ipam.{key}: no counterpart")
        subnets = [str(mapping(one)["subnet"]) for one in configs if mapping(one).get("subnet")]
        wrong = next((text for text in subnets if not is_a(ipaddress.ip_network, text)), None)
        if wrong is not None:
            self._refuse((*path, "ipam"), "is no subnet", "write for example 172.20.0.0/24", wrong[:60])
            return None
        subnets.sort(key=lambda text: ":" in text)  # IPv4 before IPv6, each in the order of the file
        for text in subnets[1:]:
            self._leave((*path, "ipam"), f"the subnet {text}: a segment has one")
        for one in configs:
            for key in sorted(mapping(one).keys() - {"subnet"}):
                self._leave((*path, "ipam"), f"{key} of a subnet: no counterpart")
        return subnets[0] if subnets else None

    def _origin(self, path: Place) -> Origin:
        return Origin(self._document.file, self._refusals.line(path))

    def _service(self, theirs: str, keys: dict[str, Any]) -> None:
        path: Place = ("services", theirs)
        for key, forms in wrong_forms(keys):
            self._refuse(
                (*path, key), f"is no {forms}", "mend it: docker compose config", f"{keys[key]!s:.60}"
            )
        for key in sorted(keys.keys() - READ):
            if key in ("extends", "<<"):
                rule = "keys of another service or mapping cannot be taken over"
                self._refuse((*path, key), rule, "run docker compose config first")
            elif not key.startswith("x-"):
                self._leave((*path, key), f"{theirs}: {key}: no counterpart")
        if keys.get("depends_on"):
            said = "depends_on: the order of services is kept; no program waits for another here"
            self._leave((*path, "depends_on"), f"{theirs}: {said}")
        for port in listed(keys.get("ports")):
            self._leave(
                (*path, "ports"),
                f"{theirs}: port {port_text(port)}: a lab has no outside; nodes reach the service's own",
            )
        mode = str(keys.get("network_mode", "bridge"))
        if mode == "none":
            self._leave(path, f"{theirs}: is on no network")
            return
        if mode != "bridge":
            self._refuse((*path, "network_mode"), "cannot be taken over", "give the service networks", mode)
        count = keys.get("scale", mapping(keys.get("deploy")).get("replicas", 1))
        if not str(count).isdecimal() or int(str(count)) > MOST_REPLICAS:
            self._refuse(
                path, "is no number of replicas", f"write a number up to {MOST_REPLICAS}", str(count)
            )
            return
        count = int(str(count))
        if count == 0:
            self._leave(path, f"{theirs}: has no replica")
        insist_few(self._document.file, len(self._network.machines) + count)
        limits, software = self._limits(path, keys), self._program(path, theirs, keys)
        for number in range(1, count + 1):
            label = theirs if count == 1 else f"{theirs}-{number}"
            name = name_of(label, {*self._network.machines, *self._network.lans})
            self._names.setdefault(theirs, []).append(name)
            if name != theirs:
                self._change(path, f"{theirs} is reached as {name} here, by that name only")
            machine = Machine(name, origin=self._origin(path), keys=dict(limits))
            if software is not None:
                machine.keys |= software
            self._network.machines[name] = machine
            self._place(path, theirs, keys, machine)

    def _place(self, path: Place, theirs: str, keys: dict[str, Any], machine: Machine) -> None:
        """Puts the machine on its service's networks, with its fixed address (ipv4_address) if it has one,
        and applies the service's sysctls. Refuses an address on a network without a subnet.
        """
        for name in networks_of(keys):
            lan = self._network.lans[self._lans[name]]
            own = (
                mapping(mapping(keys.get("networks")).get(name))
                if isinstance(keys.get("networks"), dict)
                else {}
            )
            lan.members.append((machine.name, name))
            for key in sorted(own.keys() - {"ipv4_address"}):
                self._leave((*path, "networks", name), f"{theirs}: {key} on {name}: no counterpart")
            if address := own.get("ipv4_address"):
                subnet = ipaddress.ip_network(lan.subnet) if lan.subnet else None
                inside = is_a(ipaddress.ip_address, str(address)) and subnet is not None
                if not inside or subnet is None or ipaddress.ip_address(str(address)) not in subnet:
                    rule = f"{name} has no subnet for the address ({subnet or 'none at all'})"
                    self._refuse((*path, "networks"), rule, "give it one", str(address)[:60])
                else:
                    machine.addresses[name] = [f"{address}/{subnet.prefixlen}"]
        for setting, value in pairs(keys.get("sysctls")):
            if act(machine, ["sysctl", f"{setting}={value}"]) is None:
                self._leave((*path, "sysctls"), f"{theirs}: {setting}: no counterpart")

    def _limits(self, path: Place, keys: dict[str, Any]) -> dict[str, Any]:
        """Returns the service's limits of CPU, memory and processes as node keys; omits absent ones, and a
        process limit of 1 or less. Reports an unknown size and the other keys of `deploy` as left out.
        """
        deploy = mapping(keys.get("deploy"))
        resources = mapping(mapping(deploy.get("resources")).get("limits"))
        for key in sorted(deploy.keys() - {"resources", "replicas"}):
            self._leave((*path, "deploy"), f"deploy.{key}: no counterpart")
        if mapping(deploy.get("resources")).get("reservations"):
            self._leave((*path, "deploy"), "deploy.resources.reservations: no counterpart")
        found: dict[str, Any] = {}
        if (cpus := keys.get("cpus", resources.get("cpus"))) is not None:
            found["cpu_limit"] = f"{cpus} cores"
        if (memory := keys.get("mem_limit", resources.get("memory"))) is not None:
            if (text := size(str(memory))) is None:
                self._leave(path, f"{memory} is no size that is known")
            else:
                found["memory_limit"] = text
        if isinstance(pids := keys.get("pids_limit", resources.get("pids")), int) and pids > 1:
            found["process_limit"] = pids
        elif pids is not None and pids != -1:
            self._leave(path, f"a limit of {pids} processes: no counterpart")
        return found

    def _program(self, path: Place, theirs: str, keys: dict[str, Any]) -> dict[str, Any] | None:
        """Returns node keys for the service: `image`, and `software` with its command, environment, directory
        and readiness probe. None if no archive of the image is found (reported as left out), or if the
        archive is damaged or no program is named (refused).
        """
        image = str(keys.get("image") or "")
        archive = self._archive(path, theirs, image)
        if archive is None:
            what = f"image {image}" if image else "its image, which the file builds"
            self._leave(
                path, f"{theirs}: {what}: no archive of it (--images, --runtime): a node without its program"
            )
            return None
        try:
            settings = read_archive(archive).settings
        except ImageError as error:
            self._refuse((*path, "image"), str(error), "save it again", str(archive))
            return None
        entrypoint, command = split(keys.get("entrypoint")), split(keys.get("command"))
        if entrypoint is None and command is not None:
            entrypoint = list(settings.entrypoint)
        argv = list(settings.argv) if entrypoint is None else [*entrypoint, *(command or [])]
        if not argv:
            self._refuse(path, "names no program, and its image neither", "give it a `command`", theirs)
        one: dict[str, Any] = {"command": [_literal(word) for word in argv]}
        if env := self._environment(path, keys):
            one["env"] = {name: _literal(value) for name, value in env.items()}
        if keys.get("working_dir"):
            one["workdir"] = str(keys["working_dir"])
        if ready := self._ready(path, theirs, keys):
            one["ready"] = ready
        return {"image": f"oci:{archive.absolute()}", "software": {"app": one}}

    def _archive(self, path: Place, theirs: str, image: str) -> Path | None:
        """Returns the archive (.tar, .tar.gz) that is named after the image or the service; if there is none,
        lets the runtime save the image. None if there is neither an archive nor a runtime, or saving fails.
        """
        if self._images is None and self._runtime is None:
            return None
        place = self._images or self._directory / "images"
        stem = re.sub(r"[^\w.-]+", "_", image)
        for name in (stem, stem.removesuffix("_latest"), theirs):
            for end in (".tar", ".tar.gz"):
                if name and (place / f"{name}{end}").is_file():
                    return place / f"{name}{end}"
        return self._saved(path, image, place / f"{stem}.tar") if self._runtime and image else None

    def _saved(self, path: Place, image: str, archive: Path) -> Path | None:
        if self._runtime not in RUNTIMES:
            self._refuse(
                (*path, "image"),
                "no such runtime is known",
                f"give one of {', '.join(RUNTIMES)}",
                str(self._runtime),
            )
            return None
        archive.parent.mkdir(parents=True, exist_ok=True)
        try:
            command = [self._runtime, "save", "-o", str(archive), "--", image]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SAVE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._refuse(
                (*path, "image"),
                f"cannot be saved ({error})",
                f"install {self._runtime}, or use --images",
                image,
            )
            return None
        if done.returncode != 0:
            said = " ".join(done.stderr.split())[-150:]
            self._refuse(
                (*path, "image"), f"cannot be saved ({said})", f"{self._runtime} pull {image}", image
            )
            return None
        return archive

    def _environment(self, path: Place, keys: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for one in listed(keys.get("env_file")):
            file = self._directory / str(mapping(one).get("path", one))
            if not file.is_file() and mapping(one).get("required") is False:
                self._leave((*path, "env_file"), f"{file.name}: is not there, and not required")
                continue
            if not file.is_file():
                self._refuse((*path, "env_file"), "is not there", "put it beside the file", str(file))
                continue
            lines = (line.strip() for line in script(file).splitlines())
            given = pairs([line for line in lines if "=" in line and not line.startswith("#")])
            found |= {name: value or "" for name, value in given}
        for name, value in pairs(keys.get("environment")):
            if value is None:
                self._leave((*path, "environment"), f"{name}: its value is the caller's, and none here")
            else:
                found[name] = value
        return found

    def _ready(self, path: Place, theirs: str, keys: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the healthcheck as a readiness probe, whose time limit is the start period and all retries.
        None if there is no healthcheck or it is disabled, so that the service is ready at once. Refuses text
        that is no duration, and retries that are no whole number.
        """
        check = mapping(keys.get("healthcheck"))
        test = check.get("test")
        if not test or check.get("disable") is True or test in ("NONE", ["NONE"]):
            return None
        for key in sorted(check.keys() - HEALTH):
            self._leave((*path, "healthcheck"), f"{theirs}: healthcheck.{key}: no counterpart")
        words = [str(word) for word in test] if isinstance(test, list) else ["CMD-SHELL", str(test)]
        command: Any = words[1:] if words[0] == "CMD" else " ".join(words[1:])
        place = (*path, "healthcheck")
        retries = str(check.get("retries", 3))
        if not retries.isdecimal():
            self._refuse((*place, "retries"), "is no whole number", "write retries: 3", retries)
            return None
        start, interval, timeout = (
            self._seconds((*place, key), check.get(key, usual))
            for key, usual in (("start_period", "0s"), ("interval", "30s"), ("timeout", "30s"))
        )
        within = start + int(retries) * (interval + timeout)
        literal = [_literal(word) for word in command] if isinstance(command, list) else _literal(command)
        self._change(place, f"{theirs}: its healthcheck is a probe until it is ready, and no more")
        return {"command": literal, "within": f"{within:g} s"}

    def _seconds(self, path: Place, text: Any) -> float:
        """Returns the duration; refuses other text, and returns 0 for it."""
        found = seconds(text)
        if found is None:
            self._refuse(path, "is no duration", f"write {path[-1]}: 30s", str(text))
        return found or 0


def _literal(text: str) -> str:
    """Returns a template that renders to exactly this text: marks it as raw if it contains template
    syntax.
    """
    return "{% raw %}" + text + "{% endraw %}" if any(mark in text for mark in ("{{", "{%", "{#")) else text
