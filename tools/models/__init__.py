"""Train an embedder of our own, from texts to the product's 8-bit folder.

`python -m tools.models` lists the steps: each reads files and writes files, so
that any step can be done again by itself. `train`, `distil` and `build` need an environment with
`requirements.txt` of this folder; `prepare` and `evaluate` run in the project's own. Nothing here
is needed to run Anaphora, and nothing here is called by it.
"""
