"""The release gate: the built wheel, really installed, with every surface tried for what it means.

`python -m tools.gate` builds the wheel of a source tree, installs it offline into fresh
environments (`environments.py`) from the files that `make setup` fetched by hash (`wheelhouse.py`),
and runs the checks of `surfaces/` in each. One line a check: environment, surface, check, outcome.
"""
