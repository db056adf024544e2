"""Packs a run or campaign as an RO-Crate, and checks one without the tree that made it."""
