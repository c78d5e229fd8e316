"""Conversations in truth: files as Go writes them, or rows of a database; never rewritten."""
