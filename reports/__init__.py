"""Reads runs and campaigns, judges them and writes their pages. All of it computes with tables."""

from reports import threads

threads.insist()
