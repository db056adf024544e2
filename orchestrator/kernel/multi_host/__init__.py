"""Lab kernel `hosts`: those of several machines, each for its part of the plan."""
