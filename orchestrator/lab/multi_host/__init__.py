"""A lab over several hosts: a part on each, which holds the ordinary driver there, and what joins them."""
