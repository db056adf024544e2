"""Examines what labs can do on this machine: findings with consequences, and the commands that fix them."""

from orchestrator.doctor.examine import examine
from orchestrator.doctor.finding import Finding

__all__ = ["Finding", "examine"]
