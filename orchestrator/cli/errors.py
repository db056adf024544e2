"""Defines the exit statuses of `vnet`, and the exception that carries a text and a status to the user."""

from __future__ import annotations

DONE = 0
FAILED = 1  # a lab, run or tool failed
USAGE = 2
REFUSED = 3  # the topology or its parameters are wrong; nothing was made
UNABLE = 4  # this machine cannot run the lab or build the image
SUSPECT = 5  # complete but suspect, under --strict
UNKNOWN = 6  # the atlas has no measurement near enough
UNMET = 7  # an expectation fails
UNTOLD = 8  # an expectation is `cannot tell`; under --strict also a link or guarantee
INTERRUPTED = 130


class CliError(Exception):
    """An expected failure: `vnet` prints its text on standard error and exits with its status."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
