"""Lines on what of the script does not carry over, each with the line of the script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

LEFT: list[str] = []
CHANGED: list[str] = []
MOST = 2000  # lines: a loop that asks for nothing known fills no memory
SCRIPT = [""]  # the script's path, set before it runs


def here() -> int:
    """The line of the script that calls; 0 where none does."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == SCRIPT[0]:
            return frame.f_lineno
        if frame.f_back is None:
            break
        frame = frame.f_back
    return 0


def leave(what: str) -> None:
    """Report what does not carry over."""
    _add(LEFT, what)


def change(what: str) -> None:
    """Report what is other here."""
    _add(CHANGED, what)


def _add(lines: list[str], what: str) -> None:
    line = here()
    text = f"line {line}: {what}" if line else what
    if text not in lines and len(lines) < MOST:
        lines.append(text)


def call_text(name: str, words: tuple[Any, ...], keys: dict[str, Any]) -> str:
    """A call as its line shows it."""
    shown = [_short(word) for word in words] + [f"{key}={_short(value)}" for key, value in keys.items()]
    text = f"{name}({', '.join(shown)})"
    return text if len(text) <= 100 else f"{text[:97]}..."


def _short(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float | bool | None) else str(value)


def script_directory() -> Path:
    """Where the script lies."""
    return Path(SCRIPT[0]).parent
