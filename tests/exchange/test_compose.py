"""Tests Docker Compose projects with the programs of their images, from archives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from orchestrator.exchange import writing
from orchestrator.exchange.compose import read
from orchestrator.exchange.compose_forms import interpolated
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

sys.path.append(str(Path(__file__).parents[1] / "images"))
import oci_archives  # the archives of the images' own tests

PROJECT = """\
services:
  api:
    image: "registry/api:${TAG:-2}"
    command: serve --port 80
    environment: {MODE: "fast {{x}}", EMPTY: }
    healthcheck: {test: ["CMD-SHELL", "true"], interval: 2s, timeout: 1s, retries: 4, start_period: 1s}
  worker: {build: ., networks: [default], command: [work]}
"""


def write(directory: Path) -> Path:
    (directory / "images").mkdir()
    settings = {"Entrypoint": ["/bin/api"], "Cmd": ["help"], "Env": ["HOME=/x"]}
    for name in ("registry_api_2", "worker"):
        content = oci_archives.tar(oci_archives.entry("bin/api", b"x"))
        oci_archives.oci(directory / "images" / f"{name}.tar", content, config=settings)
    file = directory / "compose.yaml"
    file.write_text(PROJECT)
    return file


def test_images_commands_and_health(tmp_path: Path) -> None:
    file = write(tmp_path)
    network = read(file, tmp_path / "images")
    written = writing.write(network)
    plan = make_plan(parse(str(tmp_path / "out.yaml"), written.text.encode()))
    process = {node.name: node.software[0].process for node in plan.nodes}
    api, worker = process["api"], process["worker"]
    assert api is not None and worker is not None
    assert list(api.argv) == ["/bin/api", "serve", "--port", "80"] and list(worker.argv) == [
        "/bin/api",
        "work",
    ]
    assert api.env["MODE"] == "fast {{x}}" and api.env["HOME"] == "/x" and "EMPTY" not in api.env
    assert api.ready.command is not None and 'within: "13 s"' in written.text
    left = "\n".join(network.left)
    assert "line 5: EMPTY: its value is the caller's" in left and 'the variable TAG is "2"' in "".join(
        written.changed
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "command: serve --port 80",
            "network_mode: host",
            r"compose.yaml:4: .*network_mode: host: cannot be",
        ),
        ("interval: 2s", "interval: 2", r"compose.yaml:6: .*interval: 2: is no duration"),
        ("timeout: 1s", "timeout: soon", r"compose.yaml:6: .*timeout: soon: is no duration"),
        ("retries: 4", "retries: some", r"compose.yaml:6: .*retries: some: is no whole number"),
        (
            "${TAG:-2}",
            "${TAG:?name a ${X:-tag}}",
            r"compose.yaml:3: \$\{TAG\}: has no value: name a tag; .*TAG=V",
        ),
        ("command: serve --port 80", "extends: {service: worker}", r"compose.yaml:4: .*extends"),
        ("[default]", "[other]", r"other: a service names a network that the file has not"),
        ("{build: ., ", "{depends_on: [nobody], ", r"nobody is no service of the file"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    file = write(tmp_path)
    file.write_text(PROJECT.replace(old, new))
    with pytest.raises(TopologyError, match=said):
        read(file, tmp_path / "images")


def test_variables_with_defaults_in_defaults(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SET=s\nEMPTY=\n")
    for text, expanded in (
        ("${A:-${B:-c}}", "c"), ("${A:-${SET:-c}-$SET}d", "s-sd"), ("${SET:-${A:?x}}", "s"),
        ("$$A ${A}", "$A "),
        ("${EMPTY-a}${EMPTY:-b}", "b"), ("${SET:+x${A-y}}${A:+z}", "xy"), ("# ${A:?x}", "# "),
        ("${A:-", "${A:-"), ("${EMPTY?x}", ""),
    ):  # fmt: skip
        assert interpolated(tmp_path / "compose.yaml", text.encode())[0].decode() == expanded, text
    for text, rule in (("\n${EMPTY:?}", ":2: .*requires one"), ("${A:-" * 30 + "}" * 30, "nests more than")):
        with pytest.raises(TopologyError, match=rule):
            interpolated(tmp_path / "compose.yaml", text.encode())
