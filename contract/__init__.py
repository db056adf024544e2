"""The contract between orchestrator, capture, reports and the Python API: a run directory's files, typed.

A leaf: it loads nobody. All but the table schemas needs the standard library alone, since the lab process
reads and writes these files inside the lab's kernel, where every import costs.
"""
