"""The error of loading: its text is place, value, rule, remedy."""


class LoadError(Exception):
    """A directory, table or capture that is not there, or cannot be read."""
