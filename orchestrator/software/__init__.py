"""The kinds of software: one room each."""
