"""Runs the lab process: `python -m orchestrator.lab` (docs/contracts.md)."""

import atexit
import gc
import sys

try:
    from orchestrator.lab import start_arguments
    from orchestrator.lab.process import main
except (OSError, MemoryError) as error:  # no descriptor, no memory
    sys.exit(f"the lab process cannot be loaded: {error or type(error).__name__}")

atexit.register(gc.freeze)  # exits without a last collection, for which the parent would wait
argv = start_arguments.take() if sys.argv[1:] == [start_arguments.WAIT] else sys.argv[1:]
sys.exit(0 if argv is None else main(argv))
