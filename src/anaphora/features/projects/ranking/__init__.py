"""Ranking of a project's sections, files and notes for a focus."""
