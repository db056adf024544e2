"""Conservation checks, which compare figures of a run with independent counts of the same quantity."""
