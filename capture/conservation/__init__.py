"""Conservation: every figure that can be zero, capped or attributed is held against an independent count."""
