"""The checks, one module for each kind of surface; each takes an environment and a report."""
