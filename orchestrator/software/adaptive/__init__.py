"""Checks and plans messages whose sender measures its path and chooses by it how it sends them."""
