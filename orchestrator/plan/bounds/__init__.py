"""Computes the worst delay of each flow of a plan by network calculus, without a run."""
