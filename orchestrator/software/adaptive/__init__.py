"""Checks and plans messages whose sender measures its path, and chooses by the result how it sends them."""
