"""What another program's write has taken out of a thread, put back: no turn is lost. Pure.

Neo's daemon takes no lock: it reads a thread, adds a turn and puts the whole file back. What this
store wrote in between is then missing from the file. It is told from a change that was meant: a
lost update is an older state of our file with turns added to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from anaphora.store.threads.gojson import Document, nanoseconds
from anaphora.values.conversations import Turn

_Key = tuple[str, str, str, int]
_SURROGATE = re.compile("[\ud800-\udfff]")


def restore_lost(ours: Document, theirs: Document) -> Document | None:
    """Our turns, and after them what another program added to an older state of our file.

    None where nothing of ours is missing, or it was taken out on purpose: a file that only ends
    earlier was cut, and a turn with the time of a missing one was edited. Our turns keep their
    places, by which notes know them.
    """
    mine, others = _keys(ours.turns), _keys(theirs.turns)
    shared = _shared_start(mine, others)
    missing = Counter(mine[shared:]) - Counter(others[shared:])
    added = _without(others, shared, Counter(mine[shared:]))
    if not missing or len(others) == shared:
        return None
    if {key[0::3] for key in missing} & {others[place][0::3] for place in added}:
        return None
    start = [(ours, place) for place in range(len(mine))]
    return _joined(ours, theirs, start, [(theirs, place) for place in added])


def _joined(
    first: Document,
    second: Document,
    start: Sequence[tuple[Document, int]],
    rest: Sequence[tuple[Document, int]],
) -> Document:
    sources = (*start, *rest)
    keys = {key for key, _ in first.extras}
    return Document(
        first.conversation_id or second.conversation_id,
        first.title or second.title,
        [document.turns[place] for document, place in sources],
        [document.raw_turns[place] for document, place in sources],
        max(first.updated, second.updated, key=nanoseconds),
        [*first.extras, *(extra for extra in second.extras if extra[0] not in keys)],
    )


def _keys(turns: Sequence[Turn]) -> list[_Key]:
    """What makes two turns the same after another program has read and written them."""
    return [
        (turn.role, _as_go_keeps(turn.text), turn.intent_id, nanoseconds(turn.ts_text))
        for turn in turns
    ]


def _as_go_keeps(text: str) -> str:
    """The text after Go has read it: a lone surrogate is U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _shared_start(first: Sequence[_Key], second: Sequence[_Key]) -> int:
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def _without(keys: Sequence[_Key], start: int, known: Counter[_Key]) -> list[int]:
    """The places from `start` on whose keys are not among the known ones, each counted once."""
    left = known.copy()
    places = []
    for place in range(start, len(keys)):
        if left[keys[place]] > 0:
            left[keys[place]] -= 1
        else:
            places.append(place)
    return places
