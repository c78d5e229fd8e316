"""Hooks of coding agents: what a client tells of a session, and what it is given for it.

`client` is what the client starts: it asks the resident process, or does the work itself, and never
fails. `protocols` reads and writes each client's form, `session` decides what is kept and what is
recalled; what went wrong goes to `core.incidents`.
"""
