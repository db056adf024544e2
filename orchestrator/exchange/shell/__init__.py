"""Follows shell scripts of other tools' labs to find their effect; starts no program, reads and writes no
file.
"""
