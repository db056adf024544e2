"""Falsifies figures of a run in many ways, and tests whether vNET reports each: a mutation test of the
evidence.
"""
