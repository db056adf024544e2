"""The conservation checks: compare figures of a run with independent counts of the same quantity."""
