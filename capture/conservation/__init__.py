"""Compares figures of a run with independent counts of the same quantity: conservation checks."""
