"""Prints a Debian copyright file (DEP 5): ours, and the licence that each included Python package states.

python3 images/copyright.py SITE_PACKAGES
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from sbom import crates, python_packages

HEAD = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: vnet

Files: *
Copyright: the authors of vNET
License: Apache-2.0
Comment:
 /opt/vnet also holds packages of others, each with its own licence, which stands in full in its directory
 NAME-VERSION.dist-info there. Agent and reducer are linked with crates of others; Cargo.lock pins those that
 are named below.
"""
TAIL = """
License: Apache-2.0
 On Debian systems the full text of the licence is in /usr/share/common-licenses/Apache-2.0.
"""


def main() -> None:
    site, project = Path(sys.argv[1]), Path(__file__).resolve().parents[1]
    lines = [f" {one['name']} {one['version']}: {_licence(one)}" for one in python_packages(site)]
    pinned = [f" {one['name']} {one['version']} (crate)" for one in crates(project / "Cargo.lock")]
    print(HEAD + " .\n" + "\n".join([*lines, *pinned]) + "\n" + TAIL, end="")


def _licence(one: dict[str, object]) -> str:
    found = one.get("licenses")
    return str(found[0]["license"]["name"]) if isinstance(found, list) else "see its directory"


if __name__ == "__main__":
    main()
