"""Conservation: compares every figure that can be zero, capped or attributed with an independent count."""
