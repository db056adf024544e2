"""Judges the claims of a paper: each is a rule over measured values and gets a verdict with its reason."""
