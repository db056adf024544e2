"""Findings on this machine's abilities for labs, their consequences, and the commands that mend them."""

from orchestrator.doctor.examine import examine
from orchestrator.doctor.finding import Finding

__all__ = ["Finding", "examine"]
