"""What this machine can do for a lab, what that means, and the command that would mend what it cannot."""

from orchestrator.doctor.examine import examine
from orchestrator.doctor.finding import Finding

__all__ = ["Finding", "examine"]
