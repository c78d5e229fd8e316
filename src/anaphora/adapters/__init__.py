"""Anaphora behind the interfaces of other frameworks. Each one needs its extra.

In: the calls of the framework. Out: what the framework's own in-memory store would give back.
"""
