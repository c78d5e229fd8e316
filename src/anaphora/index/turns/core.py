"""The core of an index of turns: opens, reopens, syncs and writes it.

Changes that the disk refuses stay in memory; files that are torn or gone are rebuilt. Nothing is
embedded here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from anaphora.calls.limits import time_is_up
from anaphora.index.life_cycle import ROUNDS, IndexLife
from anaphora.index.maintenance import IndexBusy, IndexLost
from anaphora.index.turns.folder import IndexFolder
from anaphora.index.turns.ledger import MAX_ATTEMPTS, TurnIndexFile
from anaphora.index.turns.records import AnnCheckpoint, IndexChange, Indexed
from anaphora.index.turns.source import ThreadSource
from anaphora.index.turns.state import State
from anaphora.index.turns.vectors import STEP_AT_CLOSE, OpenLedger, TurnAnn

READ_ANYWAY = 32
"""Threads that are always read, however little time a call has."""

_TRANSACTION = 2_000
_RETRY_SECONDS = 30.0


class _VectorPlan(NamedTuple):
    """Vectors of an index file to write to LanceDB, from `since` to the target of the claim."""

    ledger: TurnIndexFile
    since: int
    claim: AnnCheckpoint


class IndexCore:
    """The index file, its state in memory, and the source. The lock of `life` guards all three."""

    def __init__(
        self,
        home: IndexFolder,
        source: ThreadSource,
        embedder: tuple[str, int],
        cap: int | None,
    ) -> None:
        self.home = home
        self.source = source
        self._name, self.dimensions = embedder
        self.life = IndexLife(
            "anaphora-index",
            home.directory,
            ensure_open=self.open_ledger,
            mend=self._mend,
            do_without=self._do_without,
            finish=self._finish,
            let_go=self.let_go,
        )
        self.file = OpenLedger(self.dimensions, self.life.lock)
        # LanceDB stores vectors in clear, so a sealed home must not use it.
        cap = None if home.sealer.sealed else cap
        self.ann = TurnAnn(home.ann, embedder, cap, self.file)
        self._ann_refused = -_RETRY_SECONDS
        self.state = self._empty()
        self.unwritable = ""
        self.waiting = False
        self._seen_outside = -1
        self._noted: set[str] = set()
        self._opened_at = 0.0
        # How often the index was opened, and at which opening all threads were last synced.
        self.openings = 0
        self._whole_at = 0
        # Threads that the last sync left to the next one, because it ran out of time.
        self.unread = 0

    def let_go(self) -> None:
        """Close the file; the next use opens it again."""
        ledger, self.file.ledger = self.file.ledger, None
        if ledger is not None:
            ledger.file.close()

    def discard(self) -> None:
        """Delete the index, including vectors; the next use makes it anew."""
        with self.life.lock:
            self.let_go()
            self.home.discard()
            self.state.unsaved.clear()

    def _mend(self, error: Exception) -> None:
        """Remove a torn file: a missing one is just opened anew."""
        if isinstance(error, IndexLost):
            ledger = self.file.ledger
            torn = ledger is None or ledger.file.current()
            self.let_go()
            if not torn or self.home.discard():
                return
        # Reading only ever waits while another process makes or removes the file.
        time.sleep(0.01)

    def _do_without(self, error: Exception) -> None:
        self.let_go()
        self._opened_at, self.waiting = time.monotonic(), False
        self._start_over(self.home.in_memory(self._name))
        if not isinstance(error, IndexBusy):
            self.unwritable = "it was lost repeatedly"
        elif not self.unwritable:
            self.unwritable = str(error)

    def open_ledger(self) -> TurnIndexFile:
        """The open ledger of the file now at the path. The caller holds the lock."""
        ledger = self.file.ledger
        if ledger is not None and ledger.file.current():
            # A disk that could not be written is tried again from time to time.
            retry_due = time.monotonic() - self._opened_at > _RETRY_SECONDS
            if ledger.file.on_disk or self.waiting or not retry_due:
                return ledger
        self.let_go()
        self._opened_at = time.monotonic()
        if self.home.begun():
            return self._begin()
        # A query writes nothing into a home: the first turn makes the file.
        self.waiting, self.unwritable = True, ""
        ledger = self.home.in_memory(self._name)
        self._start_over(ledger)
        return ledger

    def _begin(self) -> TurnIndexFile:
        """Open the file, made if there is none. The caller holds the lock."""
        self.let_go()
        self.waiting = False
        ledger, self.unwritable = self.home.open(self._name)
        self._start_over(ledger)
        return ledger

    def _start_over(self, ledger: TurnIndexFile) -> None:
        unsaved_vectors = self.state.unsaved
        self.openings += 1
        self.file.ledger = ledger
        self.state = self._empty()
        self.state.unsaved = unsaved_vectors
        self._seen_outside = ledger.file.outside_version()
        self.state.absorb(ledger)
        self.state.view()
        point = self.state.point
        assert point is not None
        self.life.seq, self._noted = point.notes, set()
        if ledger.file.on_disk:
            with self.life.writing("ann") as is_locked:
                if is_locked:
                    self.home.remove_ann_but(ledger.ann_embedders())

    def _empty(self) -> State:
        home = self.home
        return State(self._read_forms, self.dimensions, home.sealer.token_key, self.ann)

    def _read_forms(self) -> list[str]:
        """The words as written of all rows of the file; none of one that is gone."""
        with suppress(IndexLost, IndexBusy), self.life.lock:
            if self.file.ledger is not None:
                return self.file.ledger.forms()
        return []

    def sync_threads(self, conversation_id: str | None) -> int:
        """Bring the index up to date with one thread, or with all; how many turns are new.

        A number tells only which notes changed: threads are compared with their checkpoints in the
        index file, which other processes write and remove.
        """
        added_count = 0
        if self.waiting and self.source.differing(self.state.known_checkpoints(), None):
            self._begin()
        self.source.problems.clear()
        for _ in range(ROUNDS):
            self._absorb_outside()
            opening = self.openings
            self.life.catch_up(self.source.notes_version, self._take_notes)
            changes, writable = self._changes(conversation_id)
            if changes or writable:
                added_count = sum(len(change.records) for change in changes) or added_count
                if not self._write([*writable, *changes]):
                    continue
            # Changes relative to a file that vanished meanwhile do not apply to the new one.
            if self.openings == opening:
                break
        else:
            if self.openings != opening:
                raise IndexLost("it was removed repeatedly")
        if conversation_id is None and not self.unread:
            self._whole_at = self.openings
        self.state.view()
        return added_count

    def _take_notes(self, since: int) -> int:
        """Note which threads have speakers that may have changed: each is checked once."""
        noted_threads = self.source.noted_since(since) if self.state.checkpoints else frozenset()
        self._noted |= noted_threads
        return len(noted_threads)

    @property
    def made_anew(self) -> bool:
        """Whether it was opened since all threads were synced: any of them may be missing."""
        return self._whole_at != self.openings

    def _absorb_outside(self) -> None:
        ledger = self.open_ledger()
        if ledger.file.wants_purge:
            ledger.file.purge()
        version = ledger.file.outside_version()
        if version != self._seen_outside or self.ann.failed:
            self.state.absorb(ledger)
            self._seen_outside = version

    def behind(self) -> list[str]:
        """Threads with changes that have not been synced yet."""
        self._absorb_outside()
        checkpoints = self.state.known_checkpoints()
        changes, _ = self._changes(None)
        return [
            change.conversation_id
            for change in changes
            if change.checkpoint is None
            or not change.checkpoint.same_content(checkpoints.get(change.conversation_id))
        ]

    def _changes(self, conversation_id: str | None) -> tuple[list[IndexChange], list[IndexChange]]:
        """The changes in the threads, and the overlay's changes that could be written now."""
        state, source = self.state, self.source
        keys = dict.fromkeys(source.differing(state.known_checkpoints(), conversation_id))
        noted_threads = {key for key in self._noted if conversation_id in (None, key)}
        keys.update((key, None) for key in sorted(noted_threads) if key in state.checkpoints)
        indexed_state = Indexed(
            lambda checkpoint: self.open_ledger().digests(checkpoint.code), state.speakers_of
        )
        changes = []
        self.unread = 0
        for count, key in enumerate(keys):
            if count >= READ_ANYWAY and time_is_up():
                # The next call reads the remaining threads.
                self.unread = len(keys) - count
                break
            # Relative to the index file: the whole difference replaces the overlay's change.
            change = source.change(
                key, state.checkpoints.get(key), indexed_state, noted=key in noted_threads
            )
            if change is not None:
                changes.append(change)
            else:
                state.drop(key)
        else:
            self._noted -= noted_threads
        differing = {change.conversation_id for change in changes}
        return changes, [c for key, c in state.overlay.items() if key not in differing]

    def _write(self, changes: list[IndexChange]) -> bool:
        """Write changes, or keep them in memory; False if they have to be collected again."""
        ledger, state = self.open_ledger(), self.state
        # Until all noted threads are checked, the next opening has to collect them again.
        notes = None if self._noted else self.life.seq
        written_count = 0
        while written_count < len(changes):
            # Few enough that a killed process loses little and others can write.
            sizes = accumulate(len(change.records) + 1 for change in changes[written_count:])
            count = next((n for n, size in enumerate(sizes, 1) if size > _TRANSACTION), None)
            batch = changes[written_count:][:count]
            try:
                is_written = ledger.apply(batch, notes)
            except IndexBusy as error:
                state.absorb(ledger)
                state.keep(changes[written_count:])
                self.unwritable = str(error)
                return True
            if not is_written:
                state.absorb(ledger)
                return False
            written_count += len(batch)
        with suppress(IndexBusy):
            self._save_vectors()
        state.absorb(ledger)
        assert state.point is not None
        if any(change.dropped for change in changes):
            # Forgotten turns must leave the disk at once.
            self.home.remove_ann_but(ledger.ann_embedders())
        if ledger.file.on_disk:
            self.unwritable = ""
        return True

    def missing(self) -> list[bytes]:
        """Hashes of texts without a vector that are worth another attempt, oldest turn first.

        The index must be open.
        """
        view, failures = self.state.view(), self.state.failures
        if view.is_embedded:
            return []
        rows = np.flatnonzero(~view.embedded).tolist()
        unembedded_hashes = dict.fromkeys(view.hashes[row] for row in rows)
        return [key for key in unembedded_hashes if failures.get(key, (0, ""))[0] < MAX_ATTEMPTS]

    def keep_vectors(self, vectors: dict[bytes, bytes], failed: dict[bytes, str]) -> None:
        """Use new vectors, count failed attempts, and save both if possible."""
        state = self.state
        state.add_vectors(vectors)
        for key, reason in failed.items():
            state.failures[key] = (state.failures.get(key, (0, ""))[0] + 1, reason)
        with suppress(IndexBusy):
            self._save_vectors()
            if failed:
                self.open_ledger().save_failures(failed.items())

    def _save_vectors(self) -> None:
        state = self.state
        if state.unsaved:
            self.open_ledger().save_vectors(state.unsaved.items())
            # The file only takes vectors of its own texts: those of the overlay have to wait.
            waiting = state.overlay_texts()
            state.unsaved = {key: v for key, v in state.unsaved.items() if key in waiting}

    def texts(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Texts by hash, without those that were forgotten meanwhile."""
        overlay = self.state.overlay_texts() if self.state.overlay else {}
        texts = {key: overlay[key] for key in keys if key in overlay}
        texts.update(self.open_ledger().texts([key for key in keys if key not in texts]))
        missing = [key for key in keys if key not in texts]
        if missing and not set(missing).isdisjoint(self.state.view().hashes):
            raise IndexLost("texts are missing")
        return texts

    def settle(self, *, vectors: bool = True) -> bool:
        """Write what is only in memory; see `TurnIndex.settle`."""
        if not self.life.use(lambda: self.open_ledger().file.on_disk):
            return False
        return self.write_vectors() if vectors and self.ann.writable() else True

    def write_anew(self) -> None:
        """Give the room of forgotten texts back to the disk, if it is much."""
        with suppress(IndexBusy):
            self.open_ledger().write_anew()

    def ann_due(self, limit: int) -> bool:
        """Whether memory has more vectors than the cap, or than `limit` beside LanceDB."""
        ledger, point = self.file.ledger, self.state.point
        if ledger is None or point is None or not ledger.file.on_disk or not self.ann.writable():
            return False
        if time.monotonic() - self._ann_refused < _RETRY_SECONDS:
            return False
        vector_limit = limit if point.ann_upto else self.ann.cap
        return self.state.parts > (vector_limit or 0) and point.last_vector > point.ann_upto

    def write_vectors(self) -> bool:
        """Write the vectors that are only in memory to LanceDB, regardless of the cap.

        They count once the index file has their checkpoint. The index is not locked while they are
        written: forgetting a text meanwhile removes the checkpoint.
        """

        def begin() -> _VectorPlan | bool:
            ledger = self.open_ledger()
            self.state.absorb(ledger)
            assert self.state.point is not None
            before, since = self.state.point.ann, self.state.point.ann_upto
            target = self.state.point.last_vector
            if target <= since:
                return True
            claim = AnnCheckpoint(before.generation, before.upto, target)
            if not since:
                claim = AnnCheckpoint("", 0, target)
            is_claimed = self._move_ann(ledger, before, claim)
            return _VectorPlan(ledger, since, claim) if is_claimed else self._refuse_ann()

        def write(plan: _VectorPlan) -> AnnCheckpoint | None:
            written = self.ann.write(plan.ledger, plan.since, plan.claim.target)
            if written is None:
                self.life.use(self._refuse_ann)
            return written

        def end(plan: _VectorPlan, written: AnnCheckpoint) -> bool:
            return self._move_ann(plan.ledger, plan.claim, written) or self._refuse_ann()

        return self.life.write("ann", begin, write, end)

    def _move_ann(self, ledger: TurnIndexFile, before: AnnCheckpoint, after: AnnCheckpoint) -> bool:
        """Replace the checkpoint of the ANN index; False if it, or the file, is another one."""
        with suppress(IndexBusy):
            if self.open_ledger() is ledger and ledger.move_ann(before, after):
                self.state.absorb(ledger)
                return True
        return False

    def _refuse_ann(self) -> bool:
        self._ann_refused = time.monotonic()
        self.home.remove_ann_but(self.open_ledger().ann_embedders())
        return False

    def _finish(self) -> None:
        if self.ann_due(STEP_AT_CLOSE):
            self.write_vectors()
