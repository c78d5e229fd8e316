"""Importing the conversations, memories and notes of other programs."""
