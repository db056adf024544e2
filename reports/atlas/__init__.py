"""Answers, from a data set of measured interaction models (the atlas), which model meets given requirements
on a network.
"""
