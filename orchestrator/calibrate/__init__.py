"""Measures how much load this machine carries faithfully, and compares topologies with it."""
