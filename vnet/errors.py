"""The error that reading a run or campaign raises; its text has the place, the value, the rule and the
remedy.
"""


class LoadError(Exception):
    """A directory, table or capture is missing or cannot be read."""
