"""The machine's NICs: what they are, which one is meant, whether a lab may have it, and how it comes back.

Standard library only: the lab process uses it. Nothing here imports the lab.
"""
