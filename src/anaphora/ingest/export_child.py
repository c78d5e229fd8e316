"""The worker side of `export_lines`: lines of JSON are checked, and written again.

Two surrogates side by side that were two characters would be read back as one: a line that has them
is wrapped, see docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.store.disk import open_regular
from anaphora.store.lines import read_object, write_object

_CHUNK = 1 << 16
_EVERY = 64


def is_beginning(head: bytes) -> Iterator[bool]:
    """Whether a line is the first one of an export."""
    try:
        yield read_object(head.decode()).get("anaphora") == "export"
    except ValueError:
        yield False


def read(path: str, most: int, parts: int) -> Iterator[str | int | list[str]]:
    """Every line of a file in order, or a list with the reason why it is invalid; at times how many
    bytes were read."""
    with open_regular(Path(path)) as file:
        number = 0
        while line := file.readline(most):
            overflow = b"" if line.endswith(b"\n") else file.readline(_CHUNK)
            if number % _EVERY == 0:
                yield file.tell()
            number += 1
            if overflow:
                yield [f"longer than {most:,} bytes; it was skipped"]
                # It is never held.
                while overflow and not overflow.endswith(b"\n"):
                    overflow = file.readline(_CHUNK)
            elif len(line) > parts and sum(line.count(mark) for mark in b"[{,") > parts:
                yield [f"more than {parts:,} values in one line; it was skipped"]
            else:
                checked_line: str | list[str]
                try:
                    checked_line = write_object(read_object(line.decode()))
                except MemoryError:
                    checked_line = ["there is not memory enough for it"]
                except (ValueError, TypeError) as error:
                    checked_line = [str(error)[:300]]
                yield checked_line
