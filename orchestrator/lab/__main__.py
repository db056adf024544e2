"""`python -m orchestrator.lab`: see docs/contracts.md."""

import sys

from orchestrator.lab.process import main

sys.exit(main())
