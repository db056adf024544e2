"""Judges expectations, the conditions that a topology file states, on runs and campaigns."""
