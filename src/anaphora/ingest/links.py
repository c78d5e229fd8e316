"""Links between statements: what each one makes of its nearest earlier ones, worked out behind.

A statement is a turn, a memory or a note that holds. It is judged once (`PairJudge`), with
the nearest of the earlier ones. Where it came late, later ones that it may concern are judged again
once all that has come was judged: so the order in which they come does not matter. What was changed
since is judged anew.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from anaphora.errors import AnaphoraError
from anaphora.index.maintenance import Background, try_lock
from anaphora.language.analyser import QueryWord, query_words
from anaphora.language.small_talk import QUESTION_MARKS
from anaphora.rank.holding import LINKED
from anaphora.rank.pairs import (
    OUTDONE,
    REPEATED,
    REPLACED,
    UNDECIDED,
    PairVerdict,
    Statement,
    StatementPair,
    beside_rivals,
)
from anaphora.rank.statements import HEAD, read_statement
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER
from anaphora.store.codecs import to_micros
from anaphora.store.threads.gojson import REDACTED
from anaphora.store.verdicts import PUT_BACK, StoredVerdicts
from anaphora.text.recalled import compared_text
from anaphora.values.links import StatementLink, is_turn_reference, statement_stamp, turn_reference

if TYPE_CHECKING:
    from anaphora.calls.progress import ProgressCount
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.ingest.judging import PairJudge
    from anaphora.store.db.engine import Write
    from anaphora.store.records.store import Records
    from anaphora.values.memories import Contradiction

LEAST: Final = 0.05
"""The probability of a replacement from which on a link is kept; of a repetition `OUTDONE`."""

NEIGHBOURS: Final = 32
"""Earlier statements with which one is judged."""

LATER: Final = 96
"""Later statements that may have one that comes late among their nearest: more, as what is near to
one need not have it near to itself."""

SHARED_WORDS: Final = 0.5
"""What the share of words in common counts beside the cosine, to find them."""

READ: Final = 4
"""Pairs of a statement that the model reads, where features leave more in doubt."""

PIECE: Final = 8
"""Statements that are judged in one transaction."""

REST: Final = 0.1
"""Seconds from a write to the work behind it: a burst of writes is worked off together."""

_AT_ONCE: Final = 256
_KEPT: Final = 2_048
_ROUNDS: Final = 5
_PATIENCE: Final = 5.0

Vector: TypeAlias = Any
Numbers: TypeAlias = Any
_Ends: TypeAlias = tuple[str, str]
"""The older and the newer end of a link."""
_Links: TypeAlias = dict[_Ends, tuple[StatementLink, float]]
"""Links by their ends, and the cosine of the two."""


class Statements(ABC):
    """The statements of one kind that have a vector, in the order of `references`.

    `at` (n,) are their times, `keys` change with them; `pending` are those without a vector.
    """

    def __init__(
        self, references: list[str], at: Numbers, keys: Sequence[int], pending: Collection[str]
    ) -> None:
        self.references, self.at, self.keys, self.pending = references, at, keys, pending
        self.judged = np.zeros(len(references), np.bool_)

    @abstractmethod
    def read(self, places: Sequence[int]) -> list[Statement | None]:
        """These statements as they are now; None for what is none, or is none any more."""

    @abstractmethod
    def first_parts(self, places: Sequence[int]) -> Sequence[Vector | None]:
        """The vectors of their beginnings."""

    @abstractmethod
    def nearness(self, vector: Vector, words: Sequence[QueryWord]) -> Numbers:
        """How near each one is to a statement, (n,)."""


class TurnStatements(Statements):
    """The turns of users and assistants with a known time.

    Those without a vector wait for the background of their index: an embedder may take any time.
    """

    def __init__(self, index: TurnIndex) -> None:
        self._index = index
        _, self._view = index.synced_view(embed="none")
        table = self._table = self._view.table
        is_said = (table.role == ROLE_USER) | (table.role == ROLE_ASSISTANT)
        rows = np.flatnonzero(is_said & ~np.isnan(table.ts))
        columns = (table.conversation[rows].tolist(), table.position[rows].tolist())
        references = [
            turn_reference(table.conversations[code], position)
            for code, position in zip(*columns, strict=True)
        ]
        has_vector = self._view.embedded[rows]
        self._rows = rows = rows[has_vector]
        hashes = self._view.hashes
        turns = zip(
            rows.tolist(),
            table.ts[rows].tolist(),
            table.speaker[rows].tolist(),
            table.role[rows].tolist(),
            strict=True,
        )
        keys = [hash((hashes[row], at, self._name(code), role)) for row, at, code, role in turns]
        flags = has_vector.tolist()
        pending = [name for name, has in zip(references, flags, strict=True) if not has]
        references = [name for name, has in zip(references, flags, strict=True) if has]
        super().__init__(references, table.ts[rows], keys, pending)

    def read(self, places: Sequence[int]) -> list[Statement | None]:
        """As in `Statements`; with the turn before each in its sitting."""
        table, rows = self._table, self._rows[list(places)]
        before = table.beside[0][rows]
        needed = np.unique(np.concatenate((rows, before[before < len(table)]))).tolist()
        texts = dict(zip(needed, self._index.texts_of(self._view, needed), strict=True))
        return [
            _statement(
                texts[row],
                float(table.ts[row]),
                self._name(int(table.speaker[row])),
                assistant=int(table.role[row]) == ROLE_ASSISTANT,
                before=_asked(_own_words(texts.get(previous, ""))),
            )
            for row, previous in zip(rows.tolist(), before.tolist(), strict=True)
        ]

    def first_parts(self, places: Sequence[int]) -> Sequence[Vector | None]:
        """As in `Statements`."""
        return [self._view.first_part(row) for row in self._rows[list(places)].tolist()]

    def nearness(self, vector: Vector, words: Sequence[QueryWord]) -> Numbers:
        """As in `Statements`."""
        return self._view.nearness(vector, words, SHARED_WORDS)[self._rows]

    def _name(self, code: int) -> str:
        return self._table.speakers[code] if code >= 0 else ""


class RecordStatements(Statements):
    """The memories, or the notes, that hold now and do not stand apart."""

    def __init__(self, records: Records, index: MemoryIndex, now: datetime) -> None:
        self._records, self._index, self._now = records, index, to_micros(now)
        ids, columns, has_vector = index.statements(now)
        apart = records.standing_alone()
        chosen = [number for number, record_id in enumerate(ids) if record_id not in apart]
        flags = has_vector[chosen].tolist()
        pending = [ids[number] for number, has in zip(chosen, flags, strict=True) if not has]
        chosen = [number for number, has in zip(chosen, flags, strict=True) if has]
        numbers, created, noted = columns[chosen].T
        at = np.where(noted > self._now, created, noted) / 1e6
        super().__init__([ids[number] for number in chosen], at, numbers.tolist(), pending)

    def read(self, places: Sequence[int]) -> list[Statement | None]:
        """As in `Statements`."""
        ids = [self.references[number] for number in places]
        records = self._records.many(ids)
        return [
            _statement(record.text, self._time_of(record.created_at, record.last_reinforced))
            if (record := records.get(record_id)) and not record.valid_to and not record.forgotten
            else None
            for record_id in ids
        ]

    def first_parts(self, places: Sequence[int]) -> Sequence[Vector | None]:
        """As in `Statements`."""
        return self._index.first_parts([self.references[number] for number in places])

    def nearness(self, vector: Vector, words: Sequence[QueryWord]) -> Numbers:
        """As in `Statements`."""
        return self._index.nearness(vector, words, SHARED_WORDS, self.references)

    def _time_of(self, created_at: datetime, noted_at: datetime) -> float:
        noted = to_micros(noted_at)
        return (to_micros(created_at) if noted > self._now else noted) / 1e6


def _asked(before: str) -> str:
    """The turn before one, if it asks: beside any other the order of telling must not matter."""
    return before if before.rstrip(" \"'»”’)*_\n").endswith(QUESTION_MARKS) else ""


def _own_words(text: str) -> str:
    return "" if text == REDACTED else compared_text(text)


def _statement(
    text: str, at: float, speaker: str = "", *, assistant: bool = False, before: str = ""
) -> Statement | None:
    words = _own_words(text)
    if not words.strip():
        return None
    name = "" if assistant else speaker
    return Statement(words, at, name, assistant, read_statement(words), before)


def _stamp_of(statement: Statement | None) -> str:
    """The stamp of a statement, "" of none."""
    return "" if statement is None else statement_stamp(statement.text, statement.at, statement.by)


_Place: TypeAlias = tuple[Statements, int]
"""One statement: of these the one at this place."""


def _reference(place: _Place) -> str:
    kind, number = place
    return kind.references[number]


def _first_parts(places: Iterable[_Place]) -> dict[_Place, Vector | None]:
    """The vectors of the beginnings of statements, of each kind together."""
    numbers: dict[Statements, dict[int, None]] = {}
    for kind, number in places:
        numbers.setdefault(kind, {})[number] = None
    return {
        (kind, number): part
        for kind, chosen in numbers.items()
        for number, part in zip(chosen, kind.first_parts(list(chosen)), strict=True)
    }


@dataclass(frozen=True, slots=True)
class _Due:
    """A statement that is to be judged; in order of time."""

    at: float
    reference: str
    of: Statements
    place: int
    was_judged: bool
    """An earlier one has come since."""


@dataclass(slots=True)
class _Look:
    """All statements at one moment, those that are due, and what was judged and is none now."""

    kinds: Sequence[Statements]
    due: list[_Due] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    @property
    def pending(self) -> int:
        """How many wait for their vectors."""
        return sum(len(kind.pending) for kind in self.kinds)


@dataclass(slots=True)
class _Judged:
    """What was judged of some statements: their stamps and links, and which were `rejudged`.

    `disturbed` are later ones that are to be judged again.
    """

    stamps: dict[str, str] = field(default_factory=dict)
    links: _Links = field(default_factory=dict)
    rejudged: list[str] = field(default_factory=list)
    disturbed: set[str] = field(default_factory=set)


class StatementLinks:
    """The links of one namespace: made behind the writes, looked up by questions. Thread-safe.

    `look` gives the statements of each kind as they are now; `folder` has the lock of whoever makes
    them. `both_hold` gives the pairs of some records of which people said that both hold; `propose`
    is told of memories that replace others, and how close they are; what it gives is told by
    `tell`. `fill` begins to make the vectors that turns lack: memories get theirs where they are
    written, or by the next question. Without a judge there are none.
    """

    def __init__(
        self,
        verdicts: StoredVerdicts,
        judge: PairJudge,
        look: Callable[[], Sequence[Statements]],
        folder: Path,
        both_hold: Callable[[Collection[str]], Iterable[tuple[str, str]]],
        propose: Callable[[Write, Mapping[_Ends, float]], Sequence[Contradiction]],
        *,
        tell: Callable[[Contradiction], None],
        fill: Callable[[], None],
    ) -> None:
        self._verdicts, self._judge, self._look_at, self._folder = verdicts, judge, look, folder
        self._both_hold, self._propose, self._tell = both_hold, propose, tell
        self._fill = fill
        self.worker = Background("anaphora-linking")
        self._lock = threading.RLock()
        self._beginning = threading.Lock()
        # While the background is at it.
        self._working = threading.RLock()
        # While it is found out how many are left.
        self._looking = threading.Lock()
        self._is_due = self._is_active = False
        self._left_count = 0
        # What the database has, and the stamps of statements by what changes with them.
        self._judged: dict[str, tuple[str, str]] = {}
        self._stamps: dict[str, tuple[int, str]] = {}
        self._read: dict[str, Statement | None] = {}

    def of(self, references: Collection[str]) -> Sequence[StatementLink]:
        """The links that have one of these statements at either end, of what may order the two.

        Where people said that both hold, no judge says otherwise.
        """
        links = self._verdicts.of(references, LINKED, REPEATED)
        both_ends = (end for link in links for end in (link.older, link.newer))
        ends = {end for end in both_ends if not is_turn_reference(end)}
        settled = {frozenset(pair) for pair in self._both_hold(ends)} if ends else set()
        return [link for link in links if frozenset((link.older, link.newer)) not in settled]

    def version(self) -> Hashable:
        """What changes with every change of links, in any process: cheap to read."""
        return self._verdicts.linkings()

    def stamps(self, references: Collection[str]) -> Mapping[str, str]:
        """The stamps with which these were judged; those that were not are missing."""
        return self._verdicts.stamps(references)

    def judge_features(self, pairs: Sequence[StatementPair]) -> Sequence[PairVerdict]:
        """What the later statement of each pair makes of the earlier, by features alone."""
        return self._judge.judge_features(pairs)

    def begin(self) -> None:
        """Make what is due in the background, soon."""
        with self._beginning:
            self._is_due = True
            if not (self._is_active and self.worker.running):
                # One that has just come to its end, or failed.
                self.worker.wait()
                self._is_active = self.worker.begin(self._work)

    def run(
        self,
        limit: int | None = None,
        stopping: Callable[[], bool] = lambda: False,
        progress: ProgressCount | None = None,
    ) -> int:
        """Judge what is due, the oldest first, at most `limit` statements; how many.

        It ends early when `stopping` becomes true, and where another process is at it. `progress`
        is told how many of those that are due are done. `StoreError` and its kinds.
        """
        if not self._judge.is_there:
            return 0
        judged_count = 0
        with self._lock:
            failures = 0
            while failures < _ROUNDS:
                self._read.clear()
                with self._looking:
                    look = self._look(stopping)
                    self._left_count = len(look.due) + look.pending
                if look.pending:
                    self._fill()
                if not (look.due or look.gone) or stopping():
                    break
                with try_lock(self._folder, "links.lock") as is_alone:
                    if not is_alone:
                        break
                    due = look.due if limit is None else look.due[: limit - judged_count]
                    done_count = self._judge_due(look, due, stopping, progress)
                judged_count += done_count
                if done_count == len(due):
                    break
                failures = 0 if done_count else failures + 1
            self._read.clear()
        return judged_count

    def finish(self, timeout: float | None = None, progress: ProgressCount | None = None) -> bool:
        """Make all that is due, also where another process is at it; False on time-out.

        What cannot be kept now is left.
        """
        begun = time.monotonic()
        until = begun + (threading.TIMEOUT_MAX if timeout is None else timeout)
        due_count = -1
        while self._judge.is_there:
            with self._beginning:
                # The background needs no look at what is made here.
                self._is_due = False
            with suppress(AnaphoraError):
                self.run(stopping=lambda: time.monotonic() > until, progress=progress)
            with self._lock:
                left_count = len(self._look().due)
            if not left_count:
                break
            if time.monotonic() > until:
                self.begin()
                return False
            if left_count != due_count:
                due_count, begun = left_count, time.monotonic()
            elif time.monotonic() > begun + _PATIENCE:
                break
            time.sleep(REST / 2)
        # The background may have begun to look: it reads nothing once this has returned.
        if self._working.acquire(timeout=max(0.0, until - time.monotonic())):
            self._working.release()
        return True

    def count_due(self) -> int:
        """How many statements are to be judged, those without a vector yet among them.

        It waits for nobody: where they are being judged, it is how many of those are left.
        """
        if not self._judge.is_there:
            return 0
        if not self._lock.acquire(blocking=False):
            with self._looking:
                return self._left_count
        try:
            look = self._look()
        finally:
            self._lock.release()
        return len(look.due) + look.pending

    def forget_all(self) -> None:
        """Forget every link: all are made again."""
        with self._lock:
            if any(self._verdicts.count()):
                with self._verdicts.change() as work:
                    work.clear()

    def release(self) -> None:
        """End the background; it may begin again."""
        self.worker.stop()
        self.worker.stopping.clear()

    def close(self) -> None:
        """End the background for good."""
        self.worker.stop()

    def _work(self) -> None:
        while True:
            self.worker.stopping.wait(REST)
            with self._beginning:
                if not self._is_due or self.worker.stopping.is_set():
                    self._is_active = False
                    return
                self._is_due = False
                self._working.acquire()
            try:
                # What could not be made now is due at the next write, or in the next process.
                with suppress(AnaphoraError):
                    self.run(stopping=self.worker.stopping.is_set)
            finally:
                self._working.release()

    def _look(self, stopping: Callable[[], bool] = lambda: False) -> _Look:
        """What there is; nothing is due where it was stopped."""
        if self._verdicts.count() != self._count_judged():
            self._judged = self._verdicts.judged()
        look = _Look(self._look_at())
        version, present = self._judge.version, set[str]()
        for kind in look.kinds:
            if not self._stamp(kind, stopping):
                return _Look(())
            for number, reference in enumerate(kind.references):
                stamp = self._stamps[reference][1]
                if not stamp:
                    continue
                present.add(reference)
                judged_stamp, judge = self._judged.get(reference, ("", ""))
                is_put_back = judged_stamp == stamp and judge == PUT_BACK
                kind.judged[number] = is_put_back or (judged_stamp, judge) == (stamp, version)
                if is_put_back or not kind.judged[number]:
                    at = float(kind.at[number])
                    look.due.append(_Due(at, reference, kind, number, is_put_back))
            present.update(kind.pending)
        look.due.sort(key=lambda due: (due.at, due.reference))
        look.gone = self._judged.keys() - present
        return look

    def _count_judged(self) -> tuple[int, int]:
        """As `StoredVerdicts.count`, of those that are known here."""
        return len(self._judged), sum(judge != PUT_BACK for _, judge in self._judged.values())

    def _stamp(self, kind: Statements, stopping: Callable[[], bool]) -> bool:
        """Note the stamps of those that changed: their texts are read. False if it was stopped."""
        stamps, keys = self._stamps, kind.keys
        nothing = None, ""
        places = [
            number
            for number, reference in enumerate(kind.references)
            if stamps.get(reference, nothing)[0] != keys[number]
        ]
        for start in range(0, len(places), _AT_ONCE):
            if stopping():
                return False
            portion = places[start : start + _AT_ONCE]
            for number, statement in zip(portion, kind.read(portion), strict=True):
                stamps[kind.references[number]] = keys[number], _stamp_of(statement)
        return True

    def _judge_due(
        self,
        look: _Look,
        due: Sequence[_Due],
        stopping: Callable[[], bool],
        progress: ProgressCount | None,
    ) -> int:
        """Judge in pieces; how many were, before anything changed meanwhile."""
        if look.gone and not self._keep(_Judged(), look.gone, None):
            return 0
        done_count = 0
        while done_count < len(due) and not stopping():
            piece = due[done_count : done_count + PIECE]
            version = self._verdicts.version()
            judged = _Judged()
            for due_one in piece:
                (statement,) = due_one.of.read([due_one.place])
                stamp = _stamp_of(statement)
                if statement is None or stamp != self._stamps[due_one.reference][1]:
                    self._stamps.pop(due_one.reference)
                    return done_count
                due_one.of.judged[due_one.place] = True
                judged.stamps[due_one.reference] = stamp
                self._link(look, due_one, statement, judged)
            if not self._keep(judged, (), version):
                return done_count
            done_count += len(piece)
            self._left_count -= len(piece)
            if progress is not None:
                progress(done_count, len(due))
            # Let calls go on.
            time.sleep(0)
        return done_count

    def _keep(self, judged: _Judged, gone: Iterable[str], version: int | None) -> bool:
        """Write what was judged; False where something was forgotten or judged meanwhile."""
        judge = self._judge.version
        disturbed = {
            reference: self._judged[reference][0]
            for reference in judged.disturbed - judged.stamps.keys()
        }
        with self._verdicts.change() as work:
            if work.count() != self._count_judged() or version not in (None, work.write.before):
                return False
            work.drop(gone)
            links = [link for link, _ in judged.links.values()]
            work.put(judge, judged.stamps, links, judged.rejudged)
            work.put_back(disturbed)
            replacing = {
                ends: closeness
                for ends, (link, closeness) in judged.links.items()
                if link.replaces >= REPLACED and not any(map(is_turn_reference, ends))
            }
            proposed = self._propose(work.write, replacing) if replacing else ()
        for reference in gone:
            del self._judged[reference]
        stamps = judged.stamps.items()
        self._judged.update((reference, (stamp, judge)) for reference, stamp in stamps)
        for reference, stamp in disturbed.items():
            self._judged[reference] = stamp, PUT_BACK
        for contradiction in proposed:
            self._tell(contradiction)
        return True

    def _link(self, look: _Look, due: _Due, statement: Statement, judged: _Judged) -> None:
        """Note what one makes of its nearest earlier ones, and later ones that it disturbs.

        A later one that may replace it is judged again, once all that has come was judged: so
        links are those that it would have if this one had come first.
        """
        if len(self._read) > _KEPT:
            self._read.clear()
        own_place = due.of, due.place
        self._judge_newer(own_place, self._find_near(look, own_place, statement), judged.links)
        if due.was_judged:
            judged.rejudged.append(due.reference)
            return
        near_later = self._find_near(look, own_place, statement, later=True)
        pairs = self._pairs((own_place, later) for later in near_later)
        verdicts = self._judge.judge_features([pair for _, pair in pairs])
        judged.disturbed.update(
            _reference(later)
            for ((_, later), _), verdict in zip(pairs, verdicts, strict=True)
            if verdict.replaces >= UNDECIDED or verdict.repeats >= OUTDONE
        )

    def _judge_newer(self, newer: _Place, near: Iterable[_Place], links: _Links) -> None:
        """Put into `links` what one makes of those that are near to it, each beside its rivals."""
        pairs = self._pairs((earlier, newer) for earlier in near)
        judged = self._judge.judge([pair for _, pair in pairs], READ)
        ends = [(_reference(older), _reference(newer)) for (older, _), _ in pairs]
        verdicts = dict(zip(ends, judged, strict=True))
        rivals = {older for (older, _), verdict in verdicts.items() if verdict.replaces >= LEAST}
        of_one = self._verdicts.of_one(rivals, OUTDONE) if len(rivals) > 1 else {}
        of_one |= {pair: link.replaces + link.repeats for pair, (link, _) in links.items()}
        beside = beside_rivals(verdicts, of_one)
        for link_ends, (_, pair) in zip(ends, pairs, strict=True):
            verdict = beside[link_ends]
            if verdict.replaces >= LEAST or verdict.repeats >= OUTDONE:
                stamps = _stamp_of(pair.older), _stamp_of(pair.newer)
                chances = verdict.replaces, verdict.both, verdict.repeats
                links[link_ends] = StatementLink(*link_ends, *stamps, *chances), pair.closeness

    def _pairs(
        self, places: Iterable[tuple[_Place, _Place]]
    ) -> list[tuple[tuple[_Place, _Place], StatementPair]]:
        """Earlier and later statements as the judge takes them; without those that are none."""
        both_places = list(places)
        parts = _first_parts(chain.from_iterable(both_places))
        pairs = []
        for ends in both_places:
            older, newer = map(self._statement, ends)
            old_part, new_part = map(parts.__getitem__, ends)
            if older is None or newer is None or old_part is None or new_part is None:
                continue
            closeness = float(np.vecdot(old_part, new_part))
            pairs.append((ends, StatementPair(older, newer, closeness)))
        return pairs

    def _find_near(
        self, look: _Look, own: _Place, statement: Statement, *, later: bool = False
    ) -> list[_Place]:
        """The nearest earlier ones that were judged, or the nearest later ones."""
        vector = own[0].first_parts([own[1]])[0]
        if vector is None:
            return []
        words, most = query_words(statement.text[:HEAD]), LATER if later else NEIGHBOURS
        near: list[tuple[float, str, _Place]] = []
        for kind in look.kinds:
            is_there = kind.at > statement.at if later else kind.at < statement.at
            places = np.flatnonzero(is_there & kind.judged)
            if not len(places):
                continue
            nearness = kind.nearness(vector, words)[places]
            if len(places) > most:
                best = np.argpartition(-nearness, most)[:most]
                places, nearness = places[best], nearness[best]
            chosen = zip(places.tolist(), nearness.tolist(), strict=True)
            near += [(-worth, kind.references[number], (kind, number)) for number, worth in chosen]
        near.sort(key=lambda one: one[:2])
        places_near = [near_place for _, _, near_place in near[:most]]
        for kind in look.kinds:
            self._read_once(kind, [number for of, number in places_near if of is kind])
        return places_near

    def _statement(self, place: _Place) -> Statement | None:
        """A statement as it was read in this run."""
        kind, number = place
        self._read_once(kind, [number])
        return self._read[kind.references[number]]

    def _read_once(self, kind: Statements, places: Sequence[int]) -> None:
        """Read statements that were not read yet in this run: the same are near to many."""
        places = [number for number in places if kind.references[number] not in self._read]
        statements = kind.read(places) if places else ()
        for number, statement in zip(places, statements, strict=True):
            self._read[kind.references[number]] = statement
