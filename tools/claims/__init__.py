"""Every figure and promise of the README and the docs, with the command that shows it.

`registry/` holds the claims as data: their words, with `{name}` where a value stands, and where
each value is read from. `python -m tools.claims` writes the values into the pages and makes
`docs/claims.md`; `python -m tools.claims --check` lists what does not agree.
"""
