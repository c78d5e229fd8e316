"""What another program's write has taken out of a thread, put back: no turn is lost. Pure.

Neo's daemon takes no lock: it reads a thread, adds a turn and puts the whole file back. What this
store wrote in between is then missing from the file. It is told from a change that was meant: a
lost update is an older state of our file with turns added to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from anaphora.store.threads.gojson import ThreadDocument, nanoseconds
from anaphora.values.conversations import Turn

_Key = tuple[str, str, str, int]
_SURROGATE = re.compile("[\ud800-\udfff]")


def restore_lost(ours: ThreadDocument, theirs: ThreadDocument) -> ThreadDocument | None:
    """Our turns, and after them what another program added to an older state of our file.

    None where nothing of ours is missing, or it was taken out on purpose: a file that only ends
    earlier was cut, and a turn with the time of a missing one was edited. Our turns keep their
    places, by which notes know them.
    """
    our_keys, their_keys = _keys(ours.turns), _keys(theirs.turns)
    pairs = enumerate(zip(our_keys, their_keys, strict=False))
    shared_count = next(
        (index for index, (a, b) in pairs if a != b), min(len(our_keys), len(their_keys))
    )
    missing = Counter(our_keys[shared_count:]) - Counter(their_keys[shared_count:])
    if not missing or len(their_keys) == shared_count:
        return None
    unmatched_keys = Counter(our_keys[shared_count:])
    added_positions: list[int] = []
    for index in range(shared_count, len(their_keys)):
        if unmatched_keys[their_keys[index]] > 0:
            unmatched_keys[their_keys[index]] -= 1
        else:
            added_positions.append(index)
    if {key[0::3] for key in missing} & {their_keys[index][0::3] for index in added_positions}:
        return None
    extra_keys = {key for key, _ in ours.extras}
    return ThreadDocument(
        ours.conversation_id or theirs.conversation_id,
        ours.title or theirs.title,
        [*ours.turns, *(theirs.turns[index] for index in added_positions)],
        [*ours.raw_turns, *(theirs.raw_turns[index] for index in added_positions)],
        max(ours.updated, theirs.updated, key=nanoseconds),
        [*ours.extras, *(extra for extra in theirs.extras if extra[0] not in extra_keys)],
    )


def _keys(turns: Sequence[Turn]) -> list[_Key]:
    """What makes two turns the same after another program has read and written them.

    Go reads a lone surrogate as U+FFFD.
    """
    return [
        (
            turn.role,
            turn.text if turn.text.isascii() else _SURROGATE.sub("\ufffd", turn.text),
            turn.intent_id,
            nanoseconds(turn.ts_text),
        )
        for turn in turns
    ]
