"""Defines the contract between orchestrator, capture, reports and the Python API: the types of a run
directory's files, and functions that read and write them. It imports no other package of vNET.
"""
