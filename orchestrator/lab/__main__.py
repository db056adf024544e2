"""Runs the lab process: `python -m orchestrator.lab` (docs/contracts.md)."""

import atexit
import gc
import sys

try:
    from orchestrator.lab import start_arguments
    from orchestrator.lab.process import main
except (OSError, MemoryError) as error:  # no file descriptor or no memory is left
    sys.exit(f"the lab process cannot be loaded: {error or type(error).__name__}")

atexit.register(gc.freeze)  # skips the garbage collection at exit, for which the parent process would wait
argv = start_arguments.take() if sys.argv[1:] == [start_arguments.WAIT] else sys.argv[1:]
sys.exit(0 if argv is None else main(argv))
