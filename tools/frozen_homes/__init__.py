"""Homes that stay as one build wrote them, for tests that later builds open them and lose nothing.

    python -m tools.frozen_homes OUT

Out: for each home an archive (`plain.tar.xz`) and what the home answered (`plain.json`). Those in
`tests/data/homes` were made once by the build that they name: they are never made anew, as only
that build's homes are what its users have. A later build adds homes under other names.
"""
