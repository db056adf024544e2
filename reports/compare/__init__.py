"""Compares runs, campaigns and baselines: figures side by side with the differences between them."""
