"""Train a reader: a small model that sees a question and a statement together.

It judges two things: whether a statement answers a question, and whether a later statement
replaces an earlier one. `python -m tools.reader` lists the steps; `train` and `build` need the
environment of `tools/models/requirements.txt`, `prepare` and `evaluate` that of the project.
Nothing here is needed to run Anaphora, and nothing here is called by it.
"""
