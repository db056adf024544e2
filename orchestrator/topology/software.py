"""What nodes run, as the file says it: one of the kinds of software."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, Tag

from ..language.scalars import Base
from ..software.registry import KINDS

KEYS = list(dict.fromkeys(kind.key for kind in KINDS.values()))


def form(tag: str) -> type[Base]:
    """The model that a tag in an error's location stands for."""
    return KINDS[tag[1:-1]].model


def _tag(value: Any) -> str | None:
    """The tag of the kind that a value is of; of several with one key the one that the value names."""
    if isinstance(value, Base):
        return next((f"<{name}>" for name, kind in KINDS.items() if type(value) is kind.model), None)
    keys = [key for key in KEYS if isinstance(value, dict) and key in value]
    if len(keys) != 1:
        return None
    names = [name for name, kind in KINDS.items() if kind.key == keys[0]]
    named = str(value[keys[0]])
    return f"<{named if named in names else names[0]}>"


_LISTED = f"{', '.join(KEYS[:-1])} and {KEYS[-1]}"
_EXAMPLES = " or ".join(f'"{kind.example}"' for kind in KINDS.values() if not kind.in_agent)

# The tags stand in error locations; the angle brackets tell them from keys of the file.
if TYPE_CHECKING:
    Software = Base
else:
    Software = Annotated[
        Union[tuple(Annotated[kind.model, Tag(f"<{name}>")] for name, kind in KINDS.items())],  # noqa: UP007
        Discriminator(
            _tag,
            custom_error_type="rule",
            custom_error_message=f"software needs exactly one of {_LISTED}",
            custom_error_context={
                "rule": f"software has exactly one of the keys {_LISTED}",
                "remedy": f"write for example {_EXAMPLES}",
            },
        ),
    ]
