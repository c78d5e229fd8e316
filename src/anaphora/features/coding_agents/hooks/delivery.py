"""Notes what a session was given, after it was delivered. Light: a hook imports this."""

from __future__ import annotations

import os


def note_given(path: str, content: str) -> None:
    """Write the state file of a session; "" for none. If it cannot be, things are given twice."""
    if not path:
        return
    # Not by `pathlib` or `contextlib`: a hook would wait for their import.
    temporary = f"{path}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(content)
        os.replace(temporary, path)  # noqa: PTH105
    except OSError:
        return
