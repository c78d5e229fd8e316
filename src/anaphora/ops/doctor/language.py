"""Whether the embedder reads the languages of a home's conversations and memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.container.languages import LAST, hardly_read, mending_command
from anaphora.language.languages.language import language_of, languages
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_SAMPLE: Final = 400
"""Turns in the sample, spread evenly over all."""

_LEAST: Final = 20
"""Turns of known language that are needed for a statement about most turns."""


def language_check(services: NamespaceServices, embedder: str) -> Iterator[Check]:
    """The language of most turns, and a model for languages that the embedder cannot read.

    Nothing if too few turns have a known language.
    """
    _, view = services.conversation.turn_index.synced_view(None, embed="none")
    count = len(view)
    rows = np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.intp))
    turns: Sequence[str] = services.conversation.turn_index.texts_of(view, rows) if count else ()
    memories = [record.text for record in services.memory.records.list(limit=LAST).items]
    details = []
    counts = Counter(code for code in map(language_of, turns) if code)
    if counts.total() >= _LEAST:
        main_language = max(counts, key=lambda code: (counts[code], code))
        details.append(f"most turns are in {languages()[main_language].name}")
    lanes = (hardly_read(texts, embedder) for texts in (turns, memories))
    if names := tuple(dict.fromkeys(name for lane in lanes for name in lane)):
        label = embedder.partition(":")[0]
        details.append(
            f"much is in {', '.join(names)}, which {label} hardly reads; run: "
            f"{mending_command(services.container.settings)}"
        )
    if details:
        yield Check("language", ok=True, detail="; ".join(details))
