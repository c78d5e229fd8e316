"""Memories: their rows, their vectors, and the rules of restating and superseding."""
