"""The facade of lasting memories: remember, recall, list, update, forget."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from anaphora.calls.operation import AuditRule, Http, ids_of, local, operation, with_notices
from anaphora.calls.parameters import Parameter, name_parameter
from anaphora.calls.progress import Progress, labelled
from anaphora.calls.tracing import span
from anaphora.container.view import NamespaceView
from anaphora.errors import NotFound
from anaphora.values.conversations import Recall, RecallMode
from anaphora.values.memories import (
    Contradiction,
    Forgotten,
    MemoryHit,
    MemoryRecord,
    MemoryType,
    NewMemory,
    Page,
    Reindexed,
    Remembered,
    Verdict,
)


class LastingMemories(NamespaceView):
    """Remember, recall, list, update and forget in one namespace of a home."""

    @operation("write", event="remember", http=Http("POST /v1/memories"))
    def remember(
        self,
        text: str,
        *,
        type: MemoryType = "semantic",  # noqa: A002 - the field's own name
        path: str | None = None,
        payload: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        category: str | None = None,
        source: str | None = None,
        conversation_id: str | None = None,
        turn_index: int | None = None,
        parent: str | None = None,
        supersedes: str | None = None,
        expires_at: datetime | None = None,
        created_at: datetime | None = None,
        keep_secret: bool = False,
    ) -> Remembered:
        """Remember one thing. When this returns, it is on the disk.

        The same thing said again (type, path, payload and text, compared in Unicode's NFC) is
        reinforced; another value at the same `path` supersedes the one before, which stays in
        history. A path that differs from a standing one only in case is that one: `notices` says
        so. `conflicts` are memories that are close and say otherwise: they stay too, until
        `settle_contradiction`, or the same call with `supersedes`, says what holds. Secrets are
        taken out before anything is stored: `redacted` names their kinds. `keep_secret` keeps
        them on purpose: the memory is marked so, and masked wherever it leaves the home. Raises
        `InvalidInput` naming the field, `NotFound` for `supersedes` and `parent`, `StoreError`.
        """
        new_memory = NewMemory(
            text=text,
            type=type,
            path=path,
            payload=payload,
            tags=tuple(tags),
            category=category,
            source=source,
            conversation_id=conversation_id,
            turn_index=turn_index,
            parent=parent,
            supersedes=supersedes,
            expires_at=expires_at,
            created_at=created_at,
            keep_secret=keep_secret,
        )
        services = self._services()
        with span("remember"):
            remembered = services.memory.writer.remember(new_memory)
        notices = self._container.languages.of_kept(services, (text,))
        return with_notices(remembered, notices)

    @operation("write", http=Http("POST /v1/memories/many"))
    def remember_many(
        self,
        items: Iterable[NewMemory | str | Mapping[str, Any]],
        progress: Progress | None = None,
    ) -> builtins.list[Remembered]:
        """Remember many things as if one after the other; all are checked before any is written.

        A text stands for a memory with nothing but it, a mapping for one with these fields. Of more
        than some 16,000 characters the vectors, and with them `related` and `conflicts`, come after
        the call: words find all at once, answers say what is due, `ready` waits for it.
        `progress` is called with ("remembering", done, total). Raises what `remember` does;
        `InvalidInput` names the item by its place, such as `items[3].tags`.
        """
        services = self._services()
        with span("remember_many"):
            remembered_memories = services.memory.writer.remember_many(
                items, labelled(progress, "remembering")
            )
        if remembered_memories:
            notices = self._container.languages.of_kept(services, None)
            remembered_memories[-1] = with_notices(remembered_memories[-1], notices)
        for memory in remembered_memories:
            self._container.tell("remember", memory)
        return remembered_memories

    @operation(
        "read",
        audit=AuditRule("recalled", "memory", lambda recall: ids_of(recall.hits, recall.nearest)),
        question="question",
        event="recall",
        falls_back=True,
        http=Http("POST /v1/recall", "Recall memories", repeatable=True, body="Ask"),
    )
    def recall(
        self,
        question: str,
        *,
        top_k: int = 3,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        mode: RecallMode = "hybrid",
        as_of: datetime | None = None,
        explain: bool = False,
        min_confidence: float | None = None,
        read: int | None = None,
        timeout: float | None = None,
    ) -> Recall[MemoryHit]:
        """The memories that matter for `question`: similarity × decay × reinforcement.

        Notes about projects are memories here like others, of any project. `mode="vector"` is the
        seed's formula to the letter. `filters` (see docs/filters.md) apply before anything is cut,
        and what they let through comes, however far it is from the question. `min_score` leaves out
        lower scores; 0 shows what has nothing in common with the question, too, which without it
        and without filters is left out. `as_of` answers for a past moment; `explain` also returns
        the rejected candidates with the reason. What holds now stands before what it replaced, and
        names the last value of its path in `previous`; where the question asks for the past, the
        value that held then stands first. Where the probability that a hit answers is below
        `min_confidence` (0 to 1, by default a calibrated floor; 0: never), there are no hits, and
        `Recall.nearest` has what came closest. The first `read` candidates (0 to 64, by default
        none) are read together with the question, which takes some milliseconds each and changes
        their order among each other. After `timeout` seconds nothing is waited for any more: words
        answer alone, and `Recall.degraded` says so. Raises `InvalidInput` and `FilterError` naming
        the place, `TimedOut` where nothing could be read in the time, `Cancelled` where a
        `Cancellation` ended the call.
        """
        with span("recall", mode=mode, top_k=top_k):
            return self._services().memory.recall_memories_and_notes.recall(
                question,
                top_k=top_k,
                min_score=min_score,
                filters=filters,
                mode=mode,
                as_of=as_of,
                explain=explain,
                min_confidence=min_confidence,
                read=read,
            )

    @operation(
        "read",
        audit=AuditRule("read", "memory", lambda record: ids_of((record,))),
        http=Http(
            "GET /v1/memories/{memory_id}",
            "One memory",
            renamed={"id": "memory_id"},
            name="get_memory",
        ),
    )
    def get(self, id: str) -> MemoryRecord:  # noqa: A002 - the field's own name
        """One memory, or note about a project, with all that is known of it. Raises `NotFound`."""
        services = self._services()
        try:
            return services.memory.records.get(id)
        except NotFound:
            records = (feature.get(id) for feature in services.features)
            record = next((one for one in records if one is not None), None)
            if record is None:
                raise
            return record

    @operation(
        "read",
        audit=AuditRule("read", "memory", lambda page: ids_of(page.items)),
        http=Http("GET /v1/memories", "List memories", name="list_memories"),
    )
    def list(
        self,
        filters: Mapping[str, Any] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[MemoryRecord]:
        """Memories, the last changed first, `limit` a page; `cursor` of a page gets the next."""
        from anaphora.store.filters import parse

        return self._services().memory.records.list(parse(filters), limit=limit, cursor=cursor)

    @operation(
        "read",
        audit=AuditRule("read", "memory", ids_of),
        http=Http("GET /v1/memories/history", "The values of a path"),
        parameters={"path": name_parameter("The key of the memories, e.g. `user.editor`.")},
    )
    def history(self, path: str) -> tuple[MemoryRecord, ...]:
        """Every value that a path had, the oldest first; without one, of one in another case."""
        return self._services().memory.records.history(path)

    @operation(
        "write",
        event="remember",
        http=Http("PATCH /v1/memories/{memory_id}", renamed={"id": "memory_id"}),
    )
    def update(self, id: str, **changes: Any) -> Remembered:  # noqa: A002 - the field's own name
        """Change a memory: `text`, `payload`, `path`, `tags`, `type`, `category`, `expires_at`.

        Another text, payload or path makes a version that supersedes it. Raises `NotFound`,
        `InvalidInput`, `StoreError`.
        """
        with span("update"):
            return self._services().memory.writer.update(id, **changes)

    @operation(
        "read",
        http=Http("GET /v1/contradictions", "Memories that seem to contradict"),
        parameters={"settled": Parameter("Resolved ones, to undo a resolution.")},
    )
    def contradictions(
        self, *, settled: bool = False, limit: int = 50
    ) -> tuple[Contradiction, ...]:
        """At most `limit` pairs of memories that seem to contradict each other, the last first.

        Those that are open, or with `settled` those that somebody has settled. They are found as
        memories are kept, and by `dream`, from their words alone: nothing else changes by it.
        """
        return self._services().memory.contradictions.list(settled=settled, limit=limit)

    @operation(
        "write",
        http=Http("POST /v1/contradictions/settle", "Resolve a contradiction", body="Settling"),
        parameters={"id": name_parameter("The memory that the verdict is about.")},
    )
    def settle_contradiction(
        self,
        id: str,  # noqa: A002 - the field's own name
        other_id: str,
        verdict: Verdict,
    ) -> Contradiction:
        """Resolve a contradiction: `id` "replaces" `other_id`, "both_hold", or `id` is "wrong".

        What no longer holds stays in history and is recalled no more. Raises `NotFound` unless the
        two are there and contradict each other, `InvalidInput`, `StoreError`.
        """
        with span("settle_contradiction", verdict=verdict):
            return self._services().memory.contradictions.settle(id, other_id, verdict)

    @operation(
        "write",
        http=Http("POST /v1/contradictions/reopen", "Reopen a contradiction", body="Reopening"),
        parameters={"id": name_parameter("One of the two memories.")},
    )
    def reopen_contradiction(
        self,
        id: str,  # noqa: A002 - the field's own name
        other_id: str,
    ) -> Contradiction:
        """Undo the resolution of two memories: what it ended is current again.

        Raises `NotFound`, `InvalidInput` where it is not settled or the path of what was ended has
        another value by now, `StoreError`.
        """
        with span("reopen_contradiction"):
            return self._services().memory.contradictions.reopen(id, other_id)

    @operation(
        "write",
        http=Http("POST /v1/forget", "Forget memories", body="Forgetting"),
        parameters={
            "id": name_parameter("The memory to forget."),
            "filters": Parameter("All memories that match; give either this or `id`."),
        },
    )
    def forget(
        self,
        id: str | None = None,  # noqa: A002 - the field's own name
        *,
        filters: Mapping[str, Any] | None = None,
        soft: bool = False,
        undoable: bool = False,
        clean: bool = True,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget a memory, note or document, or memories that `filters` find.

        Rows, history, vectors, index, and the file of a document go; one with all its versions.

        Returns an honest count, and names what still holds the words, or a number, code, address
        or full name of theirs: turns, memories, notes, sections, gaps, traces. `soft` keeps the
        history and only takes it out of recall. `undoable` hides memories at once and erases them
        after a day, unless `undo_forget` brings them back: who needs the words gone now must not
        use it. Without `clean` the call answers when memories, and their words in the index, are
        gone; that no byte of them is left in a file follows behind it, in the next process where
        this one ends before: `Stats.cleaning_due` counts it, `ready` waits for it.
        `dry_run` tells what would go, and changes nothing. Raises `NotFound` for an `id`
        that is not there (filters that find nothing forget nothing), `InvalidInput` unless exactly
        one of `id` and `filters` is given.
        """
        from anaphora.container.forgetting import erase_due, forget_any

        services = self._services()
        with span("forget", soft=soft):
            if dry_run:
                return forget_any(services, id, filters, dry_run=True)
            erase_due(services)
            forgotten_records = forget_any(
                services, id, filters, soft=soft or undoable, clean=clean
            )
            if undoable and not soft:
                services.jobs.erase_later(forgotten_records.ids)
            return forgotten_records

    @operation(
        "write",
        http=Http(
            "POST /v1/forget/undo",
            "Undo forgetting",
            part="ids",
            body="Unforgetting",
            answer="BroughtBack",
        ),
        parameters={"id": name_parameter("The memory to restore.")},
    )
    def undo_forget(self, id: str) -> tuple[str, ...]:  # noqa: A002 - the field's own name
        """Bring back what was forgotten with `undoable` or `soft`; the ids that are back.

        What went with it comes back too. Raises `NotFound` where there is nothing to bring back.
        """
        from anaphora.container.forgetting import bring_back

        return bring_back(self._services(), id)

    @operation("admin")
    @local("it reads every memory; do it on the server's machine (`anaphora redact-memories`)")
    def redact_memories(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Take secrets out of memories and notes that were stored before their form was known.

        Where each stood it says `[redacted:kind]`; ids, versions and links stay. The words leave
        every file of the home, but not backups, other devices that do not sync, or exports. What an
        adapter put word for word is left. Returns the ids that changed, with `dry_run` those that
        would. Raises `StoreError`.
        """
        from anaphora.container.redaction import holding_secrets, redact_stored

        services = self._services()
        with span("redact_memories"):
            return holding_secrets(services) if dry_run else redact_stored(services)

    @operation(
        "read",
        http=Http("GET /v1/resolve", "Resolve a short id", part="id", answer="WholeId"),
        parameters={
            "short": name_parameter("The end of the id, or all of it."),
            "kind": Parameter("The kind of thing that it identifies."),
        },
    )
    def resolve_id(self, short: str, kind: Literal["any", "memory", "conversation"] = "any") -> str:
        """The whole id of a memory, note or conversation that ends in `short`, or is it.

        "any" also takes `conversation#index`. Raises `NotFound`, and `InvalidInput` where several
        end so.
        """
        return self._services().short_ids.resolve(short, kind)

    @operation("admin")
    @local("do it on the server's machine (`anaphora reindex`)")
    def reindex(
        self,
        embedder: str | None = None,
        *,
        links: bool = True,
        progress: Progress | None = None,
    ) -> Reindexed:
        """Embed every turn, memory, note and section of this namespace that has no vector yet.

        Then what replaces what is found out of all that is new since; with `links=False` that
        follows in the background, in whichever process has the home open.
        With another `embedder` (as for `Memory.open`) its vectors are made beside the old ones in
        every namespace of the home, this one first, and it becomes the home's own from the next
        opening on; what replaces what is found out anew. `progress` is called with (what, done, in
        all); where the home has several namespaces, "what" begins with the name of one. Can be
        interrupted at any time and called again: what is done is kept. Raises `EmbeddingError`,
        `EndpointError` where an endpoint is away, `MissingExtra`.
        """
        return self._container.reindex(self.namespace, embedder, progress, links=links)
