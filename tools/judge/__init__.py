"""Fit the judge of pairs: what a later statement makes of an earlier one.

It says whether the later one replaces the earlier, holds beside it, or repeats it. `python -m
tools.judge` lists the steps; `train` and `build` need the environment of
`tools/models/requirements.txt`, the others that of the project. Nothing here is needed to run
Anaphora: what it makes is read by `anaphora.ingest.judging`.
"""
