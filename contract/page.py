"""Writes pages of docs/contracts from the types of the contract: plan, manifest, tables.

Call: `python -m contract.page`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from . import manifest
from .plan import expectations, flows, hosts, network, plan, queues, software, tolerance, traces
from .tables import TABLES, Column, Table

PAGES = Path(__file__).resolve().parents[1] / "docs" / "contracts"
AGAIN = "python -m contract.page"
WIDTH = 150
_WORDS = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    Any: "anything",
    type(None): "null",
}

PLAN = f"""# The plan: plan.json

Made from the types in `contract/plan/` (`{AGAIN}`). `?`: may be left out.
Times are nanoseconds, rates bits per second, sizes bytes, shares in [0, 1]; delays are one way. A plan of
another `format` is refused, with the version that made the run.
"""

MANIFEST = f"""# The manifest: manifest.json

Made from the types in `contract/manifest.py` (`{AGAIN}`); its content at each stage:
[run directory](run-directory.md#manifestjson). Any key may be absent in a run of an earlier version.
"""

TABLES_INTRO = f"""# Tables of a run directory

Written by reduction (`capture.reduce`), Parquet; made from `contract/tables.py` (`{AGAIN}`).
`?`: may be null. Tables of capture points: [packets](packets.md).

`summary.json`: every headline figure, as [{{name, subject, value, unit, n, low, high, method, limits}}]. The
subject has its own columns, null if they do not apply: `nodes` (set of nodes by function), `machine`,
`traffic_class`, `guarantee`, `capture`, `bin`, `stream`, `frame_bytes` and others (`Of` in
`reports/metrics/metric.py`). `limits`: for a search, the cause that kept its result from being higher.

Written by reports: `report/index.html`, `report/figures/*.svg|vl.json`, `report/tables/*.csv`.
"""


def pages() -> dict[str, str]:
    """Returns the Markdown of each page, by the page's name."""
    parts = (plan, network, flows, software, queues, traces, hosts, tolerance, expectations)
    made = [kind for part in parts for kind in vars(part).values() if _own(kind, part)]
    return {
        "plan.md": PLAN + "\n" + "\n".join(entry(kind.__name__, kind, fields(kind)) for kind in made),
        "manifest.md": MANIFEST
        + "\n"
        + "\n".join(
            entry(kind.__name__, kind, fields(kind))
            for kind in (manifest.Manifest, manifest.Kernel, manifest.Warned)
        ),
        "tables.md": TABLES_INTRO + "".join(map(_table, TABLES.values())),
    }


def _own(kind: Any, part: types.ModuleType) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == part.__name__


def _table(table: Table) -> str:
    lines = [
        f"\n## {table.name}.parquet\n", f"A row: {table.rows}.\n", "| column | type | unit | what |",
    ]  # fmt: skip
    notes = f"\n{table.notes}\n" if table.notes else ""
    return "\n".join([*lines, "|---|---|---|---|", *map(_column, table.columns)]) + "\n" + notes


def _column(column: Column) -> str:
    kind = f"{column.kind}?" if column.null else column.kind
    return f"| `{column.name}` | {kind} | {column.unit} | {column.meaning} |"


def entry(name: str, kind: Any, lines: Iterable[str]) -> str:
    """Returns a Markdown list entry: the name, the docstring of `kind`, and an indented item for each line in
    `lines`.
    """
    text = f"**{name}** {_text(kind)}".rstrip()
    return "\n".join(_item(text, "") + [line for field in lines for line in _item(field, "  ")]) + "\n"


def _item(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}- ", subsequent_indent=f"{indent}  ")


def _text(kind: type) -> str:
    """Returns the docstring of a class as one paragraph; "" for one that Python generated."""
    said = " ".join((kind.__dict__.get("__doc__") or "").split())
    # `dataclass` made this docstring from the fields
    return "" if said.startswith(f"{kind.__name__}(") else said


def fields(kind: Any, skip: Sequence[str] = ()) -> Iterator[str]:
    """Yields a line for each field of a class: its name, "?" if it may be left out, its type in words, and
    the comment behind it in the source. Leaves out the names in `skip` and class variables.
    """
    said = dict(re.findall(r"^    (\w+): .*?  # (.+)$", _source(kind), re.MULTILINE))
    made = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    default = {f.name for f in made if not f.default is f.default_factory is dataclasses.MISSING}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if name not in skip and get_origin(hint) is not ClassVar:
            left_out = "?" if get_origin(hint) is NotRequired or name in default else ""
            yield f"`{name}`{left_out} ({_type(hint)})" + (f": {said[name]}" if name in said else "")


def _source(kind: Any) -> str:
    """Returns the source text of a class; "" for a TypedDict that was made by a call of TypedDict."""
    whole = inspect.getsource(sys.modules[kind.__module__])
    return inspect.getsource(kind) if re.search(rf"^class {kind.__name__}[(:]", whole, re.MULTILINE) else ""


def _type(hint: Any) -> str:
    origin, of = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _type(of[0])
    if origin in (Union, types.UnionType):
        return " or ".join(map(_type, of))
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in of)
    if origin is tuple and of[-1] is Ellipsis:
        return f"list of {_type(of[0])}"
    if origin is tuple:
        return f"[{', '.join(map(_type, of))}]"
    if origin in (list, Sequence):
        return f"list of {_type(of[0])}"
    if origin in (dict, Mapping):
        return f"object of {_type(of[1])}"
    return _WORDS.get(hint) or f"**{hint.__name__}**"


if __name__ == "__main__":
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
