"""Tests the software bills of materials (SBOM): they list a release's contents, and have the same bytes each
time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
METADATA = """\
Metadata-Version: 2.4
Name: vnet-testbed
Version: 9.9
Requires-Dist: polars>=1.9
Requires-Dist: libvirt-python>=9.0; extra == 'vm'
Requires-Dist: pytest>=8; extra == 'dev'
"""


def bill(file: Path, *words: str) -> dict[str, Any]:
    argv = [sys.executable, str(ROOT / "images/sbom.py"), words[0], str(file), *words[1:]]
    subprocess.run(argv, check=True, capture_output=True, env={"SOURCE_DATE_EPOCH": "86400"})
    made: dict[str, Any] = json.loads(file.with_name(f"{file.name}.cdx.json").read_text())
    return made


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "vnet_testbed-9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("vnet_testbed-9.9.dist-info/METADATA", METADATA)
    return path


def pinned(lock: str, pattern: str) -> dict[str, str]:
    return dict(re.findall(pattern, (ROOT / lock).read_text(), re.M))


def test_the_wheels_bill_names_what_it_asks_for_and_every_crate(wheel: Path) -> None:
    made = bill(wheel, "wheel")
    found = {one["purl"]: one for one in made["components"]}
    pins = pinned("requirements.lock", r"^([\w-]+)==([^\s\\]+)")
    assert found[f"pkg:pypi/polars@{pins['polars']}"]["scope"] == "required"
    assert found[f"pkg:pypi/libvirt-python@{pins['libvirt-python']}"]["scope"] == "optional"
    assert not [purl for purl in found if "pytest" in purl]
    crates = pinned("Cargo.lock", r'^name = "([^"]+)"\nversion = "([^"]+)"\nsource')
    assert len(crates) > 50
    for name in crates:
        assert any(purl.startswith(f"pkg:cargo/{name}@") for purl in found), name
    assert all(one["hashes"] for purl, one in found.items() if purl.startswith("pkg:cargo/"))
    assert [purl for purl in found if purl.startswith("pkg:npm/%40xterm/xterm@")]


def test_the_form_is_cyclonedx_and_the_bytes_are_the_same_twice(wheel: Path) -> None:
    made = bill(wheel, "wheel")
    before = wheel.with_name(f"{wheel.name}.cdx.json").read_bytes()
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"])
    assert made["metadata"]["timestamp"] == "1970-01-02T00:00:00Z"
    references = [one["bom-ref"] for one in made["components"]]
    assert len(references) == len(set(references)) and made["dependencies"][0]["dependsOn"] == references
    bill(wheel, "wheel")
    assert wheel.with_name(f"{wheel.name}.cdx.json").read_bytes() == before


def test_a_package_and_an_image_name_what_their_trees_hold(tmp_path: Path) -> None:
    about = tmp_path / "root/opt/vnet/lib/python3.11/site-packages/foreign-1.0.dist-info/METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Name: Foreign\nVersion: 1.0\nLicense-Expression: MIT\n")
    status = tmp_path / "root/var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    stanza = "Package: {}\nStatus: {} ok {}\nVersion: 1:2-3\nArchitecture: amd64\n\n"
    status.write_text(
        stanza.format("libc6", "install", "installed") + stanza.format("gone", "deinstall", "config-files")
    )
    for name in ("vnet_9.9_amd64.deb", "vnet-9.9.oci.tar"):
        (tmp_path / name).write_text("contents")
    deb = bill(tmp_path / "vnet_9.9_amd64.deb", "deb", str(tmp_path / "root"))
    image = bill(tmp_path / "vnet-9.9.oci.tar", "image", str(tmp_path / "root"))
    foreign = next(one for one in deb["components"] if one["purl"] == "pkg:pypi/foreign@1.0")
    assert foreign["licenses"] == [{"license": {"name": "MIT"}}]
    assert {one["purl"] for one in image["components"]} - {one["purl"] for one in deb["components"]} == {
        "pkg:deb/debian/libc6@1:2-3?arch=amd64"
    }
    assert (deb["metadata"]["component"]["version"], image["metadata"]["component"]["version"]) == (
        "9.9",
        "9.9",
    )
