"""Whether the embedder reads the languages that a home's conversations and memories are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.container.languages import LAST, hardly_read, mending_command
from anaphora.core.languages.language import language_of, languages
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_SAMPLE: Final = 400
"""Turns that are looked at, spread evenly over all."""

_LEAST: Final = 20
"""Turns whose language must be known before it is said in which one most are."""


def language_check(services: NamespaceServices, embedder: str) -> Iterator[Check]:
    """In which language most turns are, and what reads what the embedder does not.

    Nothing where too few tell.
    """
    turns = _spread_turns(services)
    memories = [record.text for record in services.records.list(limit=LAST).items]
    details = [*_most(turns)]
    lanes = (hardly_read(texts, embedder) for texts in (turns, memories))
    if names := tuple(dict.fromkeys(name for lane in lanes for name in lane)):
        label = embedder.partition(":")[0]
        details.append(
            f"much is in {', '.join(names)}, which {label} hardly reads; run: "
            f"{mending_command(services.container.settings)}"
        )
    if details:
        yield Check("language", ok=True, detail="; ".join(details))


def _spread_turns(services: NamespaceServices) -> Sequence[str]:
    _, view = services.turns.synced_view(None, embed="none")
    count = len(view)
    rows = np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.intp))
    return services.turns.texts_of(view, rows) if count else ()


def _most(turns: Sequence[str]) -> Iterator[str]:
    """In which language most turns are, of those whose language is known."""
    known = Counter(code for code in map(language_of, turns) if code)
    if known.total() >= _LEAST:
        most = max(known, key=lambda code: (known[code], code))
        yield f"most turns are in {languages()[most].name}"
