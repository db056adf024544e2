"""Orders test files that run side by side, as a pytest plugin, so that the longest begin first.

Otherwise one process would still run a long file when the others have finished.
"""

from __future__ import annotations

import pytest

# Paths below tests/ of the longest files, in all parts of `make test` that run files side by side.
LONGEST = (
    "scenarios/test_scenarios_in_a_guest.py",
    "ansible/test_ansible_playbooks.py",
    "vm/test_vm_labs.py",
    "vm/test_vm_rearming.py",
    "remote/test_remote_labs.py",
    "multi_host/test_multi_host.py",
    "security/test_escapes.py",
    "kernel/test_virtual_rootless.py",
    "vm/test_vm_routers.py",
    "vm/test_vm_operations.py",
    "vm/test_vm_campaign.py",
    "vnet/test_in_a_container.py",
    "vm/test_vm_frames.py",
    "ansible/test_ansible_machines.py",
    "images/test_images_boot.py",
    "images/test_images_build.py",
    "vm/test_vm_daemon.py",
    "vm/test_vm_snapshots.py",
    "cli/test_live_labs.py",
    "lab/test_lab_routers.py",
    "nics/test_nics_lab.py",
    "chaos/test_faults.py",
    "goldens/test_goldens.py",
    "docs/test_tutorial.py",
    "virtual/test_gateway_runs.py",
    "virtual/test_routers.py",
    "virtual/test_same_bytes.py",
    "virtual/test_substation_runs.py",
    "virtual/test_jobs.py",
    "virtual/test_slurm.py",
    "campaign/test_engines.py",
    "campaign/test_engines_killed.py",
    "reports/test_reports_page.py",
)


def rank(path: str) -> int:
    """Returns the position of a file in LONGEST; the length of LONGEST if it is not in it."""
    return next((at for at, name in enumerate(LONGEST) if path.endswith(f"/tests/{name}")), len(LONGEST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # the sort is stable: the tests of a file keep their order
    items.sort(key=lambda item: rank(item.path.as_posix()))
