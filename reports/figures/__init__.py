"""Draws the figures of the report: each computes its data from a study and draws one chart, for the page and
for files.
"""
