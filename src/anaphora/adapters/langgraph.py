"""A LangGraph store on Anaphora: what a graph puts is kept on the disk and found by meaning.

It answers the operations of `langgraph.store.base` as its `InMemoryStore` would, filters included.
An item is one memory: its path is the namespace and key, its payload the value, exactly as it was
put; nothing is deduplicated, linked or redacted on the way. An item that is put again supersedes
the one before, and deleting it takes all of its versions. Other memories are never changed.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from anaphora.api.memory import Memory
from anaphora.embed.chunking import PAGE
from anaphora.errors import FilterError, InvalidInput, MissingExtra
from anaphora.values.memories import MemoryHit, MemoryRecord, NewMemory

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
    )
except ImportError as error:
    raise MissingExtra("langgraph", "langgraph") from error

CATEGORY: Final = "langgraph"
"""The category of every memory that is an item of a store."""

_PREFIX = "langgraph:"
_UNSEARCHED = "unsearched"
_TTL = "ttl_minutes="
_PAGE = 500
# Candidates for each hit: recall orders by age too, a store by closeness alone.
_WIDER = 4
# Each searched field is embedded separately, and the best of them is the item's score.
_APART = f"\n{PAGE}\n"
_StoredItem = MemoryRecord | MemoryHit
Passing = Callable[[Any], bool]
"""Whether a value passes a condition of a filter."""

_EQUAL: Final = {"$eq": operator.eq, "$ne": operator.ne}
_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class AnaphoraStore(BaseStore):
    """A `BaseStore` over one namespace of a `Memory`.

    `index={"fields": [...]}` says which fields of a value are searched (default: all of it as one);
    each is embedded for itself, and the best one counts. The embedder is the memory's own, so
    `dims` and `embed` are not needed; `index_config` is what was given. `ttl` is LangGraph's
    `TTLConfig`; expired items are never returned, whatever `omit_expired` says. `clock` tells the
    present, aware. Values must be JSON objects.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._memory = memory
        self.index_config = index
        self.ttl_config = ttl
        self._clock = clock or (lambda: datetime.now(UTC))
        self._fields: Sequence[str] = tuple((index or {}).get("fields") or ("$",))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations; reads see what was there before the writes of the same batch.

        Raises `InvalidInput` for a value that is no JSON object, `StoreError` when it cannot be
        kept; then nothing of the batch was written.
        """
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                # The last of several writes to one key is the one that counts.
                puts.pop((op.namespace, op.key), None)
                puts[(op.namespace, op.key)] = op
                results.append(None)
            elif isinstance(op, GetOp):
                record = next(self._current({"path": _path(op.namespace, op.key)}), None)
                if record is not None:
                    self._refresh([record], op.refresh_ttl)
                results.append(None if record is None else Item(**_fields_of(record)))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(op))
            else:
                raise InvalidInput(
                    "ops", type(op).__name__, "expected an operation of langgraph.store.base"
                )
        self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a worker thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete what has expired, for good; how many items went."""
        now = self._clock().isoformat()
        report = self._memory.forget(
            filters={"AND": [{"category": CATEGORY}, {"expires_at": {"lte": now}}]}
        )
        return report.count

    # Reading.

    def _search(self, op: SearchOp) -> list[SearchItem]:
        _check_counts(op)
        if not isinstance(op.filter or {}, Mapping):
            raise FilterError("filter", op.filter, "expected an object")
        keep = passing(op.filter) if op.filter else None
        upto = op.offset + op.limit
        # The prefix of the paths of all items under a namespace; a label ends with its quote.
        namespace = list(op.namespace_prefix)
        labels = json.dumps(namespace, ensure_ascii=False, separators=(",", ":"))[:-1]
        prefix = _PREFIX + labels + ("," if namespace else "")
        within: dict[str, Any] = {"path": {"startswith": prefix}}
        if op.query and op.query.strip():
            records, scores = self._closest(op.query, upto, within, keep)
        else:
            # As a dictionary would: the oldest first.
            records = sorted(self._matching(within, keep), key=lambda r: (r.created_at, r.id))
            scores = {}
        page = records[op.offset : upto]
        self._refresh(page, op.refresh_ttl)
        return [SearchItem(**_fields_of(r), score=scores.get(r.id)) for r in page]

    def _closest(
        self, query: str, upto: int, within: Mapping[str, Any], keep: Passing | None
    ) -> tuple[list[_StoredItem], dict[str, float]]:
        """Items by closeness, then those without a score if there is room."""
        if upto < 1:
            return [], {}
        passing = [record.id for record in self._matching(within, keep)] if keep else []
        if keep and not passing:
            return [], {}
        narrowed_filter = {"id": {"in": passing}} if keep else dict(within)
        unsearched_filter = {"tags": {"contains": _UNSEARCHED}}
        hits = self._memory.recall(
            query,
            top_k=_WIDER * upto,
            filters={"AND": [{"category": CATEGORY}, {"NOT": unsearched_filter}, narrowed_filter]},
        )
        items: list[_StoredItem] = [*sorted(hits, key=lambda hit: (-hit.similarity, hit.id))]
        scores = {hit.id: hit.similarity for hit in hits}
        if len(items) < upto:
            items += [item for item in self._matching(within, keep) if item.id not in scores]
        return items, scores

    def _matching(self, within: Mapping[str, Any], keep: Passing | None) -> Iterator[MemoryRecord]:
        for record in self._current(within):
            if keep is None or keep(record.payload or {}):
                yield record

    def _current(self, within: Mapping[str, Any]) -> Iterator[MemoryRecord]:
        """Current items, without expired ones."""
        now, cursor = self._clock(), None
        filters = {"AND": [{"category": CATEGORY}, dict(within)]}
        while True:
            page = self._memory.list(filters, limit=_PAGE, cursor=cursor)
            for record in page:
                if record.expires_at is None or record.expires_at > now:
                    yield record
            cursor = page.cursor
            if cursor is None:
                return

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        _check_counts(op)
        namespaces = {
            _place(record)[0] for record in self._current({"path": {"startswith": _PREFIX}})
        }
        for condition in op.match_conditions or ():
            namespaces = {
                namespace for namespace in namespaces if namespace_matches(condition, namespace)
            }
        if op.max_depth is not None:
            namespaces = {namespace[: op.max_depth] for namespace in namespaces}
        return sorted(namespaces)[op.offset : op.offset + op.limit]

    # Writing.

    def _put(self, ops: Sequence[PutOp]) -> None:
        news = [self._new(op) for op in ops if op.value is not None]
        if news:
            self._memory.remember_many(news)
        for op in ops:
            if op.value is None:
                path = _path(op.namespace, op.key)
                self._memory.forget(filters={"AND": [{"category": CATEGORY}, {"path": path}]})

    def _new(self, op: PutOp) -> NewMemory:
        try:
            # A copy, equal to the value that will be returned: JSON has no tuples.
            payload = json.loads(json.dumps(dict(cast("Mapping[str, Any]", op.value))))
        except (TypeError, ValueError) as error:
            raise InvalidInput("value", op.value, f"must be a JSON object: {error}") from error
        searched_texts: list[str] = []
        for field in () if op.index is False else op.index or self._fields:
            if field == "$":
                searched_texts.append("\n".join(_lines(payload)))
            else:
                searched_texts += get_text_at_path(payload, tokenize_path(field))
        searched_texts = [text for text in searched_texts if text.strip()]
        tags: list[str] = [] if searched_texts else [_UNSEARCHED]
        expires = None
        if op.ttl is not None:
            tags.append(f"{_TTL}{op.ttl!r}")
            expires = _after(self._clock(), op.ttl)
        return NewMemory(
            text=_APART.join(searched_texts) or op.key or "(no key)",
            path=_path(op.namespace, op.key),
            payload=payload,
            category=CATEGORY,
            tags=tuple(tags),
            expires_at=expires,
            dedupe=False,
            redact=False,
        )

    def _refresh(self, records: Iterable[_StoredItem], refresh: bool) -> None:
        """Extend the life of read items: LangGraph's rule for items with a time to live."""
        if not refresh:
            return
        now = self._clock()
        for record in records:
            minutes = next((t[len(_TTL) :] for t in record.tags if t.startswith(_TTL)), None)
            if minutes is not None:
                self._memory.update(record.id, expires_at=_after(now, float(minutes)))


