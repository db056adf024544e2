"""Runs shell scripts of other tools' labs for their effect: starts no program, reads and writes no file."""
