"""Tests the XML of libvirt domains against stored text and libvirt's own schema."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from vm_values import DOMAINS, FULL, TINY

from orchestrator.lab.vm.domain import NAMESPACE, Domain, render

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", DOMAINS)
def test_the_text_is_the_golden_one(name: str) -> None:
    path = GOLDEN / f"{name}.xml"
    if os.environ.get("VNET_WRITE_GOLDENS"):
        path.write_text(render(DOMAINS[name]))
    assert render(DOMAINS[name]) == path.read_text()


@pytest.mark.skipif(
    shutil.which("virt-xml-validate") is None, reason="needs libvirt-clients and libxml2-utils"
)
@pytest.mark.parametrize("name", DOMAINS)
def test_libvirts_schema_accepts_it(name: str, tmp_path: Path) -> None:
    file = tmp_path / "domain.xml"
    file.write_text(render(DOMAINS[name]))
    done = subprocess.run(["virt-xml-validate", file, "domain"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    file.write_text(render(DOMAINS[name]).replace("<memory ", "<memoryy "))
    done = subprocess.run(["virt-xml-validate", file, "domain"], capture_output=True, text=True, check=False)
    assert done.returncode != 0, "the schema refuses what is wrong"


def test_metadata_says_whose_it_is() -> None:
    node = ElementTree.fromstring(render(TINY)).find(f"metadata/{{{NAMESPACE}}}node")
    assert node is not None
    assert node.attrib == {"lab": "demo", "node": "meter1", "state": "/run/vnet/demo"}


def test_text_of_the_user_cannot_break_out() -> None:
    evil = dataclasses.replace(TINY, append='a\'/><evil/> & "b"', console_log="/x'<y>")
    tree = ElementTree.fromstring(render(evil))
    assert tree.findtext("os/cmdline") == 'a\'/><evil/> & "b"'
    assert tree.find(".//evil") is None


def test_a_passed_through_nic_stands_beside_the_taps() -> None:
    tree = ElementTree.fromstring(render(FULL))
    (source,) = tree.iterfind("devices/hostdev/source/address")
    assert source.attrib == {"domain": "0x0000", "bus": "0x01", "slot": "0x00", "function": "0x1"}
    assert [i.get("dev") for i in tree.iterfind("devices/interface/target")] == ["broker", "broker-1"]


def test_the_same_node_has_the_same_uuid_and_another_labs_another() -> None:
    def uuid(domain: Domain) -> str | None:
        return ElementTree.fromstring(render(domain)).findtext("uuid")

    assert uuid(TINY) == uuid(dataclasses.replace(TINY, memory_bytes=1 << 30))
    assert uuid(TINY) != uuid(dataclasses.replace(TINY, state="/elsewhere/demo"))
