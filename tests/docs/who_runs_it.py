"""Lists the printed lines that no test runs as printed, with the reason: those of `vnet` by a pattern, those
of make by the target.

All others run (test_printed_commands.py). A line in neither place fails a test, and so does an entry here
that no line needs any more.
"""

from __future__ import annotations

import re

HOURS = "hours: make papers, make examples; tests/topology/test_shipped.py checks each of its points"
THEIRS = "a file of another program, which the reader has: tests/exchange imports such files"
VMS = "virtual machines, minutes without KVM: tests/vm starts them from the same topologies"
HOSTS = "other hosts: tests/multi_host and tests/remote make such hosts"
NICS = "network cards: make test-hil"
ENGINES = "FILE stands for a file: tests/campaign, tests/virtual and tests/multi_host run on each engine"
JAVA = "Java middleware: make middleware; tests/cli/test_real_middleware.py"

# A pattern is searched in a line without `vnet`; the first that fits is the reason.
NOT_RUN: dict[str, str] = {
    r"^campaign run FILE": ENGINES,
    r"--hosts |ssh://": HOSTS,
    r"nics=|port_a=|builtin-nic": NICS,
    r"^import ": THEIRS,
    r"^images import ": "an archive that a line above has made: tests/kernel/test_kernel_carried.py",
    r"^plan .*clients=298": "30 GB of memory: tests/plan/test_fits_the_machine.py",
    r"mqtt-vm|^images build|nodes=vm": VMS,
    r"^campaign run topologies/(papers/|mqtt-(qos-campaign|conformance)|nic-qualification|dumbbell)": HOURS,
    r"^campaign run topologies/adaptive": "20 minutes: tests/virtual/test_adaptive_runs.py runs its settings",
    r"^campaign run topologies/broker-settings": "minutes: tests/virtual/test_broker_settings.py",
    r"papers/middleware\.yaml|^run topologies/middleware\.yaml": JAVA,
    r"^atlas run": "1,152 runs: make atlas; tests/virtual/test_atlas.py makes some",
    r"^reserve ": "kept for all accounts of the machine: tests/reservations has a directory of its own",
    r"--allow-outside ": "a service of the reader's outside the lab: tests/lab/test_outside.py",
    r"^serve$": "serves until it is stopped: tests/cli/test_page_browser.py",
    r"^compare ": "runs of the reader's: tests/reports/test_compare_runs.py, and a sweep in tests/virtual",
    r"^why results/": "a run of the reader's: tests/cli/test_why_command.py",
    r"^hunt topologies/": "minutes, with a broker that pip installs: tests/virtual/test_hunt_runs.py",
    r"^verify results/": "a run of the reader's: tests/virtual/test_verify.py",
    r"^(up mylab\.yaml|inventory mylab)": "a lab of the reader's: tests/ansible",
    r"^down pair$": "the test of `up` types it",
    r"^new plugin |^plugins$|vnet-line-echo/": "a package made and installed: tests/cli/test_plugins.py",
    r"^new accounting ": "writes a file beside the reader's program: tests/cli/test_first_steps.py",
    r"^new$": "asks its reader: tests/cli/test_first_steps.py",
    r"^doctor$": "judges the machine, and fails where something is missing: tests/doctor",
    r"^calibrate": "two minutes of an idle machine: tests/calibrate",
    r"results/control$": "runs of the reader's: tests/cli/test_control_run.py",
    r"^run mine\.yaml": "test_tutorial.py runs pages of services, bench/first_page.py this line",
    r"^run meters\.yaml": "test_readme.py runs it, with README's file",
}

# Targets of make in printed lines, and what runs them.
MADE = {
    "setup": ".ci/run",
    "kernel": ".ci/run",
    "demo": ".ci/run",
    "test": ".ci/run, and this test is a part of it",
    "middleware": "an hour of downloads and Java: by hand, before tests/cli/test_real_middleware.py",
    "release": "minutes: make reproducible compares two builds; the image as for container",
    "papers": "hours, by hand: the published examples come from it",
    "wheel": "minutes, with the package: make test-fresh",
    "deb": "minutes: make test-fresh installs and uses it",
    "container": "minutes: make test-container loads and uses it",
}


def why_not(line: str) -> str | None:
    """Returns the reason why no test runs the line; None if one must."""
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, line)), None)
