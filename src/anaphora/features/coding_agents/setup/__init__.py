"""Adds Anaphora to the configuration of coding agents, and removes it again.

Changes are shown before they are made, and made completely or not at all. Undoing restores the
exact bytes unless the file was edited in between. Nothing else in a client's files is touched.
"""
