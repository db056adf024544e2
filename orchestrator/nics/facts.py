"""Collects the facts on this machine that decide whether a lab may have a NIC."""

from __future__ import annotations

from pathlib import Path

from orchestrator.nics import netdevs, sysfs
from orchestrator.nics.model import Facts


def look(root: Path = Path("/")) -> Facts:
    """Returns the facts on this machine's NICs now, without changing it; raises NicError if `ip` fails.
    `root`: the directory that holds sys, proc and dev.
    """
    return Facts(sysfs.functions(root), netdevs.netdevs(), sysfs.iommu(root), netdevs.management())
