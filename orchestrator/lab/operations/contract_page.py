"""Writes the contract page of the operations from their types.

Call: `python -m orchestrator.lab.operations.contract_page`.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from orchestrator.lab.operations import machines, measuring, nodes, programs, scenario
from orchestrator.lab.operations.operation import Operation

PARTS = (nodes, programs, scenario, measuring, machines)

INTRO = """# Operations of agents

Made from the types in `orchestrator/lab/operations/` (`python -m orchestrator.lab.operations.contract_page`).
[Launcher](launcher.md) describes the socket and its events. `?`: may be left out.
"""

WIDTH = 150
_WORDS = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    Any: "anything",
    type(None): "null",
}


def page() -> str:
    """The page's Markdown: a section a module; its operations, then the shapes that they name."""
    return INTRO + "".join(_part(module) for module in PARTS)


def _part(module: types.ModuleType) -> str:
    own = [kind for kind in vars(module).values() if getattr(kind, "__module__", None) == module.__name__]
    asked = [kind for kind in own if isinstance(kind, type) and issubclass(kind, Operation)]
    answers = [*map(_answer, asked)]
    shapes = [kind for kind in own if is_typeddict(kind) and kind not in answers]
    title = (module.__doc__ or "").rstrip(".")
    return f"\n## {title}\n\n" + "\n".join([*map(_operation, asked), *map(_shape, shapes)])


def _operation(kind: Any) -> str:
    action = getattr(kind, "action", None)
    name = f"`{kind.op}`" + (f", `action` `{action}`" if action else "")
    answered = [f"answers {line}" for line in _fields(_answer(kind))]
    return _entry(name, kind, [*_fields(kind, skip=("op", "action")), *answered])


def _answer(kind: Any) -> Any:
    (answer,) = get_args(kind.__orig_bases__[0])
    return answer


def _shape(kind: Any) -> str:
    return _entry(kind.__name__, kind, _fields(kind))


def _entry(name: str, kind: Any, fields: Iterable[str]) -> str:
    text = f"**{name}** {_text(kind)}".rstrip()
    return "\n".join(_item(text, "") + [line for field in fields for line in _item(field, "  ")]) + "\n"


def _item(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}- ", subsequent_indent=f"{indent}  ")


def _text(kind: type) -> str:
    """Its docstring as one paragraph; nothing where a dictionary's own would be meant."""
    return " ".join((kind.__dict__.get("__doc__") or "").split())


def _fields(kind: Any, skip: Sequence[str] = ()) -> Iterator[str]:
    """A line a field: its name, its type in words, the comment that stands behind it."""
    said = dict(re.findall(r"^    (\w+): .*?  # (.+)$", _source(kind), re.MULTILINE))
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if name not in skip:
            left_out = "?" if get_origin(hint) is NotRequired or name in vars(kind) else ""
            yield f"`{name}`{left_out} ({_type(hint)})" + (f": {said[name]}" if name in said else "")


def _source(kind: Any) -> str:
    """The text of a class; none of a dictionary that a call made."""
    whole = inspect.getsource(sys.modules[kind.__module__])
    return inspect.getsource(kind) if f"class {kind.__name__}(" in whole else ""


def _type(hint: Any) -> str:
    origin, of = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _type(of[0])
    if origin in (Union, types.UnionType):
        return " or ".join(map(_type, of))
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in of)
    if origin is tuple:
        return f"[{', '.join(map(_type, of))}]"
    if origin in (list, Sequence):
        return f"list of {_type(of[0])}"
    if origin in (dict, Mapping):
        return f"object of {_type(of[1])}"
    return _WORDS.get(hint) or f"**{hint.__name__}**"


if __name__ == "__main__":
    sys.stdout.write(page())
