"""Monitors of what explains a run's figures; docs/monitors.md lists them with their thresholds."""
