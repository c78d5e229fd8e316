"""Hooks of coding agents: clients report events of a session, and get recalled text in return.

`client` is what the client starts: it asks the resident process, or does the work itself, and never
fails. `protocols` reads and writes each client's form, `session` decides what is stored and
recalled; errors go to `system.incidents`.
"""
