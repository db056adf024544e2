"""Lab kernel `hosts`: the kernels of several machines, each for its part of the plan."""
