"""Putting Anaphora into the configuration of coding agents, and taking it out again.

Changes are shown before they are made, made whole or not at all, and undone to the byte where
nobody wrote in between. Nothing else in a client's files is touched.
"""
