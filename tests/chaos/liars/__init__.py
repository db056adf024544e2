"""Ways to make a figure of a run wrong, and what vNET says of each (issue: a mutation test of evidence)."""
