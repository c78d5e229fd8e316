"""Conversations: files as Go writes them, or rows of the database; never rewritten."""
