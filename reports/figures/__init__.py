"""Figures: each one function from data to a chart, drawn once for the page and the files."""
