"""Tests mosquitto in the plan: users, an own configuration, an own program, files and environment."""

from __future__ import annotations

import base64
import hashlib

import pytest
from mistakes import refused

from contract.plan import Process
from orchestrator.plan.build import make_plan
from orchestrator.topology.loading import parse

BROKER = "b: {broker: mosquitto, port: 1884}"
FILE = f"""\
name: brokers
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  server: {{segment: lan, software: {{{BROKER}}}}}
run: {{hold: 10 s}}
"""
PLACE = "nodes.server.software.b"


def process(broker: str) -> Process:
    found = make_plan(parse("b.yaml", FILE.replace(BROKER, broker).encode())).nodes[0].software[0].process
    assert found is not None
    return found


def files(broker: str) -> dict[str, str]:
    return {file.path: file.content for file in process(broker).files}


def test_users_are_a_password_file_of_mosquittos_form() -> None:
    found = files("b: {broker: mosquitto, users: {ann: secret}}")
    assert "allow_anonymous false\npassword_file b/users\n" in found["b/mosquitto.conf"]
    name, rest = found["b/users"].rstrip("\n").split(":")
    _, kind, rounds, salt, digest = rest.split("$")
    assert (name, kind) == ("ann", "7")
    expected = hashlib.pbkdf2_hmac("sha512", b"secret", base64.b64decode(salt), int(rounds))
    assert base64.b64decode(digest) == expected
    both = files("b: {broker: mosquitto, allow_anonymous: true, users: {ann: secret}}")["b/mosquitto.conf"]
    assert "allow_anonymous true\npassword_file b/users\n" in both
    assert "password_file" not in files(BROKER)["b/mosquitto.conf"]


def test_an_own_configuration_replaces_the_rendered_one_and_options_follow() -> None:
    options = "options: {max_qos: 1, retain_available: false}"
    own = f"b: {{broker: mosquitto, config: 'listener 1883 {{{{ address }}}}', {options}}}"
    assert files(own) == {"b/mosquitto.conf": "listener 1883 10.1.0.1\nmax_qos 1\nretain_available false\n"}


def test_an_own_program_with_files_and_environment() -> None:
    found = process(
        "b: {broker: mosquitto, program: /opt/m/mosquitto, env: {N: '{{ node }}'}, "
        "files: {acl: 'topic {{ node }}'}}"
    )
    assert found.argv == ("/opt/m/mosquitto", "-c", "b/mosquitto.conf")
    assert found.env == {"N": "server"} and found.files[-1].content == "topic server"


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        ("config: listener 1883", "port", "`config` listens on 1883 only"),
        ("config: listener 1884, persistence: true", "persistence", "which `config` replaces"),
        ("config: 'listener {{ 1884'", "config", "is not a template"),
        ("users: {'a:b': x}", "users.a:b", "is no user name"),
        ("users: {'#a': x}", "users.#a", "is no user name"),
        ("users: {' a': x}", "users. a", "is no user name"),
        ("program: ../mosquitto", "program", "neither a program's name nor an absolute path"),
        ("env: {'A=B': x}", "env.A=B", "is not the name of a variable"),
        ("files: {../a: x}", "files.../a", "is not a path below the node's directory"),
        ("options: {'no such': 1}", "options.no such", "is not one line of a configuration"),
    ],
)  # fmt: skip
def test_mistakes_are_named(new: str, place: str, rule: str) -> None:
    refused(FILE, "port: 1884", f"port: 1884, {new}", f"{PLACE}.{place}", rule)
