"""`python -m orchestrator.lab`: see docs/contracts.md."""

import atexit
import gc
import sys

from orchestrator.lab.process import main

atexit.register(gc.freeze)  # who waits for this process need not wait until its memory is taken apart
sys.exit(main())
