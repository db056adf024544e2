"""Reads runs and campaigns, judges them and writes their pages, from the tables of the reduction."""

from reports import threads

threads.insist()
