"""Packs a run or campaign as an RO-Crate (research object crate), and checks a crate without the source tree
that made it.
"""
