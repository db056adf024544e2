"""Network calculus: the worst delay of each flow of a plan, without a run."""
