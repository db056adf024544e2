"""Defines the error that reading a run or campaign raises."""


class LoadError(Exception):
    """Raised if a directory, table or capture is missing or cannot be read; the text has the place, the
    value, the rule and the remedy.
    """
