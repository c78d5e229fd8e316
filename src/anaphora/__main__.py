"""`python -m anaphora` is the command `anaphora`."""

from __future__ import annotations

from anaphora.surfaces.cli import main

if __name__ == "__main__":
    main()
