"""Writes the contract page of the operations from their types.

Run it with `python -m orchestrator.lab.operations.contract_page`.
"""

from __future__ import annotations

import sys
import types
from typing import Any, get_args, is_typeddict

from contract.page import entry, fields
from orchestrator.lab.operations import machines, measuring, nodes, programs, scenario
from orchestrator.lab.operations.operation import Operation

PARTS = (nodes, programs, scenario, measuring, machines)

INTRO = """# Operations of agents

Made from the types in `orchestrator/lab/operations/` (`python -m orchestrator.lab.operations.contract_page`).
[Launcher](launcher.md) describes the socket and its events. `?`: may be left out.
"""


def page() -> str:
    """Returns the page as Markdown: an introduction, then a section for each module with its operations and
    the other dictionaries that they use.
    """
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
    answered = [f"answers {line}" for line in fields(_answer(kind))]
    return entry(name, kind, [*fields(kind, skip=("op", "action")), *answered])


def _answer(kind: Any) -> Any:
    (answer,) = get_args(kind.__orig_bases__[0])
    return answer


def _shape(kind: Any) -> str:
    return entry(kind.__name__, kind, fields(kind))


if __name__ == "__main__":
    sys.stdout.write(page())
