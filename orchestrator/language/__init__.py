"""Reads the basics of topology files: YAML with line numbers, values with units, problems, templates."""
