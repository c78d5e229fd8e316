"""What all surfaces share: the JSON form of values, and errors for unknown ids.

The facade returns nothing for a conversation that has not begun, since an agent may ask before its
first turn. A conversation named on a surface should exist, so there it is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anaphora.errors import InvalidInput, NotFound
from anaphora.text import display
from anaphora.text.display import visible_json
from anaphora.text.shown_times import shown_zone
from anaphora.values import json_codec
from anaphora.values.conversations import Recall, Turn, TurnHit
from anaphora.values.memories import Forgotten, MemoryRecord
from anaphora.values.namespaces import NamespaceAccess

if TYPE_CHECKING:
    from anaphora.api.memory import Memory

FoundT = TypeVar("FoundT")

counted: Final = display.counted

# A day or a week without a time, as `datetime.fromisoformat` accepts it.
_WHOLE = re.compile(r"\d{4}-?\d\d-?\d\d|\d{4}-?W\d\d-?\d|(?P<week>\d{4}-?W\d\d)")

# The exact times replace the rounded ones, so that no precision is lost.
_EXACT_TIMES = {"ts": "ts_text", "updated": "updated_text"}


def access_summary(namespace: str, readers: Sequence[NamespaceAccess]) -> str:
    """The readers of a namespace in a sentence: "Mara and Rafi can read and change it"."""
    writing = _listed([reader.name for reader in readers if reader.writes])
    reading = _listed([reader.name for reader in readers if not reader.writes])
    parts = [f"{writing} can read and change it"] if writing else []
    parts += [f"{reading} can read it"] if reading else []
    if not parts:
        return f"Namespace {namespace}: only the user who runs the server can read it."
    return f"Namespace {namespace}: {'; '.join(parts)}; so can the user who runs the server."


def _listed(names: Sequence[str]) -> str:
    *first_names, last_name = dict.fromkeys(names) or [""]
    return f"{', '.join(first_names)} and {last_name}" if first_names else last_name


def plain(value: Any) -> Any:
    """`value` in JSON's own types. Times become RFC 3339, paths become strings."""
    return json_codec.plain(value, _scalar, _members)


def dumps(value: Any, *, indent: int | None = 2, compact: bool = False) -> str:
    """`value` as JSON text that is safe for terminals: control characters are escaped."""
    separators = (",", ":") if compact else None
    json_text = json.dumps(plain(value), ensure_ascii=False, indent=indent, separators=separators)
    return visible_json(json_text)


def time_of(
    name: str, text: str | None, now: datetime | None = None, *, end: bool = False
) -> datetime | None:
    """The moment that a text names: the start of a day or, with `end`, the end of it.

    A day, a time without an offset and words ("last week", "tomorrow") are read in the zone of
    `now`, the user's present. A time is taken as it is, also with `end`. Raises `InvalidInput`.
    """
    if text is None:
        return None
    # For callers without a memory: the time zone of this process's user.
    now = datetime.now(shown_zone()) if now is None else now
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        from anaphora.language.times.reading import is_open_end, is_open_start, read_times

        spans = read_times(text, now)
        ends = [span.end for span in spans if not is_open_end(span)]
        starts = [span.start for span in spans if not is_open_start(span)]
        moments = ends if end else starts
        if len(moments) != 1:
            expectation = (
                'expected a day or a time like 2026-03-01 or 2026-03-01T12:00:00Z, or "last week"'
            )
            raise InvalidInput(name, text, expectation) from None
        return moments[0]
    if moment.tzinfo is None:
        is_whole = _WHOLE.fullmatch(text) if end else None
        days = 0 if is_whole is None else 7 if is_whole["week"] else 1
        try:
            moment = (moment + timedelta(days=days)).replace(tzinfo=now.tzinfo)
        except OverflowError:
            raise InvalidInput(name, text, "must lie in the years 1 to 9999") from None
    return moment


def times_between(
    given: Mapping[str, Any], now: datetime | None = None
) -> dict[str, datetime | None]:
    """`since` and `until` among the arguments, as moments: with a day, `until` includes all of it.

    Raises `InvalidInput` if nothing can lie between them.
    """
    since = _moment_of("since", given.get("since"), now)
    until = _moment_of("until", given.get("until"), now, end=True)
    if since is not None and until is not None and since.timestamp() >= until.timestamp():
        reason = f"expected a time that is not before `since`, {given['since']}"
        raise InvalidInput("until", given["until"], reason)
    return {"since": since, "until": until}


def _moment_of(
    name: str, given: str | date | None, now: datetime | None, *, end: bool = False
) -> datetime | None:
    if isinstance(given, datetime):
        return given
    return time_of(name, given.isoformat() if isinstance(given, date) else given, now, end=end)


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Path):
        return str(value)
    return round(value, 6) if isinstance(value, float) else value


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, Recall):
        members_: dict[str, Any] = {"hits": value.hits, "degraded": value.degraded}
        further_members = {
            "rejected": value.rejected,
            "nearest": value.nearest,
            "notices": value.notices,
        }
        members_ |= {name: rows for name, rows in further_members.items() if rows}
        return members_ if value.confidence is None else members_ | {"confidence": value.confidence}
    members = json_codec.members_of(value)
    for name, text in _EXACT_TIMES.items():
        if text in members:
            members[name] = members.pop(text)
    if isinstance(value, Turn):
        return {name: field for name, field in members.items() if field not in ("", None)}
    return members


def recalled_turns(
    memory: Memory, conversation_id: str | None, question: str, **options: Any
) -> Recall[TurnHit]:
    """Like `Memory.recall_conversation`, but raises `NotFound` for an unknown conversation.

    A count that is None means the configured one.
    """
    options = {
        name: option
        for name, option in options.items()
        if option is not None or name not in {"top_k", "budget"}
    }
    recall = memory.recall_conversation(conversation_id, question, **options)
    if not recall.hits:
        # A conversation with hits exists; only otherwise it has to be looked up.
        refuse_unknown(memory, conversation_id)
    return recall


def would_forget(memory: Memory, report: Forgotten, most: int | None = None) -> list[MemoryRecord]:
    """The first `most` memories that would be forgotten; of a document only its id is known."""
    records = []
    for record_id in report.ids[:most]:
        with suppress(NotFound):
            records.append(memory.get(record_id))
    return records


def named_in(report: Forgotten, records: Sequence[MemoryRecord]) -> dict[str, Any]:
    """The JSON form of what would be forgotten, with the words of these records."""
    memories = [{"id": record.id, "text": record.text} for record in records]
    return {**plain(report), "memories": memories}


def refuse_unknown(memory: Memory, conversation_id: str | None) -> None:
    """Raise `NotFound` for an unknown conversation; None means all of them."""
    if conversation_id is not None:
        must_exist(memory.conversations.get(conversation_id), "conversation", conversation_id)


def must_exist(found: FoundT | None, kind: str, which: str) -> FoundT:
    """Return what was found. Raises `NotFound` for None, and for False: nothing to change."""
    if found is None or found is False:
        raise NotFound(kind, which)
    return found
