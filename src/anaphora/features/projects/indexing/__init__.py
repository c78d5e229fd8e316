"""Indexing a project: its files in sections, the graph of their contents, and git's history."""
