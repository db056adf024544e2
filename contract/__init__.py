"""Defines the contract between orchestrator, capture, reports and the Python API: a run directory's files
as types. It imports no other package of vNET. All but the table schemas needs only the standard library,
since the lab process reads and writes these files inside the lab's kernel, where every import costs time.
"""
