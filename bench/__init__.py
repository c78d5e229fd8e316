"""Measurements of Anaphora, each beside its target: `python -m bench --data DIR` runs them all."""
