"""Defines the exit statuses of `vnet`, and the exceptions whose text and status go to the user."""

from __future__ import annotations

DONE = 0
FAILED = 1  # a lab, run or tool failed
USAGE = 2
REFUSED = 3  # the topology or its parameters are wrong, and nothing was made
UNABLE = 4  # this machine cannot run the lab or build the image
SUSPECT = 5  # under --strict: the run is complete but suspect
UNKNOWN = 6  # the atlas has no measurement that is near enough
UNMET = 7  # an expectation fails
UNTOLD = 8  # an expectation is `cannot tell`; under --strict, also a link or a guarantee
INTERRUPTED = 130


class CliError(Exception):
    """An expected failure: `vnet` prints its text on standard error and exits with its status."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


# Name of a class of exceptions whose text is for the user -> exit status. Names, so that no module of these
# classes is imported.
EXPECTED = {
    "contract.rundir.UnreadableError": FAILED,
    "orchestrator.language.problem.TopologyError": REFUSED,
    "orchestrator.reservations.model.ReservationError": UNABLE,
    "orchestrator.kernel.protocol.NoKernel": UNABLE,
    "orchestrator.kernel.protocol.KernelError": FAILED,
    "orchestrator.lab.errors.LabError": FAILED,
    "orchestrator.run.directories.RunError": FAILED,
    "orchestrator.run.teardown.TeardownError": FAILED,
    "orchestrator.calibrate.store.CalibrationError": FAILED,
    "capture.errors.CaptureError": FAILED,
    "reports.errors.RunDirectoryError": FAILED,
}


def expected(error: BaseException) -> CliError | None:
    """Returns the exception as a CliError. A CliError stays unchanged; an exception of a class in EXPECTED,
    or of a subclass, gets the status there. Returns None for other exceptions.
    """
    if isinstance(error, CliError):
        return error
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    status = next((EXPECTED[name] for name in names if name in EXPECTED), None)
    return None if status is None else CliError(str(error), status)
