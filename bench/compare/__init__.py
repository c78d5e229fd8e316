"""Anaphora beside other products, each in a process and an interpreter of its own."""
