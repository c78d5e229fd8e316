"""Finds what still holds the words, or an identifying token, of something that was forgotten.

The indexes say where to look, the stored texts decide. Nothing is changed: a thread is the user's
own record, and only the user takes words out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.language.analyser import analyse, query_words
from anaphora.recall.identifiers import Identifier, identifiers_of
from anaphora.values.memories import SurvivingSource

if TYPE_CHECKING:
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.index.turns.view import TurnView
    from anaphora.store.records.store import Records
    from anaphora.values.memories import MemoryRecord

# Candidates by their words: a turn that holds the words of a sentence is among the best for them.
_LOOK_AT: Final = 50
# Of an identifier: where as many hold it as were looked at, more are looked at.
STEPS: Final = (50, 500, 5_000)
LOOKED_FOR: Final = 100_000
"""Characters of what is forgotten whose words, numbers, names … are looked for elsewhere: those at
its beginning and at its end. Each is a search of its own, and a list of ten thousand orders would
be looked for for a minute."""
_MOST_OF_IT: Final = 0.75
"""The share of a text's words, each by its rarity, that says the same again."""


@dataclass(frozen=True, slots=True)
class Survivors:
    """Looks through one namespace.

    `calls` gives the tool calls and their index, None where there are none; `others` the functions
    of features that look for identifiers in what they hold.
    """

    turns: TurnIndex
    memories: MemoryIndex
    records: Records
    calls: Callable[[], tuple[Records, MemoryIndex] | None]
    others: Callable[[], Sequence[Callable[[Sequence[Identifier]], Iterator[SurvivingSource]]]]

    def of(self, texts: Sequence[str]) -> Iterator[SurvivingSource]:
        """What holds the words of `texts`, those first that hold nearly all of one.

        Of all texts `LOOKED_FOR` characters are looked for.
        """
        texts = _bound_texts(texts)
        _, view = self.turns.synced_view(embed="none")
        for text in texts:
            yield from self._find_repetitions(view, text)
        identifiers = identifiers_of(texts)
        if not identifiers:
            return
        calls = self.calls()
        for identifier in identifiers:
            yield from self._find_turns(view, identifier)
            for record in find_records(identifier, self.records, self.memories):
                yield SurvivingSource("memory", record.id)
            for record in find_records(identifier, *calls) if calls is not None else ():
                yield SurvivingSource("tool_call", record.conversation_id or record.id)
        # No index has the words of a payload.
        for record_id, payload in self.records.payloads():
            if any(identifier.held_by(payload) for identifier in identifiers):
                yield SurvivingSource("memory", record_id)
        for find in self.others():
            yield from find(identifiers)

    def _find_repetitions(self, view: TurnView, text: str) -> Iterator[SurvivingSource]:
        """Turns that hold nearly all words of a text."""
        query = query_words(text)
        if not query:
            return
        rows = np.flatnonzero(view.words(query, limit=_LOOK_AT))
        terms = [word.tokens[0] for word in query]
        worth = dict(zip(terms, view.idf(query).tolist(), strict=True))
        # What no turn holds counts as much as what is rarest here.
        rarest = max(worth.values()) or 1.0
        worth = {term: weight or rarest for term, weight in worth.items()}
        least_worth = _MOST_OF_IT * sum(worth.values())
        for row, turn_text in zip(rows.tolist(), self.turns.texts_of(view, rows), strict=True):
            words = set(analyse(turn_text))
            if sum(weight for term, weight in worth.items() if term in words) >= least_worth:
                yield _make_source(view, row)

    def _find_turns(self, view: TurnView, identifier: Identifier) -> Iterator[SurvivingSource]:
        for max_turns in STEPS:
            rows = np.flatnonzero(view.words(identifier.words, limit=max_turns))
            pairs = zip(rows.tolist(), self.turns.texts_of(view, rows), strict=True)
            matching = [row for row, text in pairs if identifier.held_by(text)]
            if len(matching) < max_turns // 2:
                break
        yield from (_make_source(view, row) for row in matching)


def _bound_texts(texts: Sequence[str]) -> list[str]:
    """The texts, as far as they are looked for: of a long one the beginning and the end."""
    outer_texts, remaining = [], LOOKED_FOR
    for text in texts:
        if not remaining:
            break
        if len(text) > remaining:
            # Each stands for itself: the words at the seam are not one after the other.
            outer_texts += [text[: remaining - remaining // 2], text[len(text) - remaining // 2 :]]
        else:
            outer_texts.append(text)
        remaining = max(0, remaining - len(text))
    return outer_texts


def _make_source(view: TurnView, row: int) -> SurvivingSource:
    code = int(view.table.conversation[row])
    return SurvivingSource("turn", view.table.conversations[code], int(view.table.position[row]))


def find_records(
    identifier: Identifier, records: Records, index: MemoryIndex
) -> list[MemoryRecord]:
    """The records with a text that holds an identifier; not all of very many."""
    for max_records in STEPS:
        candidates = records.many(index.matching(identifier.words, max_records)).values()
        matching = [record for record in candidates if identifier.held_by(record.text)]
        if len(matching) < max_records // 2:
            break
    return matching