def _path(namespace: Sequence[str], key: str) -> str:
    return _PREFIX + json.dumps([*namespace, key], ensure_ascii=False, separators=(",", ":"))


def _place(record: _StoredItem) -> tuple[tuple[str, ...], str]:
    *namespace, key = json.loads((record.path or "")[len(_PREFIX) :])
    return tuple(namespace), key


def _fields_of(record: _StoredItem) -> dict[str, Any]:
    namespace, key = _place(record)
    return {
        "namespace": namespace,
        "key": key,
        "value": dict(record.payload or {}),
        "created_at": record.created_at,
        "updated_at": record.created_at,
    }


def _lines(value: Any, name: str = "") -> Iterator[str]:
    """The texts in a value, each after the name of its field, as in a written note."""
    if isinstance(value, Mapping):
        for key, inner_member in value.items():
            yield from _lines(inner_member, str(key))
    elif isinstance(value, list):
        for inner_member in value:
            yield from _lines(inner_member, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def _after(now: datetime, minutes: float) -> datetime:
    """The moment so many minutes later. Raises `InvalidInput` where there is none."""
    try:
        return now + timedelta(minutes=minutes)
    except (OverflowError, ValueError):
        raise InvalidInput("ttl", minutes, "must end before the year 10000") from None


def _check_counts(op: SearchOp | ListNamespacesOp) -> None:
    """`InvalidInput` for a count below 0, by which a list would be cut from its end."""
    for name in ("limit", "offset", "max_depth"):
        count = getattr(op, name, None)
        if count is None and name == "max_depth":
            continue
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InvalidInput(name, count, "expected a whole number, 0 or more")


def passing(condition: Any) -> Passing:
    """What a filter, or its condition for a member, says of a value. `FilterError` for a bad one.

    Numbers and texts of numbers are compared as numbers, other texts as texts. A value that has no
    order (None, a list) passes no comparison.
    """
    if isinstance(condition, Mapping):
        if any(str(name).startswith("$") for name in condition):
            all_of = [_comparing(str(name), operand) for name, operand in condition.items()]
            return lambda value: all(test(value) for test in all_of)
        members = {name: passing(inner) for name, inner in condition.items()}
        return lambda value: (
            isinstance(value, Mapping)
            and all(test(value.get(name)) for name, test in members.items())
        )
    if isinstance(condition, (list, tuple)):
        places = [passing(inner) for inner in condition]
        return lambda value: (
            isinstance(value, (list, tuple))
            and len(value) == len(places)
            and all(test(inner) for test, inner in zip(places, value, strict=True))
        )
    return lambda value: bool(value == condition)


def _comparing(name: str, operand: Any) -> Passing:
    if name in _EQUAL:
        return lambda value: bool(_EQUAL[name](value, operand))
    if name not in _ORDER:
        raise FilterError("filter", name, f"expected one of {', '.join((*_EQUAL, *_ORDER))}")
    if _in_one_order(operand, operand) is None:
        raise FilterError(f"filter.{name}", operand, "expected a number or a text")

    def compare(value: Any) -> bool:
        pair = _in_one_order(value, operand)
        return pair is not None and _ORDER[name](*pair)

    return compare


def _in_one_order(value: Any, operand: Any) -> tuple[Any, Any] | None:
    """Both as numbers, or both as texts; None where they have no order."""
    pair = (value, operand)
    try:
        # Whole numbers stay exact.
        first, second = (part if isinstance(part, int) else float(part) for part in pair)
    except (TypeError, ValueError):
        return pair if isinstance(value, str) and isinstance(operand, str) else None
    return first, second


def namespace_matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends as the condition says."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        compared_part = namespace[: len(path)]
    elif condition.match_type == "suffix":
        compared_part = namespace[len(namespace) - len(path) :]
    else:
        raise FilterError("match_type", condition.match_type, "expected 'prefix' or 'suffix'")
    return all(pattern in {"*", label} for label, pattern in zip(compared_part, path, strict=True))
