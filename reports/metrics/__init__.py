"""Tables of a run to its headline figures."""
