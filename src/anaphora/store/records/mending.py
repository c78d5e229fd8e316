"""A record whose row makes no sense, made readable: its words stay, and what was there is kept.

In: a row of `COLUMNS`, or a namespace. Out: one that can be read, and what stood in the columns
that could not be; which records are like that. A change to records mends those that it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import Unreadable
from anaphora.store.codecs import DAMAGE, parsed
from anaphora.store.crypto.columns import Sealer, open_rows
from anaphora.store.records.rows import COLUMNS, record_of

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

_ALL = (
    f"SELECT kind, {', '.join(COLUMNS)} FROM record "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND record_id > :after ORDER BY record_id LIMIT :limit"
)
_STEP: Final = 512

_TIMES: Final = ("created_at", "valid_from", "last_reinforced")
_OPEN_TIMES: Final = ("valid_until", "expires_at", "forgotten_at")
_JSON: Final = {"tags": list, "payload": dict, "origin": dict}


def mended_row(row: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A row that can be read, and by name what stood in the columns that were changed.

    What makes no sense is as if it had not been given; a time that must be there is that of
    another column, or 1970.
    """
    kept, was = dict(zip(COLUMNS, row, strict=True)), dict[str, Any]()
    times = [kept[name] for name in _TIMES if _is_number(kept[name])]
    for name, value in kept.items():
        if not _is_sound(name, value):
            was[name] = value if isinstance(value, str | int | float) else repr(value)
            kept[name] = _instead(name, value, times)
    return tuple(kept.values()), was


def _is_sound(name: str, value: Any) -> bool:
    if name in _JSON:
        try:
            parsed(value, _JSON[name])
        except DAMAGE:
            return False
        return True
    if name in _OPEN_TIMES and value is None:
        return True
    if name in (*_TIMES, *_OPEN_TIMES, "reinforced"):
        return _is_number(value)
    return name != "text" or isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int)


def _instead(name: str, value: Any, times: Sequence[int]) -> Any:
    if name in _TIMES:
        return times[0] if times else 0
    if name == "text":
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return 0 if name == "reinforced" else None


def unreadable_records(
    truth: Database, namespace: str, sealer: Sealer
) -> dict[str, tuple[str, ...]]:
    """The ids of records that make no sense, by kind. Reads every record once."""
    found: dict[str, list[str]] = {}
    after = ""
    while rows := truth.rows(_ALL, {"namespace": namespace, "after": after, "limit": _STEP}):
        own = [row[1:] for row in rows]
        opened = open_rows(sealer, "record", COLUMNS, namespace, own)
        for (kind, *_), row in zip(rows, opened, strict=True):
            try:
                record_of(row)
            except Unreadable:
                found.setdefault(kind, []).append(row[0])
        after = rows[-1][1]
    return {kind: tuple(ids) for kind, ids in found.items()}


def mend_records(truth: Database, namespace: str, sealer: Sealer) -> int:
    """Mend the records of a namespace that make no sense; how many. What was there is an event."""
    from anaphora.store.records.work import RecordTransaction

    found = unreadable_records(truth, namespace, sealer)
    for kind, ids in found.items():
        with truth.write(namespace) as write:
            sealer.check()
            work = RecordTransaction(write, sealer, kind)
            # A change mends what it touches.
            work.load(ids=ids)
            work.flush()
    return sum(map(len, found.values()))
