"""Tests TLS in the plan: the lab's authority, certificates of one's own, and what a check refuses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from mistakes import problems, refused

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.registry import KINDS
from orchestrator.software.tls.certificates import Authority
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

FILE = """\
name: tls
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  server: {segment: lan, software: {b: {broker: mosquitto, port: 8883, tls: {mutual: true}}}}
groups:
  meter:
    count: 2
    segment: lan
    software: {m: {mqtt: {broker: server, tls: {mutual: true}, publish: {topic: m, rate: 1 /s}}}}
run: {hold: 10 s}
"""
MUTUAL = "tls: {mutual: true}, publish"
BROKER, CLIENT = "nodes.server.software.b", "groups.meter.software.m.mqtt"


def planned(text: str, directory: Path | None = None) -> Plan:
    return make_plan(parse(str(directory / "t.yaml") if directory else "t.yaml", text.encode()))


def specs(plan: Plan) -> dict[str, dict[str, Any]]:
    return {n.name: s.spec for n in plan.nodes for s in n.software if s.kind == "mqtt"}


def files(plan: Plan) -> dict[str, str]:
    process = plan.nodes[0].software[0].process
    assert process is not None
    return {file.path: file.content for file in process.files}


def test_a_command_gets_the_same_files_as_a_broker_of_the_lab() -> None:
    own = FILE.replace(
        "{broker: mosquitto, port: 8883, tls: {mutual: true}}", "{command: ./broker, tls: lab}"
    )
    own = own.replace("mqtt: {broker: server,", "mqtt: {broker: server, port: 8883,")
    names = {"b/ca.pem", "b/server.pem", "b/server.key"}
    given = {name: text for name, text in files(planned(FILE)).items() if name in names}
    assert files(planned(own)) == given and given.keys() == names
    refused(own, "tls: lab", "tls: {cert: a.pem}", f"{BROKER}.tls.cert", "has no `key`")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_verifies_the_certificates(tmp_path: Path) -> None:
    ours, foreign = Authority(b"ours", "vNET ours"), Authority(b"foreign", "vNET foreign")
    server = ours.issue("server", ("server", "localhost"), ("10.1.0.1", "fd00::1"))
    (tmp_path / "server.pem").write_text(server.certificate)
    (tmp_path / "server.key").write_text(server.key)
    for name, authority in (("ours", ours), ("foreign", foreign)):
        (tmp_path / f"{name}.pem").write_text(authority.certificate)

    def verify(ca: str, *more: str) -> int:
        command = [
            "openssl",
            "verify",
            "-x509_strict",
            "-purpose",
            "sslserver",
            "-CAfile",
            f"{ca}.pem",
            *more,
        ]
        return subprocess.run([*command, "server.pem"], cwd=tmp_path, capture_output=True).returncode

    assert verify("ours", "-verify_hostname", "server") == 0
    assert verify("ours", "-verify_ip", "fd00::1") == 0
    assert verify("ours", "-verify_hostname", "other") != 0
    assert verify("foreign") != 0

    def public(*command: str) -> str:
        return subprocess.run(["openssl", *command], cwd=tmp_path, capture_output=True, text=True).stdout

    of_key = public("pkey", "-in", "server.key", "-pubout")
    assert of_key and of_key == public("x509", "-in", "server.pem", "-noout", "-pubkey")


def test_the_labs_authority_is_its_seeds() -> None:
    plan = planned(FILE)
    found, server = specs(plan), files(plan)
    assert found["meter1"]["tls"]["ca"] == server["b/ca.pem"] == found["meter2"]["tls"]["ca"]
    assert found["meter1"]["tls"]["key"] != found["meter2"]["tls"]["key"] != server["b/server.key"]
    assert found["meter1"]["tls"]["server_name"] == "server"
    assert files(planned(FILE)) == server
    assert files(planned(FILE + "seed: 2\n"))["b/ca.pem"] != server["b/ca.pem"]
    assert "require_certificate true" in server["b/mosquitto.conf"]
    assert {tuple(s.ports) for n in plan.nodes for s in n.software} == {("tls",)}


def test_a_user_with_the_brokers_name_has_a_certificate_of_its_own() -> None:
    plan = planned(FILE.replace(MUTUAL, "user: server, tls: {mutual: true}, publish"))
    own, server = specs(plan)["meter1"]["tls"], files(plan)
    assert own["key"] != server["b/server.key"]
    serials = {x509.load_pem_x509_certificate(pem.encode()).serial_number
               for pem in (own["cert"], server["b/server.pem"])}  # fmt: skip
    assert len(serials) == 2


@pytest.mark.parametrize("name", ["server", "b.example", "10.1.0.1", "fd00::1"])
def test_a_server_is_a_host_or_an_address(name: str) -> None:
    plan = planned(FILE.replace(MUTUAL, f"tls: {{mutual: true, server_name: '{name}'}}, publish"))
    assert specs(plan)["meter1"]["tls"]["server_name"] == name


def test_what_tls_and_properties_add_is_in_the_costs() -> None:
    def longest(text: str) -> int:
        plan = planned(text)
        costs = KINDS["mqtt"].costs(plan.nodes[1].software[0], plan.flows[:1])
        return max(length for _, length in costs.packets)

    plain = longest(FILE.replace(", tls: {mutual: true}", ""))
    assert longest(FILE) == plain + 29
    more = "version: 5, tls: {mutual: true}, publish: {user_properties: {unit: kWh}, message_expiry: 9 s, "
    assert longest(FILE.replace("tls: {mutual: true}, publish: {", more)) == plain + 29 + 12 + 5


def test_without_mutual_nobody_shows_a_certificate() -> None:
    plan = planned(FILE.replace("{mutual: true}", "lab"))
    assert "key" not in specs(plan)["meter1"]["tls"]
    assert "require_certificate" not in files(plan)["b/mosquitto.conf"]


def test_files_beside_the_topology_are_in_the_plan(tmp_path: Path) -> None:
    own = Authority(b"own", "own").issue("meter")
    (tmp_path / "own.pem").write_text(own.certificate)
    (tmp_path / "own.key").write_text(own.key)
    client = (
        "tls: {ca: own.pem, cert: own.pem, key: own.key, server_name: b.example, versions: ['1.3']}, publish"
    )
    broker = "tls: {mutual: true, ca: own.pem, cert: own.pem, key: own.key}}}"
    text = FILE.replace(MUTUAL, client).replace("tls: {mutual: true}}}", broker)
    found = specs(planned(text, tmp_path))["meter1"]["tls"]
    assert found == {
        "ca": own.certificate, "cert": own.certificate, "key": own.key, "server_name": "b.example",
        "versions": ["1.3"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (", tls: {mutual: true}, publish", ", publish", f"{CLIENT}.tls", "speaks TLS only"),
        (MUTUAL, "tls: lab, publish", f"{CLIENT}.tls", "demands a certificate"),
        (MUTUAL, "tls: {key: no.pem}, publish", f"{CLIENT}.tls.key", "cannot be read"),
        ("tls: {mutual: true}}}", "tls: {ca: no.pem}}}", f"{BROKER}.tls.ca", "cannot be read"),
        (MUTUAL, "tls: {versions: ['1.1']}, publish", f"{CLIENT}.tls.versions[0]", ""),
        (MUTUAL, "tls: other, publish", f"{CLIENT}.tls", ""),
        (MUTUAL, "tls: {server_name: 'a b'}, publish", f"{CLIENT}.tls.server_name", "neither a host's name"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)


def test_a_client_with_tls_needs_a_broker_with_it() -> None:
    found = problems(FILE.replace(", tls: {mutual: true}}}}", "}}}", 1))
    assert any(f"{CLIENT}.tls: the broker of server speaks no TLS" in problem for problem in found), found


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ("cert: own.pem", "has no `key`"),
        ("ca: text.pem", "holds no certificate in PEM"),
        ("ca: empty.pem", "holds no certificate in PEM"),
        ("cert: own.pem, key: locked.key", "is encrypted, and nobody enters its passphrase"),
    ],
)
def test_files_must_fit(tmp_path: Path, keys: str, rule: str) -> None:
    (tmp_path / "own.pem").write_text(Authority(b"own", "own").certificate)
    (tmp_path / "text.pem").write_text("hello")
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "locked.key").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n")
    with pytest.raises(TopologyError) as caught:
        planned(FILE.replace("tls: {mutual: true}, publish", f"tls: {{{keys}}}, publish"), tmp_path)
    assert any(rule in str(problem) for problem in caught.value.problems)


OWN = "cert: own.pem, key: own.key"
LAB = "the lab's authority"


@pytest.mark.parametrize(
    ("broker", "client", "place", "rule"),
    [
        (OWN, "", "ca", f"shows a certificate of its own, and the client trusts {LAB} only"),
        ("", "ca: own.pem", "ca", f"shows a certificate of {LAB}, and the client trusts only its `ca`"),
        ("", OWN, "cert", f"client shows a certificate of its own, and the broker of server trusts {LAB}"),
        ("ca: own.pem", "", "cert", f"the client shows a certificate of {LAB}, and the broker of server"),
    ],
)
def test_each_end_must_be_able_to_trust_the_other(
    tmp_path: Path, broker: str, client: str, place: str, rule: str
) -> None:
    own = Authority(b"own", "own").issue("meter")
    (tmp_path / "own.pem").write_text(own.certificate)
    (tmp_path / "own.key").write_text(own.key)
    text = FILE.replace("{mutual: true}, publish", f"{{mutual: true, {client}}}, publish")
    text = text.replace("{mutual: true}}}", f"{{mutual: true, {broker}}}}}}}")
    with pytest.raises(TopologyError) as caught:
        planned(text, tmp_path)
    (problem,) = map(str, caught.value.problems)
    assert f"{CLIENT}.tls.{place}: " in problem and rule in problem


def test_a_ca_that_the_broker_would_not_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_text(Authority(b"own", "own").certificate)
    text = FILE.replace("{mutual: true}}}", "{ca: own.pem}}}").replace(MUTUAL, "tls: lab, publish")
    with pytest.raises(TopologyError, match=rf'{BROKER}\.tls\.ca: "own\.pem": is used only to admit clients'):
        planned(text, tmp_path)


def test_a_certificate_that_the_other_end_has_not_issued_is_refused(tmp_path: Path) -> None:
    # two authorities with the same name and different keys
    ours, theirs = Authority(b"1" * 8, "ours"), Authority(b"2" * 8, "ours")
    (tmp_path / "ours.pem").write_text(ours.certificate)
    (tmp_path / "theirs.pem").write_text(theirs.certificate)
    for name, authority in (("server", ours), ("client", ours), ("foreign", theirs)):
        identity = authority.issue(name, ["server"])
        (tmp_path / f"{name}.pem").write_text(identity.certificate)
        (tmp_path / f"{name}.key").write_text(identity.key)
    broker = "tls: {mutual: true, ca: ours.pem, cert: server.pem, key: server.key}"
    client = "tls: {ca: CA.pem, cert: CERT.pem, key: CERT.key}, publish"
    text = FILE.replace("tls: {mutual: true}}}", broker + "}}").replace(MUTUAL, client)

    def told(ca: str, cert: str) -> list[str]:
        own = text.replace("CA.", f"{ca}.").replace("CERT", cert).encode()
        try:
            parse(str(tmp_path / "t.yaml"), own)
        except TopologyError as error:
            return [str(problem) for problem in error.problems]
        return []

    assert told("ours", "client") == []
    assert len(told("theirs", "client")) == 1 and "is not issued by" in told("theirs", "client")[0]
    (only,) = told("ours", "foreign")
    assert f"{CLIENT}.tls.cert" in only and "`ca` that the broker of server trusts" in only
    assert "signed it" in only
