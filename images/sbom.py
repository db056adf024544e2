"""Writes the bill of materials of a wheel, a Debian package or an image as CycloneDX 1.6 (JSON).

    python3 images/sbom.py wheel FILE.whl
    python3 images/sbom.py deb FILE.deb ROOT
    python3 images/sbom.py image FILE.oci.tar ROOT

ROOT is the directory tree that the file was made of. The result is FILE.cdx.json. The same inputs give the
same bytes: the time is SOURCE_DATE_EPOCH, the serial number comes from the contents. Standard library only.
"""

from __future__ import annotations

import email
import hashlib
import json
import os
import re
import sys
import tomllib
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
Component = dict[str, Any]


def component(
    kind: str, name: str, version: str, purl: str, licence: str = "", sha256: str = ""
) -> Component:
    """Returns one entry of the list; `purl` (package URL) is also its reference."""
    found: Component = {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence:
        found["licenses"] = [{"license": {"name": licence}}]
    if sha256:
        found["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return found


def crates(lock: Path) -> Iterator[Component]:
    """Yields the crates that Cargo.lock pins: all that agent and reducer can contain, with those of their
    builds.
    """
    for one in tomllib.loads(lock.read_text())["package"]:
        if "source" not in one:
            continue  # the workspace's own
        name, version = one["name"], one["version"]
        yield component(
            "library", name, version, f"pkg:cargo/{name}@{version}", sha256=one.get("checksum", "")
        )


def scripts(vendored: Path) -> Iterator[Component]:
    """Yields the scripts of others that the live page contains, from the table in the file next to them."""
    for name, version in re.findall(r"\| (@[\w/-]+) ([\d.]+), .*?\|", vendored.read_text()):
        yield component("library", name, version, f"pkg:npm/{name.replace('@', '%40')}@{version}")


def licence_of(about: Message) -> str:
    """Returns the licence that a Python package names: an expression, its classifiers or the first line of a
    text.
    """
    if expression := about.get("License-Expression"):
        return str(expression)
    named = [text.rpartition(" :: ")[2] for text in about.get_all("Classifier", []) if "License ::" in text]
    return ", ".join(named) or str(about.get("License", "")).split("\n")[0][:100]


def python_packages(site: Path) -> Iterator[Component]:
    """Yields the packages that are installed in a site-packages directory, without ours."""
    for metadata in sorted(site.glob("*.dist-info/METADATA")):
        about = email.message_from_string(metadata.read_text(errors="replace"))
        name, version = str(about["Name"]).lower().replace("_", "-"), str(about["Version"])
        if name != "vnet-testbed":
            yield component("library", name, version, f"pkg:pypi/{name}@{version}", licence_of(about))


def required(wheel: zipfile.ZipFile) -> Iterator[Component]:
    """Yields the packages that the wheel requires, in the versions that requirements.lock pins and the tests
    use.
    """
    pins = dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", (PROJECT / "requirements.lock").read_text(), re.M))
    metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    about = email.message_from_bytes(wheel.read(metadata))
    for text in about.get_all("Requires-Dist", []):
        name = re.split(r"[ <>=!~;\[]", text)[0].lower().replace("_", "-")
        extra = re.search(r"extra == ['\"](\w+)['\"]", text)
        if name in pins and (extra is None or extra[1] in ("engines", "vm")):
            found = component("library", name, pins[name], f"pkg:pypi/{name}@{pins[name]}")
            found["scope"] = "optional" if extra else "required"
            yield found


def debian_packages(root: Path) -> Iterator[Component]:
    """Yields the packages that dpkg has installed in a tree, without ours."""
    for paragraph in (root / "var/lib/dpkg/status").read_text().split("\n\n"):
        about = email.message_from_string(paragraph)
        if "install ok installed" not in str(about["Status"]) or about["Package"] == "vnet":
            continue
        name, version, machine = (str(about[key]) for key in ("Package", "Version", "Architecture"))
        yield component("library", name, version, f"pkg:deb/debian/{name}@{version}?arch={machine}")


def in_package(root: Path) -> Iterator[Component]:
    for site in sorted(root.glob("opt/vnet/lib/python3*/site-packages")):
        yield from python_packages(site)


def document(file: Path, subject: Component, parts: Iterable[Component]) -> dict[str, Any]:
    by_reference = {one["bom-ref"]: one for one in parts}
    components = [by_reference[reference] for reference in sorted(by_reference)]
    subject["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}]
    contents = json.dumps([subject, components], sort_keys=True)
    made = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, contents)}",
        "version": 1,
        "metadata": {"timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": subject},
        "components": components,
        "dependencies": [{"ref": subject["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]}],
    }


def bill(kind: str, file: Path, root: Path | None) -> dict[str, Any]:
    """Returns the document for a wheel, or for a package or image that was built from the tree `root`."""
    version = re.split("[_-]", file.name.removeprefix("vnet_testbed-").removeprefix("vnet"))
    number = next(part for part in version if part[:1].isdigit()).removesuffix(".oci.tar")
    parts = [
        *crates(PROJECT / "Cargo.lock"),
        *scripts(PROJECT / "orchestrator/cli/page/static/vendor/README.md"),
    ]
    if kind == "wheel":
        with zipfile.ZipFile(file) as wheel:
            parts += required(wheel)
        subject = component("application", "vnet-testbed", number, f"pkg:pypi/vnet-testbed@{number}")
    elif root is not None and kind == "deb":
        parts += in_package(root)
        subject = component("application", "vnet", number, f"pkg:deb/vnet@{number}")
    elif root is not None and kind == "image":
        parts += [*in_package(root), *debian_packages(root)]
        subject = component("container", "vnet", number, f"pkg:oci/vnet@{number}")
    else:
        raise SystemExit(f"sbom.py: {kind}: is not wheel, deb ROOT or image ROOT")
    return document(file, subject, parts)


def main() -> None:
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    file = Path(sys.argv[2])
    made = bill(sys.argv[1], file, Path(sys.argv[3]) if len(sys.argv) == 4 else None)
    target = file.with_name(file.name + ".cdx.json")
    target.write_text(json.dumps(made, indent=1) + "\n")
    print(f"{target}: {len(made['components'])} components")


if __name__ == "__main__":
    main()
