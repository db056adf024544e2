"""Defines the error of unreadable run directories, in its own module so that importers need not load the
table readers.
"""

from __future__ import annotations


class RunDirectoryError(ValueError):
    """Raised if a directory is not a readable run directory or campaign; the text has what is missing and
    where.
    """
