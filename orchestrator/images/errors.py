"""Defines the exception of this package; its text states place, value, rule and remedy."""

from __future__ import annotations


class ImageError(Exception):
    """Raised for an image that is missing, broken or cannot be built here."""

    @property
    def text(self) -> str:
        return str(self)
