"""A project comes in: its files in sections, the graph of what they say, and git's history."""
