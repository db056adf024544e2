"""The one exception of this package: place, value, rule, remedy in its text."""

from __future__ import annotations


class ImageError(Exception):
    """An image is missing, broken or cannot be built here."""

    @property
    def text(self) -> str:
        return str(self)
