"""Explains where the time of each message went, from the records, captures and plan of a run."""
