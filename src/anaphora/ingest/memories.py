"""Memories are written and forgotten: checked, without secrets, durable first.

The words are kept as they came; Unicode forms count only when two are compared. Where the embedder
is loaded and the text is short, record, vector and links are one transaction; otherwise the record
is, and its vector comes later, by the same call or by `fill_vectors`. A write never waits for a
model, never fails with one, and never merges two memories because they are close. What was
forgotten for good is in no file of a SQLite database any more, unless another process keeps its
log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.calls.caller import signed
from anaphora.calls.progress import ProgressCount
from anaphora.errors import AnaphoraError, InvalidInput, NotFound
from anaphora.index.backlog import IN_CALL, Backlog, fill_records
from anaphora.ingest.checking import (
    VERSIONED,
    MemoryInput,
    as_new,
    checked,
    checked_changes,
    without_secrets,
)
from anaphora.ingest.linking import EmbeddedMemory, Linker, Neighbours
from anaphora.store.filters import Filter, parse
from anaphora.store.records.rows import CLOSENESS, OPEN, as_mapping
from anaphora.values.memories import (
    Forgotten,
    MemoryRecord,
    NewMemory,
    RelatedMemory,
    Remembered,
    SurvivingSource,
)

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.rank.pairs import JudgePairs
    from anaphora.store.db.engine import Scrubbing
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.rows import RecordLink
    from anaphora.store.records.rules import MemoryDraft, PutResult
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.records.vectors import RecordVectors, TextToEmbed
    from anaphora.store.records.written import WrittenRecords


BATCH: Final = 256
"""Memories that `remember_many` writes in one transaction."""

# A text up to this long is embedded in a few milliseconds: record and vector can share one fsync.
_SHORT = 4_000

_LONG_NOTICE = "a long text: words find it now, its vectors are made behind the calls"

# The links that results report.
_TOLD = (*CLOSENESS, OPEN)


@dataclass(frozen=True, slots=True)
class FillResult:
    """What `fill_vectors` did: memories that got their vectors, and those that cannot have any."""

    embedded: int = 0
    failed: int = 0


class MemoryWriter:
    """Remembers in one namespace.

    `neighbours` gives the known memories nearest to each row of a matrix of unit vectors, `judge`
    what a later one makes of an earlier; `clock` the present, aware; `ids` new record ids that
    rise. `follow` gets what was written, `later` is called where a vector is left to
    `fill_vectors`. Safe to share between threads.
    """

    def __init__(
        self,
        records: Records,
        vectors: RecordVectors,
        embedder: EmbedderService,
        neighbours: Neighbours,
        judge: JudgePairs,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        follow: Callable[[WrittenRecords], object] = lambda _: None,
        later: Callable[[], object] = lambda: None,
    ) -> None:
        self._records = records
        self._follow = follow
        self._later = later
        self._vectors = vectors
        self._embedder = embedder
        self._linker = Linker(records, vectors, embedder, neighbours, judge)
        self._clock = clock
        self._ids = ids
        self._backlog: Backlog[TextToEmbed] = Backlog(
            embedder,
            lambda text: text.record_id,
            lambda text: text.text,
            lambda embedded: self._link(
                [EmbeddedMemory(text.record_id, text.text, vectors) for text, vectors in embedded]
            ),
        )
        self._failure: AnaphoraError | None = None

    @property
    def failure(self) -> AnaphoraError | None:
        """Why the last vector that could not be kept had to be left for later; None if none was."""
        return self._backlog.failure or self._failure

    def remember(self, new: NewMemory) -> Remembered:
        """Keep one memory; when this returns it is on the disk.

        Raises InvalidInput naming the field, NotFound when what it supersedes, or its parent, is
        not there, StoreError and its kinds when the database cannot be written.
        """
        from anaphora.store.records.rules import draft_memory, put
        from anaphora.store.records.vectors import TextToEmbed

        new, redacted_kinds = _prepare(new)
        draft = draft_memory(new, self._clock(), self._ids())
        embedded_memory = self._embed_early(draft)
        with self._change() as work:
            if new.parent is not None:
                _refuse_unknown(new.parent, work.find(new.parent))
            put_result = put(work, draft, self._ids)
            is_new = put_result.id == draft.record.id
            links: Sequence[RecordLink] = ()
            if is_new and embedded_memory is not None:
                links = self._linker.keep(
                    work, [replace(embedded_memory, record_id=put_result.id)]
                )[put_result.id]
            elif not is_new:
                links = work.linked([put_result.id], _TOLD)
            bare = _make_remembered(put_result, redacted_kinds, new.text if is_new else "")
            (remembered,) = _describe([bare], links, work)
        if is_new and embedded_memory is None:
            links = self._embed_few([TextToEmbed(put_result.id, new.text)])
            (remembered,) = _describe([bare], links, self._records)
        return remembered

    def remember_many(
        self, items: Iterable[MemoryInput], progress: ProgressCount | None = None
    ) -> list[Remembered]:
        """Keep many, as if one after the other, in transactions of `BATCH`; results in their order.

        A text, or a mapping of the fields of `NewMemory`, stands for one; `InvalidInput` names the
        item by its place, such as `items[3].tags`. All are checked before the first is written.
        `progress` is called with (kept, in all). Vectors of a few are made in the call, as
        `remember` does; those of many behind it: words find them at once, `ready` waits for the
        rest. Raises what `remember` does; what was reported as kept is kept even then.
        """
        from anaphora.store.records.rules import draft_memory, put_all
        from anaphora.store.records.vectors import TextToEmbed

        prepared_memories = []
        for position, memory in enumerate(items):
            try:
                prepared_memories.append(_prepare(as_new(memory)))
            except InvalidInput as error:
                within = "" if error.what == "item" else f".{error.what}"
                raise error.named(f"items[{position}]{within}") from None
        self._refuse_unknown(new_memory for new_memory, _ in prepared_memories)
        puts: list[PutResult] = []
        added: list[TextToEmbed] = []
        for start in range(0, len(prepared_memories), BATCH):
            now, batch = self._clock(), prepared_memories[start : start + BATCH]
            drafts = [draft_memory(new_memory, now, self._ids()) for new_memory, _ in batch]
            with self._change() as work:
                puts += put_all(work, drafts, self._ids)
            added += [
                TextToEmbed(draft.record.id, draft.record.text)
                for draft in drafts
                if draft.record.id in work.added
            ]
            if progress is not None:
                progress(len(puts), len(prepared_memories))
        self._embed_few(added)
        results = [
            _make_remembered(
                outcome, redacted_kinds, new_memory.text if outcome.action == "added" else ""
            )
            for outcome, (new_memory, redacted_kinds) in zip(puts, prepared_memories, strict=True)
        ]
        links = self._records.links({outcome.id for outcome in puts}, _TOLD)
        return _describe(results, links, self._records)

    def update(self, record_id: str, *, redact: bool = True, **changes: Any) -> Remembered:
        """Change a memory. Another text, payload or path makes a version that supersedes it.

        Tags, type, category and expiry change in place; its events keep what was there. Raises
        NotFound, InvalidInput for a change that cannot be made or a version that is not the
        present one, StoreError and its kinds.
        """
        from anaphora.store.records import rules
        from anaphora.store.records.rows import STANDS_ALONE
        from anaphora.store.records.vectors import TextToEmbed

        new_values = checked_changes(changes)
        redacted_kinds: tuple[str, ...] = ()
        if "path" in new_values and new_values["path"] is None:
            raise InvalidInput("path", None, "can be changed, but not removed")
        if redact:
            clean, redacted_kinds = without_secrets(NewMemory(**({"text": "-"} | new_values)))
            new_values = {name: getattr(clean, name) for name in new_values}
        now = self._clock()
        with self._records.change() as work:
            old_record = work.find(record_id)
            if old_record is None or old_record.forgotten:
                raise NotFound("memory", record_id)
            draft = None
            if any(
                new_values.get(n, getattr(old_record, n)) != getattr(old_record, n)
                for n in VERSIONED
            ):
                key = work.same_key(record_id)
                new_memory = rules.replacement(old_record, new_values, dedupe=key != STANDS_ALONE)
                new_memory = replace(new_memory, source=signed(new_memory.source))
                draft = rules.draft_memory(new_memory, now, self._ids())
                if draft.same_key == key != STANDS_ALONE:
                    draft = None  # The same words in another Unicode form.
            if draft is None:
                rules.change_in_place(work, record_id, new_values, now)
                put_result = rules.PutResult(record_id, "updated")
                links: Sequence[RecordLink] = work.linked([record_id], _TOLD)
            else:
                put_result, links = rules.put(work, draft, self._ids), ()
        if draft is not None and put_result.id == draft.record.id:
            links = self._embed_few([TextToEmbed(put_result.id, draft.record.text)])
        written_text = "" if draft is None else draft.record.text
        bare = _make_remembered(put_result, redacted_kinds, written_text)
        return _describe([bare], links, self._records)[0]

    def fill_vectors(
        self,
        limit: int | None = None,
        progress: ProgressCount | None = None,
        *,
        room: int | None = None,
        stopping: Callable[[], bool] | None = None,
    ) -> FillResult:
        """Embed and link memories that have no vector of this embedder, at most `limit` of them.

        With `room` no more than so many characters; it ends when `stopping` becomes true.
        Waits for the model. What is done is kept, so that an interrupted call can be made again. A
        text that cannot be embedded hides no other, and is tried again by the next process.
        `progress` is called with (embedded so far, same again at the end). Raises EmbeddingError
        when the model cannot be loaded.
        """
        name = self._embedder.name
        fill_counts = fill_records(
            self._backlog, self._vectors, name, limit, progress, room=room, stopping=stopping
        )
        return FillResult(*fill_counts)

    @contextmanager
    def _change(self) -> Iterator[RecordTransaction]:
        """A change of memories; the index has what it wrote as soon as it is on the disk."""
        with self._records.change() as work:
            yield work
        if written_ids := work.written:
            self._follow(written_ids)

    def _embed_early(self, draft: MemoryDraft) -> EmbeddedMemory | None:
        """The vectors of a short text and what is near to them, where they can be had at once."""
        from anaphora.store.records.vectors import TextToEmbed

        record = draft.record
        if len(record.text) > _SHORT or not self._embedder.ready(0):
            return None
        if record.path is None and draft.same_key:
            same_records = self._records.with_same_key(draft.same_key)
            if any(match.valid_to is None and not match.forgotten for match in same_records):
                return None
        try:
            embedded_memories = self._embed_texts([TextToEmbed(record.id, record.text)])
            if draft.same_key:
                embedded_memories = self._linker.with_near(embedded_memories, [record])
        except AnaphoraError as error:
            # An index or a model that fails must not keep the memory from being kept.
            self._failure = error
            return None
        return embedded_memories[0] if embedded_memories else None

    def _embed_few(self, owners: Sequence[TextToEmbed]) -> Sequence[RecordLink]:
        """Make the vectors of memories that are durable already; behind the call if it takes long.

        Returns their links.
        """
        if not owners or not self._embedder.ready(0):
            return ()
        if sum(len(owner.text) for owner in owners) > IN_CALL:
            self._later()
            return ()
        try:
            self._link(self._embed_texts(owners))
        except AnaphoraError as error:
            # They are kept; `fill_vectors` will meet the same trouble and raise it.
            self._failure = error
            return ()
        return self._records.links([owner.record_id for owner in owners], _TOLD)

    def _link(self, group: Sequence[EmbeddedMemory]) -> int:
        for start in range(0, len(group), BATCH):
            near_group = self._linker.with_near(group[start : start + BATCH])
            with self._change() as work:
                self._linker.keep(work, near_group)
        return len(group)

    def _embed_texts(self, owners: Sequence[TextToEmbed]) -> list[EmbeddedMemory]:
        """The texts that can be embedded, with their vectors; the others are noted as failed."""
        embedded_texts = self._backlog.embed(owners)
        return [
            EmbeddedMemory(text.record_id, text.text, vectors) for text, vectors in embedded_texts
        ]

    def _refuse_unknown(self, items: Iterable[NewMemory]) -> None:
        ids = [
            referred_id
            for new_memory in items
            for referred_id in (new_memory.supersedes, new_memory.parent)
            if referred_id is not None
        ]
        records = self._records.many(ids) if ids else {}
        for record_id in ids:
            _refuse_unknown(record_id, records.get(record_id))


def _make_remembered(done: PutResult, redacted: tuple[str, ...], written: str) -> Remembered:
    """The result of a memory; `written` is the text that needs vectors now, "" for none."""
    notices = done.notices if len(written) <= IN_CALL else (*done.notices, _LONG_NOTICE)
    return Remembered(done.id, done.action, redacted=redacted, notices=notices)


def _describe(
    done: Sequence[Remembered], links: Sequence[RecordLink], records: Records | RecordTransaction
) -> list[Remembered]:
    """The results, with the memories close to each and those that contradict it."""
    if not links:
        return list(done)
    near_ids: dict[str, list[str]] = {}
    conflicting_ids: dict[str, list[str]] = {}
    for link in sorted(links, key=lambda link: -link.strength):
        for memory_id, related_id in (
            (link.record_id, link.other_id),
            (link.other_id, link.record_id),
        ):
            family = conflicting_ids if link.kind == OPEN else near_ids
            family.setdefault(memory_id, []).append(related_id)
    related_records = records.many(
        related_id for memory in done for related_id in conflicting_ids.get(memory.id, ())
    )
    current = {
        record.id: RelatedMemory(record.id, record.text, record.created_at)
        for record in related_records.values()
        if record.valid_to is None and not record.forgotten
    }
    return [
        replace(
            memory,
            related=tuple(near_ids.get(memory.id, ())),
            conflicts=tuple(current[o] for o in conflicting_ids.get(memory.id, ()) if o in current),
        )
        if memory.id in near_ids or memory.id in conflicting_ids
        else memory
        for memory in done
    ]


def _refuse_unknown(record_id: str, found: MemoryRecord | None) -> None:
    if found is None or found.forgotten:
        raise NotFound("memory", record_id)


def _prepare(new: NewMemory) -> tuple[NewMemory, tuple[str, ...]]:
    new = checked(new)
    if not new.redact:
        # An adapter gets back exactly what it put.
        return new, ()
    source = signed(new.source)
    new = new if source is new.source else replace(new, source=source)
    clean, kinds = without_secrets(new)
    if not new.keep_secret:
        return clean, kinds
    # The mark says that there is one.
    return replace(new, keep_secret=bool(kinds)), ()


Survivors = Callable[[Sequence[str]], Iterable[SurvivingSource]]
"""What in this namespace still holds these words or refers to them."""
HasTurn = Callable[[str, int], bool]
"""Whether a conversation still has its turn at an index."""
WithText = Callable[[str], Iterable[str]]
"""The ids of the memories with exactly this text."""

Derived = Callable[["RecordTransaction", Sequence[str]], Iterable[str]]
"""The memories derived from these, read within the transaction: they go too."""
OnGone = Callable[["RecordTransaction", "ForgottenRecords", bool], None]
"""Called within the transaction with what is gone, and whether softly."""

_PAGE = 512
_NAMED = 100


class MemoryEraser:
    """Forgets in one namespace."""

    def __init__(
        self,
        records: Records,
        *,
        clock: Callable[[], datetime],
        survivors: Survivors,
        has_turn: HasTurn,
        with_text: WithText,
        derived: Derived | None = None,
        on_gone: OnGone | None = None,
    ) -> None:
        self._records = records
        self._clock = clock
        self._survivors = survivors
        self._has_turn = has_turn
        self._with_text = with_text
        self._derived = derived
        self._on_gone = on_gone

    def forget(
        self,
        record_id: str | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        soft: bool = False,
        clean: bool = True,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget one memory, or all that `filters` let through, in history too.

        Without `clean` the words stay in the database's files until that is cleaned. With `dry_run`
        nothing is changed: what would go is told. An id that is not there forgets
        nothing. Raises InvalidInput unless exactly one of the two is given and the filters say
        something, FilterError for a bad one, StoreError and its kinds when truth cannot be written.
        """
        from anaphora.store.records.forgetting import (
            forget_for_good,
            forget_softly,
            would_forget,
        )

        if record_id is not None and filters is not None:
            raise InvalidInput("filters", filters, "give either an id or filters, not both")
        if record_id is None and not filters:
            raise InvalidInput("filters", filters, "expected an id or filters")
        keep = self._records.resolved(Filter() if filters is None else parse(filters))
        ids = [record_id] if record_id is not None else self._find_matching(keep)
        scrub: Scrubbing = True if clean else "later"
        with self._records.change(scrub=False if soft or dry_run else scrub) as work:
            # What a filter found may have changed since.
            still = [
                candidate_id
                for candidate_id in ids
                if (record := work.find(candidate_id)) and keep.matches(as_mapping(record))
            ]
            if dry_run:
                forgotten_memories = would_forget(work, still)
            elif soft:
                forgotten_memories = forget_softly(work, still, self._clock())
            else:
                forgotten_memories = forget_for_good(work, still)
                derived_ids = (
                    []
                    if self._derived is None
                    else list(self._derived(work, forgotten_memories.ids))
                )
                if derived_ids:
                    forgotten_memories = forgotten_memories.and_more(
                        forget_for_good(work, derived_ids)
                    )
            if self._on_gone is not None and not dry_run:
                # In the same transaction: nothing may die between the two.
                self._on_gone(work, forgotten_memories, soft)
        if dry_run:
            return named(forgotten_memories, self._find_holding(forgotten_memories))
        if soft or not forgotten_memories.ids:
            return named(forgotten_memories, ())
        log = [] if work.write.is_clean else [SurvivingSource("log", str(self._records.truth.log))]
        return named(forgotten_memories, (*log, *self._find_holding(forgotten_memories)))

    def undo(self, record_ids: Iterable[str]) -> tuple[str, ...]:
        """Bring back memories that are softly forgotten; those that were."""
        from anaphora.store.records.forgetting import bring_back

        with self._records.change() as work:
            return bring_back(work, record_ids, self._clock())

    def _find_matching(self, keep: Filter) -> list[str]:
        ids: list[str] = []
        cursor: str | None = None
        while True:
            page = self._records.list(keep, limit=_PAGE, cursor=cursor, history=True)
            ids += [record.id for record in page]
            cursor = page.cursor
            if cursor is None:
                return ids

    def _find_holding(self, gone: ForgottenRecords) -> Iterator[SurvivingSource]:
        """What else holds the words of what is gone, or would be."""
        for text in gone.texts:
            for record_id in self._with_text(text):
                if record_id not in gone.ids:
                    yield SurvivingSource("memory", record_id)
        for conversation_id, index in gone.turns:
            if self._has_turn(conversation_id, index):
                yield SurvivingSource("turn", conversation_id, index)
        for survivor in self._survivors((*gone.texts, *gone.payloads)):
            if survivor.id not in gone.ids:
                yield survivor


def named(gone: ForgottenRecords, surviving: Iterable[SurvivingSource]) -> Forgotten:
    """What was done: the first of what survives by name, the rest as a number."""
    survivors = tuple(dict.fromkeys(surviving))
    return Forgotten(len(gone.ids), survivors[:_NAMED], gone.ids, max(0, len(survivors) - _NAMED))
