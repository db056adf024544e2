"""Holds the cases of the section on Docker Compose's projects."""

# ruff: noqa: E501
from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.exchange import compose
from orchestrator.exchange.network import Network

from . import Tool, both, imported, network, refused, said, silent

sys.path.append(str(Path(__file__).parents[2] / "images"))
import oci_archives  # the archives of the images' own tests

PROJECT = """\
name: lab
x-set: "${SET}"
services:
  web:
    image: "w:1"
    command: serve
    networks: [front, back]
    #web
  db:
    image: "d:1"
    networks: {back: {ipv4_address: 172.20.0.9}}
    #db
  #services
networks:
  front: {driver: bridge}
  back: {ipam: {config: [{subnet: 172.20.0.0/24}]}}
  #networks
#file
"""
FILES = {"compose.yaml": PROJECT, "a.env": "A=1\n", "b.env": "A=2\n", ".env": "SET=4\n"}


def read(path: Path) -> Network:
    """Imports the project with an archive of the image w:1 beside it."""
    place = path.parent / "images"
    place.mkdir(exist_ok=True)
    if not (place / "w_1.tar").exists():
        oci_archives.oci(
            place / "w_1.tar",
            oci_archives.tar(oci_archives.entry("bin/w", b"x")),
            config={"Entrypoint": ["/bin/w"]},
        )
    return compose.read(path, place)


def web(text: str) -> tuple[str, str]:
    return "#web", text


ROWS = {
    "service; `scale`": [network(*web("scale: 2"), web("scale: 3")[1]), network(*web("deploy: {replicas: 2}"), web("deploy: {replicas: 3}")[1]), network("  #services", "  more: {image: x}")],
    "`image`": [both('image: "w:1"', 'image: "w:2"'), said('image: "d:1"', 'image: "d:2"')],
    "`command`, `entrypoint`": [
        network("command: serve", "command: help"), network(*web("entrypoint: /bin/x")), network(*web("environment: {A: 1}"), web("environment: {A: 2}")[1]),
        network(*web("environment: [A=1]"), web("environment: [A=2]")[1]), network(*web("env_file: a.env"), web("env_file: b.env")[1]), network(*web("working_dir: /a"), web("working_dir: /b")[1]),
    ],
    "`healthcheck`": [
        network(*web('healthcheck: {test: ["CMD", "true"]}'), web('healthcheck: {test: ["CMD", "false"]}')[1]), both(*web("healthcheck: {test: exit 0}")),
        network(*web('healthcheck: {test: exit 0, retries: 4}'), web("healthcheck: {test: exit 0, retries: 5}")[1]),
    ],
    "`networks` (`internal`": [
        network("networks: [front, back]", "networks: [front]"), network("ipam: {config: [{subnet: 172.20.0.0/24}]}", "ipam: {config: [{subnet: 172.20.0.0/25}]}"), network("ipv4_address: 172.20.0.9", "ipv4_address: 172.20.0.8"),
        network("    networks: [front, back]\n", "    networks: [default]\n"),
        silent("front: {driver: bridge}", "front: {internal: true}"), said("front: {driver: bridge}", "front: {external: true}"), silent("front: {driver: bridge}", "front: {attachable: true}"),
        said("front: {driver: bridge}", "front: {driver: macvlan}"),
    ],
    "`cpus`, `mem_limit`": [
        network(*web("cpus: 0.5"), web("cpus: 0.25")[1]), network(*web("mem_limit: 64m"), web("mem_limit: 65m")[1]), network(*web("pids_limit: 64"), web("pids_limit: 65")[1]),
        *(network(*web(f"deploy: {{resources: {{limits: {{{a}}}}}}}"), web(f"deploy: {{resources: {{limits: {{{b}}}}}}}")[1])
          for a, b in (("cpus: '0.5'", "cpus: '0.6'"), ("memory: 64M", "memory: 65M"), ("pids: 64", "pids: 65"))),
        network(*web("sysctls: {net.ipv4.ip_forward: 1}")), said(*web("sysctls: {net.core.somaxconn: 9}")), said(*web("deploy: {resources: {reservations: {memory: 5m}}}")),
    ],
    "`${NAME:-default}`": [
        both(*web("cpus: ${CPU:-0.5}"), web("cpus: ${CPU:-0.6}")[1]), network(*web("scale: ${SET}"), web("scale: 3")[1]), refused(*web("cpus: ${CPU:?name it}")), said("SET=4", "SET=3", file=".env"),
        network(*web("scale: ${NONE:-${SET}}"), web("scale: 2")[1]),
    ],
    "`depends_on`": [both(*web("depends_on: [db]")), refused("    #web", "    depends_on: [web]"), both(*web("depends_on: {db: {condition: service_started}}"))],
    "`ports`": [said(*web('ports: ["80:8080"]')), said(*web('ports: ["80:8080"]'), web('ports: ["81:8080"]')[1])],
    "`expose`": [silent(*web('expose: ["80"]'))],
    "`build`, `volumes`": [
        *(said(*web(text)) for text in (
            "build: .", "volumes: [a:/b]", "configs: [x]", "secrets: [x]", "restart: always", "hostname: x", "links: [db]", "mac_address: 02:00:00:00:00:01",
            "privileged: true", "dns: 1.1.1.1", "extra_hosts: [a=b]", "cap_add: [NET_ADMIN]", "tmpfs: /run", "user: root", "shm_size: 1g", "pid: host", "cpu_shares: 5", "post_start: [{command: x}]")),
        said("  #services", "  more: {image: x, profiles: [debug]}"), said(*web("env_file: [{path: no.env, required: false}]")),
        said("{ipv4_address: 172.20.0.9}", "{ipv4_address: 172.20.0.9, aliases: [x]}"), said("{subnet: 172.20.0.0/24}", "{subnet: 172.20.0.0/24, gateway: 172.20.0.1}"),
        said("#file", "volumes: {a: }"), said("ipam: {config", "ipam: {driver: other, config"), said("#file", "configs: {a: {content: x}}"), said("#file", "secrets: {a: {file: x}}"), said("  #networks", "  more: {}"),
    ],
    "`extends`, `include`": [
        refused(*web("extends: {service: db}")), refused("#file", "include: [x.yaml]"), refused(*web("network_mode: host")), refused(*web('network_mode: "service:db"')),
        refused(*web("<<: {a: 1}")),
    ],
}  # fmt: skip
ROWS["a wrong subnet"] = [
    refused("command: serve", "command: {a: b}"),
    refused("#db", "networks: 5"),
    refused("#file", "services: 5"),
    refused("  #networks", "  n: 5"),
    refused("#db", "healthcheck: {test: {a: b}}"),
    refused("  #services", "  x: 5"),
    refused("172.20.0.0/24", "172.20.0.1/24"),
    refused("172.20.0.9", "172.20.0.999"),
    refused("172.20.0.9", "172.21.0.9"),
]
TOOL = Tool("Docker Compose's projects", FILES, "compose.yaml", imported(read), ROWS)
