"""Putting Anaphora into the configuration of coding agents, and taking it out again.

In: the name of a client, where its files lie. Out: changes that are shown before they are made,
made whole or not at all, and undone to the byte where nobody wrote in between. Nothing else in a
client's files is touched.
"""
