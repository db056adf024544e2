"""Runs shell scripts of other tools' labs for their effect: no program is started, no file is read or written."""
