"""Defines the settings that all started programs share, and loads the templates of their configurations."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

Restart = Annotated[
    Literal["never", "on-failure", "always"],
    Field(description="Whether to start the program again when it ends by itself."),
]
StopSignal = Annotated[
    Literal["SIGTERM", "SIGINT", "SIGKILL", "SIGHUP"],
    Field(description="Signal by which `stop` ends the program."),
]


READY = "vnet: ready"  # vNET's programs print this line when they are ready
# a module beside the programs on nodes that record their messages
ACCOUNT = Path(__file__).with_name("account.py")


@cache
def template(path: Path) -> Any:
    """Loads a jinja2 template of vNET, which fails on unknown variables; imports jinja2 only on the first
    call.
    """
    import jinja2

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(path.read_text())
