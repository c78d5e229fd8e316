"""The index of turns: follows the thread files, queried by words and vectors.

Its directory can vanish, be torn, or be written by another process at any time; the next answer is
correct nevertheless.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from anaphora.calls.limits import is_limited, part_of_time, time_left, wait_within
from anaphora.calls.progress import ProgressCount
from anaphora.errors import EmbeddingError
from anaphora.index.backlog import GROUP, IN_CALL, embed_texts
from anaphora.index.life_cycle import ROUNDS
from anaphora.index.turns.core import IndexCore
from anaphora.index.turns.embedded import embedded_text
from anaphora.index.turns.folder import IndexFolder
from anaphora.index.turns.records import IndexCheck, SyncResult
from anaphora.index.turns.source import FileThreadSource, SqlThreadSource, ThreadSource
from anaphora.index.turns.vectors import STEP, STEP_AT_CLOSE
from anaphora.index.turns.view import TurnView
from anaphora.index.vectors.matrix import to_float16
from anaphora.settings import EXACT_CAP
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.values.conversations import FINISH_VECTORS, Degraded

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore

INLINE_BACKLOG = 64
"""Texts that `sync` embeds before it returns; a larger backlog is left to the background."""

_NO_LIMIT = 86_400.0
"""Seconds: a wait takes no infinity."""

EmbedMode = Literal["inline", "all", "none"]


class TurnIndex:
    """The turns of one namespace. Cheap to make: it opens on first use.

    Thread-safe; any number of processes may share `directory`. `embed` modes of `sync`: "inline"
    embeds a backlog of up to INLINE_BACKLOG texts, those that fit into IN_CALL characters, and
    leaves the remainder, or a larger backlog, to a background thread; "all" embeds everything
    before it returns, "none" nothing. `cap` is how many parts of texts are scanned in memory before
    LanceDB stores them on disk (0: always, None: never; never in a sealed home, since LanceDB
    stores vectors in clear). `follow` is called when turns got their vectors.
    """

    def __init__(
        self,
        directory: Path,
        store: ConversationStore | SqlConversationStore,
        sidecar: Sidecar | None,
        embedder: EmbedderService,
        *,
        sealer: IndexSealer = CLEAR_INDEX,
        cap: int | None = EXACT_CAP,
        follow: Callable[[], object] = lambda: None,
    ) -> None:
        from anaphora.store.threads.file_store import ConversationStore

        source: ThreadSource
        if isinstance(store, ConversationStore):
            source = FileThreadSource(store, sidecar, sealer=sealer)
        else:
            source = SqlThreadSource(store, sidecar, sealer)
        self._embedder = embedder
        self._follow = follow
        self._core = IndexCore(
            IndexFolder(Path(directory), sealer),
            source,
            (embedder.name, embedder.dimensions),
            cap,
        )
        self._life = self._core.life
        self._outage: EmbeddingError | None = None
        self._embedding = threading.Lock()
        # Whether a call embeds everything: other calls answer without waiting for it.
        self._embeds_all = False
        # Texts that queries wait for, which are embedded next, and whether the background embeds.
        self._first: dict[bytes, None] = {}
        self._at_work = False
        # Whether the background embeds a long text, so that waiting for it is pointless.
        self._at_long = False
        self._progress = threading.Condition()

    def sync(
        self,
        conversation_id: str | None = None,
        *,
        embed: EmbedMode = "inline",
        progress: ProgressCount | None = None,
    ) -> SyncResult:
        """Catch up with the files of one thread, or of all, as of the time of the call.

        A text that cannot be embedded does not hold up the others: later calls try it again, three
        times in all. `progress` is called with (texts embedded, texts to embed).
        """
        return self._sync(conversation_id, embed, progress)[0]

    def synced_view(
        self, conversation_id: str | None = None, *, embed: EmbedMode = "inline"
    ) -> tuple[SyncResult, TurnView]:
        """`sync`, and a view of what was synced.

        An index that is removed in between is synced again; if that happens repeatedly, the result
        reports it.
        """
        for _ in range(ROUNDS):
            sync_result, view, is_same = self._sync(conversation_id, embed, None)
            if is_same:
                return sync_result, view
        lost_notice = Degraded("index", "it was removed repeatedly while it was read")
        return replace(sync_result, degraded=(*sync_result.degraded, lost_notice)), view

    def embed_first(
        self, keys: Sequence[bytes], seconds: float, conversation_id: str | None
    ) -> tuple[SyncResult, TurnView]:
        """Embed these texts, by hash, before others; then `synced_view`.

        Waits at most `seconds` once the model is loaded, and at most half of this call's time: the
        background embeds the remaining texts.
        """
        missing = set(self._missing())
        short_keys = self._short([key for key in keys if key in missing])
        # A short backlog was just tried: its remaining texts cannot be embedded.
        waits = self._at_work or self._embeds_all or len(missing) > INLINE_BACKLOG
        waits = waits and not self._at_long
        if waits and short_keys and self._outage is None and self._embedder.ready(time_left()):
            self._wait_for(short_keys, time.monotonic() + part_of_time(seconds))
        return self.synced_view(conversation_id, embed="none")

    def _wait_for(self, keys: Sequence[bytes], ends: float) -> None:
        """Wait until these texts were tried, at most until `ends`."""

        def settled() -> bool:
            idle = not self._at_work and not self._embeds_all
            return idle or self._first.keys().isdisjoint(keys)

        def wait(seconds: float | None) -> bool:
            with self._progress:
                return self._progress.wait_for(settled, seconds)

        with self._progress:
            self._first.update(dict.fromkeys(keys))
        try:
            for _ in range(ROUNDS):
                if not self._embeds_all:
                    self._begin_work()
                in_time = wait_within(wait, max(0.0, ends - time.monotonic()))
                if not in_time or self._outage or self._first.keys().isdisjoint(keys):
                    return
                # The background is writing or ending: another run begins after it.
                wait_within(self._life.worker.wait, max(0.0, ends - time.monotonic()))
        finally:
            self._tried(keys)

    def _next(self, waiting: dict[bytes, None], count: int) -> list[bytes]:
        """Remove the next texts to embed from `waiting`: first those that a query waits for."""
        with self._progress:
            first_keys = [key for key in self._first if key in waiting][:count]
        later = (key for key in waiting if key not in self._first)
        batch = first_keys or list(islice(later, count))
        for key in batch:
            del waiting[key]
        return batch

    def _tried(self, keys: Sequence[bytes]) -> None:
        with self._progress:
            for key in keys:
                self._first.pop(key, None)
            self._progress.notify_all()

    def _begin_work(self) -> None:
        with self._progress:
            if self._at_work:
                return
            self._at_work = True
        if not self._life.begin(self._work):
            self._end_embedding()

    def _end_embedding(self) -> None:
        with self._progress:
            self._at_work = False
            self._progress.notify_all()

    def _sync(
        self, conversation_id: str | None, embed: EmbedMode, progress: ProgressCount | None
    ) -> tuple[SyncResult, TurnView, bool]:
        """The result of a sync, a view, and whether the view is of the index that was synced."""
        core, embedded_count, is_same = self._core, 0, True

        def look() -> tuple[int, int, list[bytes], TurnView, int]:
            added_count = core.sync_threads(conversation_id)
            # Of this sync: others may follow at once.
            return added_count, core.unread, core.missing(), core.state.view(), core.openings

        added_count, unread_count, missing, view, opening = self._life.use(look)
        if embed == "all":
            embedded_count = self._embed_all(progress)
            core.settle(vectors=core.ann_due(STEP_AT_CLOSE))
        elif embed == "inline":
            embedded_count = self._embed_inline() if missing else 0
            if core.ann_due(STEP):
                self._begin_work()
        if embed == "all" or (embed == "inline" and missing):
            missing, view, present_openings = self._life.use(
                lambda: (core.missing(), core.state.view(), core.openings)
            )
            is_same = present_openings == opening
        pending = len(missing)
        return (
            SyncResult(added_count, embedded_count, pending, self._degraded(pending, unread_count)),
            view,
            is_same,
        )

    def view(self) -> TurnView:
        """A consistent view of the index as of the last `sync`."""
        # Not a bound method: the state is another one after the index was opened anew.
        return self._life.use(lambda: self._core.state.view())  # noqa: PLW0108

    def texts_of(self, view: TurnView, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Texts of rows of a view, verbatim; "" for a turn that was forgotten meanwhile."""
        hashes = [view.hashes[int(row)] for row in rows]
        texts = self._life.use(lambda: self._core.texts(hashes))
        if len(texts) < len(set(hashes)) and self._core.made_anew:
            # The view's index is gone: texts that were not forgotten are read from the threads.
            self._life.use(lambda: self._core.sync_threads(None))
            texts = self._life.use(lambda: self._core.texts(hashes))
        return [texts.get(key, "") for key in hashes]

    def fill(self) -> None:
        """Begin to make the vectors that turns lack, as of the last `sync`, in the background."""
        if self._missing():
            self._begin_work()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the background to end; False if it takes longer than `timeout` seconds."""
        return self._life.worker.wait(timeout)

    def close(self) -> None:
        """Stop the background after its current batch, write what is worth writing, and close."""
        self._life.close()

    def release(self) -> None:
        """Free files and memory until the next use."""
        self._life.release()

    def rebuild(self) -> bool:
        """Delete the index, including vectors, and read every thread again."""
        self._core.discard()
        self.sync(embed="none")
        return self.settle(vectors=False)

    def check(self) -> IndexCheck:
        """Check the whole index, and compare it with the thread files."""
        problems: list[str] = []
        self._core.source.problems.clear()
        threads_behind = self._life.use(self._core.behind)
        if threads_behind:
            problems.append(f"{len(threads_behind)} threads changed since they were indexed")
        if self._core.unwritable:
            problems.append(f"the index cannot be written: {self._core.unwritable}")
        view = self.view()
        with self._life.lock:
            state = self._core.state
            problems += self._core.open_ledger().file.problems()
            problems += [str(problem) for problem in self._core.source.problems]
            return IndexCheck(
                conversations=len(view.table.conversations),
                turns=len(view),
                vectors=state.vectors,
                pending=len(self._missing()),
                failed=len(state.failures),
                size=self._core.home.size(),
                problems=tuple(problems),
            )

    def settle(self, *, vectors: bool = True) -> bool:
        """Write what is only in memory; False if another process writes or the disk refuses.

        `vectors`: also move vectors to LanceDB, if it may be used, regardless of the cap.
        """
        return self._core.settle(vectors=vectors)

    # Vectors.

    def _embed_inline(self) -> int:
        if self._embeds_all:
            return 0
        if is_limited() or self._life.worker.running:
            # An embedder cannot be interrupted, so the background calls it: this call can give up.
            missing = self._missing()
            keys = self._fitting(missing)
            if keys and not self._at_long:
                self._wait_for(keys, time.monotonic() + part_of_time(_NO_LIMIT))
            self._begin_work()
            return len(missing) - len(self._missing())
        with self._embedding:
            missing = self._missing()
            keys = self._fitting(missing)
            embedded_count = self._embed(keys) if keys else 0
        if len(keys) < len(missing):
            self._begin_work()
        return embedded_count

    def _fitting(self, keys: list[bytes]) -> list[bytes]:
        """The texts to embed within a call: those of a short backlog that fit."""
        if len(keys) > INLINE_BACKLOG:
            return []
        room, fitting = IN_CALL, []
        texts = self._life.use(lambda: self._core.texts(keys))
        for key in keys:
            size = len(texts.get(key, ""))
            if size <= room:
                room -= size
                fitting.append(key)
        return fitting

    def _missing(self) -> list[bytes]:
        return self._life.use(self._core.missing)

    def _embed_all(self, progress: ProgressCount | None) -> int:
        embedded_count = 0
        with self._embedding:
            waiting = dict.fromkeys(self._missing())
            count = len(waiting)
            self._embeds_all = count > INLINE_BACKLOG
            try:
                while batch := self._next(waiting, GROUP):
                    embedded_count += self._embed(batch)
                    self._tried(batch)
                    if progress is not None:
                        progress(count - len(waiting), count)
                    if self._outage is not None:
                        break
            finally:
                self._embeds_all = False
                self._tried(())
        return embedded_count

    def _short(self, keys: list[bytes]) -> list[bytes]:
        """Those of the texts, by hash, that are embedded in a moment."""
        texts = self._life.use(lambda: self._core.texts(keys))
        return [key for key in keys if len(texts.get(key, "")) <= IN_CALL]

    def _embed(self, keys: list[bytes], stopping: Callable[[], bool] | None = None) -> int:
        """Embed texts by hash, without the lock, until `stopping` is true; how many succeeded."""
        stored_texts = self._life.use(lambda: self._core.texts(keys))
        texts = {
            key: embedded_text(stored_texts[key]) or " " for key in keys if key in stored_texts
        }
        if not texts:
            return 0
        try:
            vectors_by_key, failures = embed_texts(self._embedder, texts, stopping)
            # If all texts fail, try a simple one: the embedder itself may be out of order.
            probe_answer = (
                self._embedder.embed(["hello"])[0] if failures and not vectors_by_key else None
            )
        except EmbeddingError as error:
            probe_answer = error
        if isinstance(probe_answer, EmbeddingError):
            self._outage = probe_answer
            return 0
        self._outage = None
        vectors = {key: to_float16(vector) for key, vector in vectors_by_key.items()}
        failed_reasons = {key: str(error) for key, error in failures.items()}
        self._life.use(lambda: self._core.keep_vectors(vectors, failed_reasons))
        self._follow()
        return len(vectors)

    def _degraded(self, pending: int, unread_count: int) -> tuple[Degraded, ...]:
        problems = list(self._core.source.problems)
        if unread_count:
            reason = "there was no time to read it; the next question goes on"
            problems.append(Degraded("conversations", f"{unread_count} have changed: {reason}"))
        failed_count = len(self._core.state.failures)
        ledger = self._core.file.ledger
        if ledger is not None and not ledger.file.on_disk and not self._core.waiting:
            problems.append(Degraded("index", f"it cannot be written: {self._core.unwritable}"))
        if self._outage is not None:
            problems.append(Degraded("vectors", str(self._outage)))
        elif pending:
            problems.append(
                Degraded("vectors", f"{pending} texts have no vector yet; {FINISH_VECTORS}")
            )
        if failed_count:
            reason = next(iter(self._core.state.failures.values()))[1]
            problems.append(
                Degraded("vectors", f"{failed_count} texts could not be embedded: {reason}")
            )
        scanned_parts = self._core.state.parts
        if self._core.ann.beyond(scanned_parts):
            reason = "the extra large searches them faster"
            problems.append(Degraded("vectors", f"{scanned_parts:,} are scanned exactly: {reason}"))
        return tuple(problems)

    # The background.

    def _work(self) -> None:
        tried_keys: set[bytes] = set()
        try:
            while not self._life.worker.stopping.is_set():
                with self._embedding:
                    waiting = {key: None for key in self._missing() if key not in tried_keys}
                    batch = self._next(waiting, INLINE_BACKLOG)
                    tried_keys.update(batch)
                    self._embed_in_turn(batch)
                if not batch or self._outage is not None:
                    break
        finally:
            self._at_long = False
            self._end_embedding()
        if not self._life.worker.stopping.is_set():
            if self._core.ann_due(STEP):
                self._core.write_vectors()
            self._life.use(self._core.write_anew)

    def _embed_in_turn(self, batch: list[bytes]) -> None:
        """Embed texts in the background: short ones together, then long ones one by one."""
        stopping = self._life.worker.stopping.is_set
        short_keys = self._short(batch)
        long = [key for key in batch if key not in set(short_keys)]
        self._embed(short_keys, stopping)
        self._tried(short_keys)
        for key in long:
            if stopping() or self._outage is not None:
                return
            self._at_long = True
            self._embed([key], stopping)
            self._tried([key])
