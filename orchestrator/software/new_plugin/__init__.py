"""Makes a package of a plug-in with a kind of software, from the templates beside this module."""

from __future__ import annotations

import re
from pathlib import Path

from ...language.scalars import LONGEST_NAME, NAME_PATTERN
from ..programs import template
from ..registry import MODULES

HERE = Path(__file__).parent


class PluginNameError(ValueError):
    """Raised if the name of a plug-in cannot be used; the text has rule and remedy."""


def package_of(name: str) -> str:
    """Returns the name of the package, and of its directory, for a kind of this name."""
    return f"vnet-{name}"


def package_files(name: str) -> dict[str, str]:
    """Returns the files of the package as text, by their paths below its directory; PluginNameError for a
    name that no kind of software can have.
    """
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > LONGEST_NAME:
        rule = f"is no name: small letters, digits and hyphens, at most {LONGEST_NAME}"
        raise PluginNameError(f"{rule}; write for example line-echo")
    if name in {"testbed", *MODULES, *(module.key for module in MODULES.values())}:
        raise PluginNameError("is taken: vNET has a kind, key or package of this name; choose another one")
    module = package_of(name).replace("-", "_")
    values = {
        "name": name,
        "package": package_of(name),
        "module": module,
        # a name that is never a reserved word of Python
        "model": "".join(part.capitalize() for part in name.split("-")) + "File",
    }
    places = {
        "pyproject.toml": "pyproject.toml.j2",
        "README.md": "README.md.j2",
        f"{module}/__init__.py": "package.py.j2",
        f"{module}/kind.py": "kind.py.j2",
        f"{module}/service.py": "service.py.j2",
        "topology.yaml": "topology.yaml.j2",
        "tests/test_kind.py": "test_kind.py.j2",
    }
    return {path: template(HERE / source).render(**values) for path, source in places.items()}
