"""Holds the helpers with which a program of one's own accounts for its messages (docs/accounting.md): one
file for each language, without dependencies, to copy beside the program.
"""

from __future__ import annotations

from pathlib import Path

FILES = {
    "c": "vnet_accounting.h",
    "go": "vnet_accounting.go",
    "java": "VnetAccounting.java",
    "javascript": "vnet_accounting.mjs",
    "python": "vnet_accounting.py",
    "rust": "vnet_accounting.rs",
}


def helper(language: str) -> Path:
    """Returns the path of the helper for a language of FILES; KeyError for another language."""
    return Path(__file__).parent / FILES[language]
