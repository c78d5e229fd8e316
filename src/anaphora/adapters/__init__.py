"""Anaphora behind the interfaces of other frameworks. Each one needs its extra."""
