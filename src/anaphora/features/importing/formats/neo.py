"""Neo: conversation threads as Go wrote them, one `<id>.json` each; ids are kept.

A turn keeps its time and, if it has one, its intent. A damaged turn is reported and the others
go in: this reads leniently what the store itself would set aside as corrupt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from anaphora.errors import InvalidId
from anaphora.features.importing.formats.base import (
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    text_at,
)
from anaphora.features.importing.formats.drafts import Draft
from anaphora.features.importing.formats.json_reader import conversation_format
from anaphora.store.threads.ids import check_id


def _is_thread(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("conversation_id"), str)
        and "turns" in value
        and isinstance(value["turns"], list | None)
    )


def _read_thread(file: ImportFile, value: dict[str, object], place: str) -> Iterator[ImportItem]:
    key = cast("str", value["conversation_id"])
    draft = Draft(file, "neo", key, title=value.get("title"))
    try:
        draft.conversation_id = check_id(key)
    except InvalidId as error:
        draft.problem(place, f"{error}; {draft.conversation_id} is used")
    draft.add_all(cast("list[object]", value["turns"] or []), place, _add_turn, "turn")
    yield from draft.results()


def _add_turn(draft: Draft, value: object, place: str) -> None:
    turn = as_object(value, "a turn")
    role, text = text_at(turn, "role"), text_at(turn, "text")
    if not role.strip() or not role.isprintable():
        raise Malformed(f"unknown role {role[:40]!r}")
    intent = turn.get("intent_id")
    ts = draft.time(turn.get("ts"), place)
    draft.add(role, text, ts=ts, intent_id=intent if isinstance(intent, str) else "")


FORMAT = conversation_format(
    "neo",
    _is_thread,
    "not a thread: it has no conversation_id and turns",
    _read_thread,
    detect=lambda sample: any(map(_is_thread, sample.values[:1])),
)
