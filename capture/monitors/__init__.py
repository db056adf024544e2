"""Looks for known causes of a run's figures (monitors); docs/monitors.md lists them with their thresholds."""
