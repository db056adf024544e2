"""The exit statuses of `vnet`, and the one exception that carries a text and a status to the user."""

from __future__ import annotations

DONE = 0
FAILED = 1  # the work failed: lab, run or tool
USAGE = 2
REFUSED = 3  # the topology or its parameters; nothing was made
UNABLE = 4  # this machine cannot do it
SUSPECT = 5  # ended, but suspect, under --strict
UNKNOWN = 6  # the atlas: nothing near enough was measured
UNMET = 7  # an expectation that the file states fails
UNTOLD = 8  # a verdict is `cannot tell`, under --strict
INTERRUPTED = 130


class CliError(Exception):
    """An expected failure: its text goes to stderr as it stands, its status to the shell."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
