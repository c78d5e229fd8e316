"""Recalled text in a prompt: where it begins and ends, and how to keep it out of what is stored.

An agent that stores its prompts stores what it has recalled as if it had been said anew, and finds
that the next time. So a recalled block stands between two lines that nothing within it can hold,
the index passes over it, and `strip_recalled` takes it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from anaphora.language.folding import typed_text

BEGIN: Final = "<recalled-memory>"
END: Final = "</recalled-memory>"

FAR: Final = 8_000
"""Characters from which on a turn is compared with others by its best passage: what a statement
says is read from its beginning, and in a text this long something else may stand there."""

_BEGIN: Final = re.compile(rf"^{BEGIN}\r?\n", re.MULTILINE)
_END: Final = re.compile(rf"^{END}(?:\r?\n|\Z)", re.MULTILINE)
_FORGED: Final = re.compile(r"recalled-memory(?=\s*>)", re.IGNORECASE)


def strip_recalled(text: str) -> str:
    """`text` without the blocks of `render_recall` in it; one that has none comes back as it is.

    What has no end is no block, and stays.
    """
    parts, at = [], 0
    for begin, end in recalled_blocks(text):
        parts.append(text[at:begin])
        at = end
    return "".join([*parts, text[at:]]) if at else text


@lru_cache(maxsize=2048)
def compared_text(text: str) -> str:
    """The own words of `text`, as it is compared with others."""
    return typed_text(strip_recalled(text)[:FAR])


def quotes_recalled(text: str) -> bool:
    """Whether `text` holds a block of `render_recall`."""
    return next(recalled_blocks(text), None) is not None


def recalled_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where the blocks in `text` begin and end. Every character is looked at twice at most."""
    at = 0
    while END in text:
        begin = _BEGIN.search(text, at)
        end = None if begin is None else _END.search(text, begin.end())
        if begin is None or end is None:
            return
        yield begin.start(), end.end()
        at = end.end()


def enclose_recalled(block: str) -> str:
    """`block` between the two lines; what would look like one of them within it is changed."""
    inside = _FORGED.sub(lambda found: f"{found[0]}\\", block)
    return f"{BEGIN}\n{inside}\n{END}"
