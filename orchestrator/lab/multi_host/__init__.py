"""A lab over several hosts: a part on each host runs the ordinary driver, and tunnels connect the hosts."""
