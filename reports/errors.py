"""Errors of run directories, in a module of their own, because modules that read no tables import it."""

from __future__ import annotations


class RunDirectoryError(ValueError):
    """The directory is not a run directory; the text says what was looked for and where."""
