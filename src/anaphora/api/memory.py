"""The facade: conversations, importing, and the home as a whole.

No module of the facade holds logic, and none imports a heavy library: rooms do, when they are used.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from anaphora.api.memories import LastingMemories
from anaphora.calls.counting import CLOSING_PATIENCE, EXIT_PATIENCE
from anaphora.calls.operation import (
    AuditRule,
    Http,
    ids_of,
    local,
    operation,
    thread_ids,
    with_notices,
)
from anaphora.calls.parameters import (
    Parameter,
    name_parameter,
    tags_parameter,
    token_parameter,
)
from anaphora.calls.progress import Progress
from anaphora.calls.tracing import span
from anaphora.container.home import Container, Handler
from anaphora.errors import InvalidInput
from anaphora.registry import FeatureCalls
from anaphora.settings import load_settings, resolve_places
from anaphora.system.shortages import name_shortage
from anaphora.values.conversations import (
    RECALL_BUDGET,
    RECALL_TOP_K,
    Check,
    Health,
    ImportReport,
    Recall,
    RecallMode,
    Source,
    Stats,
    TurnChoice,
    TurnHit,
    TurnRole,
)
from anaphora.values.namespaces import DeletedNamespace
from anaphora.values.search import SearchHit
from anaphora.values.sessions import ToolCallHit

if TYPE_CHECKING:
    from anaphora.embed.base import Embedder
    from anaphora.ops import Backup, Exported
    from anaphora.store.threads.conversations import Conversations
    from anaphora.store.tokens import Tokens
    from anaphora.values.models import ModelRole

__all__ = ["Handler", "Memory", "Progress"]

Target = str | os.PathLike[str] | BinaryIO


class Memory(LastingMemories, FeatureCalls):
    """Memory on one home, in one namespace. Use it as a context manager, or call `close()`.

    Safe to share between threads; several processes may open the same home.
    """

    def __init__(self, container: Container, namespace: str) -> None:
        self._container = container
        self.namespace = namespace

    @classmethod
    @operation("admin", counted=False)
    @local("use `RemoteMemory.connect`; `Memory.open` opens a home on this machine")
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        database: str | None = None,
        namespace: str = "default",
        conversations_dir: str | os.PathLike[str] | None = None,
        encrypt: bool | Literal["keychain", "file"] | None = None,
        embedder: str | Embedder | None = None,
        share_model: Literal["running", "start"] | None = None,
        cache_size: int = 256,
        model: str | ModelRole | None = None,
        sub_model: str | ModelRole | None = None,
        clock: Callable[[], datetime] | None = None,
        timezone: str | None = None,
        environ: Mapping[str, str] | None = None,
        warm: bool = True,
    ) -> Memory:
        """Open (or begin) the memory at `home` (default: `ANAPHORA_HOME`, else the data folder).

        `database` is a PostgreSQL URL for truth on a server. `encrypt` makes a new home sealed
        (True: its key goes into the keychain; "file": into a file of the home); a sealed home
        opens as one by itself. `embedder` is "minilm" (the bundled one, which reads twelve
        languages; the default), "hashing", a sentence-transformers folder with ONNX ("./a/folder"),
        an endpoint ("openai:MODEL", "ollama:MODEL", or either with "URL#MODEL"; its key is in
        `ANAPHORA_EMBEDDER_KEY`), or an object with the `Embedder` protocol. `share_model` uses
        the bundled model of the user's resident process: of one that is "running", or one to
        "start" where there is none. `cache_size` is the number of query vectors kept (0: none).
        `model` ("provider:model", or an object with the `ModelRole` protocol) writes the searches
        of deep recall, `sub_model` reads for it (by default the same one). `timezone` (an IANA
        name such as "Europe/Berlin") is the user's: "yesterday" and "on 5 May" are days there, and
        times are shown in it; without it `ANAPHORA_TIMEZONE`, else the zone of the times that
        `clock` gives unless that is UTC, else `TZ`, the machine's, UTC. `environ` are the
        variables that settings are read from, in place of those of this process. `warm` starts
        loading the model in a background thread at once. Nothing is written until the first write.
        Raises `InvalidInput` for arguments that cannot be used, `EndpointError` when an endpoint
        does not answer that the home has not used before, `EncryptionError` when a sealed home's
        key is not to be had.
        """
        settings = load_settings(
            home,
            conversations_dir,
            database=database,
            model=model if isinstance(model, str) else None,
            sub_model=sub_model if isinstance(sub_model, str) else None,
            timezone=timezone,
            environ=environ,
        )
        name = _checked_namespace(namespace)
        container = Container.open(
            settings,
            encrypt=encrypt,
            embedder=embedder,
            share_model=share_model,
            cache_size=cache_size,
            model=None if isinstance(model, str) else model,
            sub_model=None if isinstance(sub_model, str) else sub_model,
            clock=clock,
        )
        memory = cls(container, container.standing_namespace(name))
        # A process that ends without closing must not end inside a model library either.
        atexit.register(container.close, EXIT_PATIENCE)
        if warm:
            container.embedder.start()
        return memory

    @operation("read", counted=False)
    def scoped(self, namespace: str) -> Memory:
        """A cheap view on the same home in another namespace. Closing either closes the home."""
        name = self._container.standing_namespace(_checked_namespace(namespace))
        return Memory(self._container, name)

    # Conversations.

    @property
    def conversations(self) -> Conversations:
        """The threads of this namespace. Strict: a turn that was not kept raises."""
        return self._services().conversation.threads

    @operation(
        "read",
        audit=AuditRule(
            "recalled",
            "turn",
            lambda recall: thread_ids(
                hit.conversation_id for hit in (*recall.hits, *recall.nearest)
            ),
        ),
        question="question",
        event="recall",
        falls_back=True,
        http=Http(
            "POST /v1/conversations/recall", "Recall turns", repeatable=True, body="TurnQuestion"
        ),
        parameters={
            "conversation_id": name_parameter("Only this conversation; without it, all."),
            "top_k": Parameter(
                "At most this many hits. Without it, `ANAPHORA_RECALL_TOP_K`, else 6.", 1, 1_000
            ),
            "budget": token_parameter(
                "At most this many tokens of text. Without it, `ANAPHORA_RECALL_BUDGET`, else "
                "2,500."
            ),
            "role": Parameter("Only turns in this role; `other` is any but the first two."),
        },
    )
    def recall_conversation(
        self,
        conversation_id: str | None,
        question: str,
        *,
        top_k: int = RECALL_TOP_K,
        budget: int = RECALL_BUDGET,
        exclude: str | Iterable[str] = (),
        mode: RecallMode = "hybrid",
        since: datetime | None = None,
        until: datetime | None = None,
        speaker: str | None = None,
        role: TurnRole | None = None,
        min_confidence: float | None = None,
        whole: bool = False,
        read: int | None = None,
        timeout: float | None = None,
    ) -> Recall[TurnHit]:
        """The turns of one thread (or, with None, of all threads) that matter for `question`.

        At most `top_k` hits whose texts cost at most `budget` tokens (ceil of UTF-8 bytes / 4),
        but one hit if there is any; without them, what `ANAPHORA_RECALL_TOP_K` and
        `ANAPHORA_RECALL_BUDGET` say. Of a long turn that does not fit the passage that bears on the
        question comes, with its place (`TurnHit.excerpt`); another that does not fit is skipped.
        The first `read` candidates (0 to 64, by default none) are read together with the question,
        which takes some milliseconds each and changes their order among each other.
        With `whole` every turn comes whole: the best in any case, others where they fit.
        Of a question with a trace, a log or code pasted into it only what asks and what identifies
        that is read. Texts in `exclude` (the live transcript; one text is one) are dropped before
        anything is filled, compared without outer white space. A thread
        that is not there has no turns yet: nothing is recalled.
        `mode` is "hybrid" (default), "words" (BM25 alone) or "vector" (plain cosine). In "hybrid",
        what holds now stands before what it replaced, and turns that say the same are one hit.
        Only turns from `since` to before `until` (aware), by `speaker` (a name or its first word)
        and in `role` ("user", "assistant", "other") are looked at. Where the probability that a hit
        answers is below `min_confidence` (0 to 1, by default a calibrated floor; 0: never), there
        are no hits, and `Recall.nearest` has what came closest. A question for a time and
        nothing else ("what happened on 5 May?") gets turns of that time alone.
        `Recall.notices` says where a speaker is not known, or nothing was said at the time
        that is asked about; `Recall.degraded` names what was unavailable. After `timeout` seconds
        nothing is waited for any more: words answer alone, and `degraded` says so. Inside
        `with Cancellation()` another thread ends the call. Raises `InvalidInput` for bad
        arguments, `TimedOut` where nothing could be read in the time, `Cancelled`.
        """
        settings = self._container.settings
        top_k = settings.recall_top_k if top_k is RECALL_TOP_K else top_k
        budget = settings.recall_budget if budget is RECALL_BUDGET else budget
        with span("recall_conversation", mode=mode, top_k=top_k):
            # It may be gone through twice.
            live = (exclude,) if isinstance(exclude, str) else tuple(exclude)
            return self._services().conversation.recall_turns.recall(
                conversation_id,
                question,
                top_k=top_k,
                budget=budget,
                exclude=live,
                mode=mode,
                choice=TurnChoice(since, until, speaker, role),
                min_confidence=min_confidence,
                whole=whole,
                read=read,
            )

    @operation(
        "read",
        audit=AuditRule(
            "recalled", "everything", lambda recall: ids_of(recall.hits, recall.nearest)
        ),
        question="question",
        event="recall",
        falls_back=True,
        http=Http(
            "POST /v1/search",
            "Search everything",
            repeatable=True,
            body="SearchQuestion",
            folders=("directory",),
        ),
        parameters={
            "budget": token_parameter("At most this many tokens of snippets."),
            "kinds": Parameter("What to search; by default all but `tool_call`.", 1, 20),
            "project": name_parameter(
                "Only what belongs to this project: name, folder or repository."
            ),
            "tags": tags_parameter("Only memories, notes and documents with all of these."),
        },
    )
    def search(
        self,
        question: str,
        *,
        top_k: int = 8,
        budget: int = 2000,
        kinds: Iterable[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        speaker: str | None = None,
        project: str | None = None,
        tags: Iterable[str] = (),
        directory: str | os.PathLike[str] | None = None,
        exclude: str | Iterable[str] = (),
        min_confidence: float | None = None,
        read: int | None = None,
        timeout: float | None = None,
    ) -> Recall[SearchHit]:
        """Memories, notes, turns, files and documents that answer a question, best first.

        At most `top_k` hits whose snippets cost at most `budget` tokens. `kinds` are those to look
        among: "memory", "note", "turn", "file", "document", those that other features add, and
        "tool_call", which is left out by default. `since`, `until` (aware), `speaker` and `exclude`
        are those of `recall_conversation`; `tags` leaves memories, notes and documents with all of
        these. `project` (a folder, a repository, or the last part of its name) leaves what belongs
        to it; `directory` is where the question is asked: sessions of other projects than the one
        around it count less. Where no lane is likely to answer (`min_confidence`, by default a
        calibrated floor), there are no hits, and `Recall.nearest` has what came closest. `read` and
        `timeout` are those of `recall_conversation`; of turns and of memories so many candidates
        each are read. Raises `InvalidInput`, `NotFound` for a project, and `Cancelled`.
        """
        from anaphora.recall.lanes import SearchChoice

        with span("search", top_k=top_k):
            recall = self._services().recall_everything
            choice = SearchChoice(
                recall.default_kinds if kinds is None else tuple(kinds),
                since,
                until,
                speaker,
                project,
                tuple(tags),
                None if directory is None else os.fspath(directory),
                frozenset((exclude,) if isinstance(exclude, str) else exclude),
            )
            return recall.recall(
                question,
                choice,
                top_k=top_k,
                budget=budget,
                min_confidence=min_confidence,
                read=read,
            )

    @operation(
        "write",
        http=Http("POST /v1/import", repeatable=True, long=True),
        parameters={
            "again": Parameter("Bring back turns that were deleted or redacted here."),
        },
    )
    def import_(
        self,
        source: str | os.PathLike[str] | Iterable[Source],
        *,
        format: str | None = None,  # noqa: A002 - the word users know
        again: bool = False,
        embed: bool = True,
        name: str = "",
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import files of any kind, folders of them, or an export.

        What other programs export or keep becomes conversations and memories, a folder of Markdown
        becomes notes, and what no importer knows becomes a document where it has text. Of all that
        is left out `report` has the names and what it is.

        When this returns they are kept, and found by their words. Vectors of up to 64 texts are
        made before, those of more behind this call: `ready()` waits for them, and where the home is
        closed before, the next question goes on with them. `embed=False` leaves all to the next
        question, for callers that cannot wait. Importing the same thing again adds nothing; a newer
        export adds what is new. `again` brings back what was deleted or redacted here. `name` is
        that of a file that lies elsewhere than where it came from, as an upload does: documents and
        notes are known by their names. With a `format` nothing else is taken; "anaphora" is the
        export of `export()`, which is recognised by itself. Raises `UnknownFormat` when the only
        file that was named is of no known kind; what is malformed is in `report.problems`.
        """
        from anaphora import ops

        with span("import"):
            report = ops.import_sources(
                self._services(),
                source,
                form=format,
                again=again,
                embed=embed,
                name=name,
                progress=progress,
            )
        notices = self._container.languages.of_import(self._services(), report)
        return with_notices(report, notices)

    @operation(
        "read", http=Http("GET /v1/conversations/{conversation_id}/tool-calls", "What tools did")
    )
    def tool_calls(self, conversation_id: str) -> tuple[ToolCallHit, ...]:
        """What an agent did with its tools in a session, oldest first, a line each."""
        services = self._services()
        return services.conversation.recall_tool_calls.of(
            services.conversation.threads.standing_id(conversation_id)
        )

    @operation("write")
    @local("where a session took place is read from a folder on the server's machine")
    def note_session(
        self,
        conversation_ids: Iterable[str],
        *,
        client: str = "",
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """Note where sessions took place, for transcripts that do not tell it themselves.

        What is known already stays. The repository and the branch are read from `directory`.
        """
        from anaphora.system.repositories import branch_of
        from anaphora.values.sessions import SessionPlace

        directory_path = "" if directory is None else os.fspath(directory)
        session_place = SessionPlace(client, directory_path, branch=branch_of(directory_path))
        services = self._services()
        ids = (
            services.conversation.threads.standing_id(conversation_id)
            for conversation_id in conversation_ids
        )
        services.conversation.sessions.note_place(ids, session_place)

    # The home.

    @property
    @local("days in questions are those of the server's user (`ANAPHORA_TIMEZONE` there)")
    def local_time(self) -> datetime:
        """The present, by the clock of this memory, in the time zone of its user."""
        return self._container.clock.local()

    @property
    @local("its folder is on the server's machine")
    def home(self) -> Path:
        """The folder that holds all of it: the same for every namespace."""
        return self._container.settings.home

    @operation("read", http=Http("GET /v1/session", part="namespaces"))
    def namespaces(self) -> tuple[str, ...]:
        """Every namespace of this home that holds or held anything, the default one first."""
        return self._container.namespaces()

    @operation("write", http=Http("DELETE /v1/namespaces/{name}"))
    def delete_namespace(self, name: str) -> DeletedNamespace:
        """Delete a namespace with everything that it holds or held, and what opens it alone.

        Memories, conversations, documents, notes, projects, its index, its audit trail, its keys of
        sync and tokens for it are gone from the home, without a way back. What lies outside (a
        mirrored folder, a sync remote, backups, exports) is not touched: `left` names the first
        two. Raises `NotFound` for one that is not there, `InvalidInput` for the default one.
        """
        from anaphora.container.erasing import delete_namespace

        return delete_namespace(self._container, name)

    @operation("read", http=Http("GET /v1/ready", part="ready"))
    def ready(self, timeout: float | None = None) -> bool:
        """Wait until the model is loaded and everything known is indexed; False on time-out.

        The reader is waited for where a question has asked for it. `timeout` is in seconds. Raises
        `EmbeddingError` when the model cannot be loaded.
        """
        self._container.embedder.look()
        from anaphora.container.filling import wait_until_ready

        return wait_until_ready(self._services(), timeout)

    @operation("read", counted=False)
    def on(self, event: str, handler: Handler) -> None:
        """Call `handler(value)` at every `event`: "cache", "remember", "recall", "contradiction",
        "sync", "sync_stopped", "mirror" or "mirror_stopped".

        "cache" gives values with `type` ("hit" or "miss") and `query`, "contradiction" each one
        that is found behind a write, by the process that found it and on a thread of its own,
        "sync_stopped" and "mirror_stopped" the status, the others what the call returns. A handler
        that raises is logged (`logging`, "anaphora") and fails no call. Raises `InvalidInput` for
        another event, and for what cannot be called.
        """
        if event not in self._container.handlers:
            raise InvalidInput(
                "event", event, f"expected one of {', '.join(self._container.handlers)}"
            )
        self._container.handlers[event].append(handler)

    @operation("read", http=Http("GET /v1/stats"))
    def stats(self) -> Stats:
        """What this namespace contains, and its size on disk."""
        from anaphora import ops

        return ops.stats(self._container.own(self.namespace))

    @operation("admin")
    @local(
        "it reads every byte of the home; do it on the server's machine (`anaphora doctor`), "
        "or use `health`"
    )
    def doctor(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> tuple[Check, ...]:
        """Look at truth, index, model and database; every finding says whether it is well.

        `repair` first mends what can be mended without touching a word. `progress` is called with
        (the part that is looked at, parts done, parts in all).
        """
        from anaphora import ops

        return ops.doctor(self._container.own(self.namespace), mend=repair, progress=progress)

    @operation("read", http=Http("GET /health"))
    def health(self) -> Health:
        """Whether all can be served now: a durable write is tried, in milliseconds. Never raises.

        `doctor` looks at every byte; this is for a probe that asks every few seconds.
        """
        try:
            from anaphora import ops
        except (ImportError, OSError, MemoryError) as error:
            # Without a descriptor or memory not even the code that looks can be loaded.
            reason = name_shortage(error) or str(error)
            return Health(ok=False, checks=(Check("program", ok=False, detail=reason),))
        return ops.health(self._container, self.namespace)

    @property
    @local("who has a token must not make others; do it on the server's machine (`anaphora token`)")
    def tokens(self) -> Tokens:
        """The tokens that give access to this home through its server, for all its namespaces."""
        from anaphora.store.tokens import Tokens

        home = self._container
        return Tokens(
            home.truth,
            home.sealing.rows,
            clock=home.clock,
            ids=home.ids,
            standing=home.standing_namespace,
        )

    @operation("admin", audit=AuditRule("exported", "backup"))
    @local(
        "it is of the whole home; do it on the server's machine (`anaphora backup`), "
        "or use `export`"
    )
    def backup(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> Backup:
        """Write a consistent copy of the whole home to one file, while others go on writing."""
        from anaphora import ops

        home = self._container
        return ops.backup(home.home, home.truth, path, clock=home.clock, progress=progress)

    @staticmethod
    @operation("admin", counted=False)
    @local("it makes a home; do it on the server's machine (`Memory.restore`)")
    def restore(
        path: str | os.PathLike[str],
        home: str | os.PathLike[str],
        *,
        database: str | None = None,
        conversations_dir: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Backup:
        """Make a new home out of a backup, for `open` with the same arguments and variables.

        A backup of a PostgreSQL database goes into the empty one at `database` (or
        `ANAPHORA_DATABASE`), without that into a file of the home. Raises `NotEmpty` when there is
        anything in either, and `InvalidInput` where these settings would leave it unread: a
        database for a backup of files, another folder of conversations.
        """
        from anaphora import ops

        root, conversations, server = resolve_places(home, conversations_dir, database)
        return ops.restore(
            path, root, database=server, conversations=conversations, progress=progress
        )

    @operation(
        "read", audit=AuditRule("exported", "export"), http=Http("GET /v1/export", long=True)
    )
    def export(
        self, path: Target, *, masked: bool = False, progress: Progress | None = None
    ) -> Exported:
        """Write this namespace as JSON Lines (docs/formats.md): to a path whole or not at all.

        `masked`, for somebody else: secrets in turns and titles are `[redacted:kind]` in it.
        """
        from anaphora import ops

        return ops.export(
            self._container,
            path,
            clock=self._container.clock,
            namespaces=[self.namespace],
            masked=masked,
            progress=progress,
        )

    @operation("read", counted=False)
    def close(self, timeout: float | None = CLOSING_PATIENCE) -> None:
        """Wait for the calls under way, then let go of files. Other calls get `Closed` from now on.

        At most `timeout` seconds (None: as long as it takes); a call that is not done by then ends
        in `Closed` at its next step, and what it had kept stays. Safe to call twice, and from
        within a call (a listener, say), which is not waited for.
        """
        if self._container.close(timeout):
            atexit.unregister(self._container.close)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked_namespace(namespace: str) -> str:
    from anaphora.store.threads.ids import check_id

    try:
        return check_id(namespace)
    except InvalidInput as error:
        raise type(error)("namespace", namespace, error.reason) from None
