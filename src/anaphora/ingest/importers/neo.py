"""Neo: conversation threads as Go wrote them, one `<id>.json` each; ids are kept.

In: such a file (a directory of them is walked by the caller). Out: the conversation under its own
id, with times and, where a turn has one, its intent. A damaged turn is reported and the others go
in. It reads leniently what the store itself would set aside as corrupt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from anaphora.errors import InvalidId
from anaphora.ingest.importers.base import Format, Imported, ImportFile, Malformed, Sample
from anaphora.ingest.importers.drafts import Draft, text_at
from anaphora.ingest.importers.json_reader import Record, records
from anaphora.store.threads.ids import check_id
from anaphora.values.conversations import ImportedTurn

_SOURCE = "neo"


def detect(sample: Sample) -> bool:
    """Whether the first value is a thread: a conversation id and a list of turns."""
    return any(_is_thread(value) for value in sample.values[:1])


def read(file: ImportFile) -> Iterator[Imported]:
    """The file's thread and what in it could not be read."""
    for record in records(file, _is_thread):
        if not isinstance(record, Record):
            yield record
        elif not _is_thread(record.value):
            yield file.problem(record.place, "not a thread: it has no conversation_id and turns")
        else:
            yield from _thread(file, cast("dict[str, object]", record.value), record.place)


def _is_thread(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("conversation_id"), str)
        and "turns" in value
        and isinstance(value["turns"], list | None)
    )


def _thread(file: ImportFile, value: dict[str, object], place: str) -> Iterator[Imported]:
    key = cast("str", value["conversation_id"])
    title = value.get("title")
    draft = Draft(file, _SOURCE, key, title=title if isinstance(title, str) else "")
    try:
        draft.conversation_id = check_id(key)
    except InvalidId as error:
        draft.problem(place, f"{error}; {draft.conversation_id} is used")
    for number, turn in enumerate(cast("list[object]", value["turns"] or []), start=1):
        where = f"{place}, turn {number}"
        try:
            _turn(draft, turn, where)
        except Malformed as error:
            draft.problem(where, str(error))
    yield from draft.results()


def _turn(draft: Draft, turn: object, place: str) -> None:
    if not isinstance(turn, Mapping):
        raise Malformed(f"a turn that is a {type(turn).__name__}, not an object")
    role, text = text_at(turn, "role"), text_at(turn, "text")
    if not role.strip() or not role.isprintable():
        raise Malformed(f"the role {role[:40]!r} is none")
    intent = turn.get("intent_id")
    ts = draft.time(turn.get("ts"), place)
    intent_id = intent if isinstance(intent, str) else ""
    draft.add_turn(ImportedTurn("", None, role, text, ts, intent_id=intent_id))


FORMAT = Format(_SOURCE, detect, read)
