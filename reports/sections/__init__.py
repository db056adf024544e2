"""Sections of the page: each says from the study whether it has something to show."""
