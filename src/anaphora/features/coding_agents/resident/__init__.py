"""The resident process of a user: one model and the open homes, for hooks, servers and commands."""
