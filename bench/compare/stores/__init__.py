"""The contestants, as their child processes open them. Each module needs its product alone."""
