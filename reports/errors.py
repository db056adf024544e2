"""What can be wrong with a run directory; of its own module, since it is imported where no table is read."""

from __future__ import annotations


class RunDirectoryError(ValueError):
    """The directory is not a run directory; the text says what was looked for and where."""
