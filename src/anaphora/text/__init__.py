"""Texts for people and agents, and what is found in theirs: display, short ids, pasted parts."""
