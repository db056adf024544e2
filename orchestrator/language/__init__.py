"""Basics of topology files: values with units, places in the file, problems, templates."""
