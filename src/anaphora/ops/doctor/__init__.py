"""Whether a home is well, and what can be made well again."""
