"""Checks and plans stations: end nodes whose protocol stack has queues for priorities, for received and for
sent frames.
"""
