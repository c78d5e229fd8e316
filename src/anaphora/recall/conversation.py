"""The conversation lane: from a question to the old turns that matter now.

In the order of the walk: sync the index, read the question (times, speakers, nicknames), score
(over the stages of a history where an order of events is asked for), fill the budget. It never
changes a record, and a failing embedder never makes it raise: words answer alone, and the answer
says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.calls.moments import EARLIEST, from_epoch
from anaphora.index.turns.embedded import embedded_text
from anaphora.language.analyser import analyse, query_words
from anaphora.language.times.told import ELSEWHEN
from anaphora.rank.budget import LONG, fill, token_cost
from anaphora.rank.embedders import embedder_reads
from anaphora.rank.pairs import REPLACED, statement_of
from anaphora.rank.question import (
    TEXTS,
    QuestionReading,
    find_bearer,
    match_misspelt,
    match_shortened,
    read_question,
    unknown_names,
)
from anaphora.rank.silence import CALIBRATED_FOR, TURN_FLOOR
from anaphora.rank.stages import spread_over_stages
from anaphora.rank.statements import read_cues
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER, TurnTable, speakers_present
from anaphora.rank.turns import (
    DEFAULT_WEIGHTS,
    TurnScores,
    Weights,
    score_by,
    score_turns,
)
from anaphora.reading.inputs import said_text, statement_text
from anaphora.recall.candidates import Candidate, Placed
from anaphora.recall.likelihood import with_floor
from anaphora.recall.narrowing import (
    choose_rows,
    narrow_by_times,
    tell_coming,
    tell_meant,
    turns_naming,
)
from anaphora.recall.ordering import order_candidates
from anaphora.recall.passages import Cut, PassageFinder, anywhere
from anaphora.recall.query import BLANK, check_count, check_share, query_vector
from anaphora.recall.question import Question, prepare
from anaphora.recall.reading import Window, begin_reading, day_of, titled_text
from anaphora.recall.successions import (
    KnownLinks,
    LinkedCandidates,
    NoLinks,
    ToldStatement,
    judge_due,
)
from anaphora.recall.turn_candidates import HitLimits, QuestionRun, TurnCandidates
from anaphora.recall.view_cache import ViewCache
from anaphora.store.threads.ids import check_id
from anaphora.text.recalled import compared_text, quotes_recalled
from anaphora.values.conversations import (
    Degraded,
    Recall,
    RecallMode,
    RelatedTurn,
    TurnChoice,
    TurnHit,
)
from anaphora.values.links import is_turn_reference, turn_reference

if TYPE_CHECKING:
    from anaphora.embed.base import Vector
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns.index import TurnIndex
    from anaphora.index.turns.view import TurnView
    from anaphora.index.words.lookup import Lookup
    from anaphora.reading.service import ReaderService
    from anaphora.store.threads.conversations import Conversations


Rows = NDArray[np.intp]

_ROLES = {ROLE_USER: "user", ROLE_ASSISTANT: "assistant"}

# Threads with their speakers remembered between questions, and names, unknown ones included.
_THREADS_KEPT = 256
_NAMES_KEPT = 512

# Characters of texts kept for the next question.
_TEXTS_KEPT = 4_000_000
_OVERHEAD = 100

# The last turns, of which one that was not linked yet may replace another turn.
_DUE = 48

# Turns that are looked at, back and then forth, for the other one of a conversation.
_STEPS = 4

# BM25 that counts half where the embedder does not read the question's language: what it says of
# meaning there is little more than which letters two texts share.
WORDS_HALF_ALONE = 5.0

# Turns without a vector that get theirs before the answer, though words find something.
LIKELY = 64

# Seconds that a question waits for the vectors of turns: some 400 short ones. Those of an
# interactive memory are there by then; a history that was just imported takes longer.
PATIENCE = 1.0

ANY_TURN = TurnChoice()


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    """What a view answered; `meaning` is the text that a vector was needed of, None for none."""

    meaning: str | None
    hits: tuple[TurnHit, ...]
    degraded: tuple[Degraded, ...]
    answered: float | None = None
    notices: tuple[str, ...] = ()


class ConversationRecall:
    """Answers questions from the turns of one namespace."""

    def __init__(
        self,
        store: Conversations,
        index: TurnIndex,
        embedder: EmbedderService,
        clock: Callable[[], datetime],
        weights: Weights = DEFAULT_WEIGHTS,
        *,
        cut: Cut = anywhere,
        reader: ReaderService | None = None,
        links: KnownLinks | None = None,
    ) -> None:
        self._cut = cut
        self._links = NoLinks() if links is None else links
        self._reader = reader
        self._store = store
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._weights = weights
        # As many answers are kept as query vectors: one setting for both.
        self._answers: ViewCache[_CachedAnswer] = ViewCache(embedder.cache_size)
        self._speakers: ViewCache[dict[int, str]] = ViewCache(_THREADS_KEPT)
        self._nicknames: ViewCache[int] = ViewCache(_NAMES_KEPT)
        self._texts: ViewCache[str] = ViewCache(_TEXTS_KEPT, lambda text: _OVERHEAD + len(text))

    @property
    def calibrated(self) -> bool:
        """Whether the embedder's cosines tell if anything answers."""
        return self._embedder.name.startswith(CALIBRATED_FOR)

    def recall(
        self,
        conversation_id: str | None,
        query: str | Question,
        *,
        top_k: int = 6,
        budget: int = 2500,
        exclude: Iterable[str] = (),
        mode: RecallMode = "hybrid",
        choice: TurnChoice = ANY_TURN,
        min_confidence: float | None = None,
        whole: bool = False,
        read: int | None = None,
        silent_times: list[str] | None = None,
    ) -> Recall[TurnHit]:
        """The best turns for `query`; see `Memory.recall_conversation` for the arguments.

        `silent_times` gets those of the notices that name a time without turns, or one to come.
        """
        if conversation_id is not None:
            check_id(conversation_id)
            conversation_id = self._store.standing_id(conversation_id)
        check_count("top_k", top_k, 1)
        check_count("budget", budget, 0)
        floor = TURN_FLOOR if min_confidence is None else min_confidence
        check_share("min_confidence", floor)
        question = prepare(query, self._clock)
        window = begin_reading(read, mode, self._reader, question)
        if question.is_blank:
            return Recall((), (BLANK,))
        sync_report, view = self._index.synced_view(conversation_id)
        rows, notices = _choose_rows(view, conversation_id, choice)
        if mode != "words" and not (view.is_embedded or view.embedded[rows].all()):
            likely = _pick_likely(view, rows, question)
            sync_report, view = self._index.embed_first(likely, PATIENCE, conversation_id)
            rows, notices = _choose_rows(view, conversation_id, choice)
        degradations = (*question.notices, *sync_report.degraded)
        if not len(rows):
            return Recall((), degradations, notices=notices)
        now = self._clock()
        named_turns = turns_naming(view.table, question, view.naming)
        narrowing = narrow_by_times(view.table, rows, question, named_turns, now)
        if silent_times is not None:
            silent_times.extend(narrowing.notices)
        if narrowing.empty and floor > 0:
            # What was said at other times is no near answer to a question for a time alone.
            return Recall((), degradations, notices=notices + narrowing.notices)
        run = QuestionRun(
            view,
            narrowing.rows,
            question,
            now.timestamp(),
            mode,
            window=window,
            naming=np.any(named_turns, axis=0) if named_turns else None,
            elsewhen=view.naming([ELSEWHEN]) if named_turns and not narrowing.empty else None,
            alone=question.asks_time_alone,
        )
        live = frozenset(text.strip() for text in exclude)
        limits = HitLimits(top_k, budget, live, whole, 0.0 if run.alone else floor)
        answer = self._answer_cached(run, limits, (conversation_id, choice))
        degradations += answer.degraded
        coming = tell_coming(((hit.text, hit.ts) for hit in answer.hits), question.times, now)
        if silent_times is not None:
            silent_times.extend(coming)
        meant_notices = tell_meant(((hit.text, hit.ts) for hit in answer.hits), question.times)
        notices += narrowing.notices + answer.notices + coming
        recall = Recall(answer.hits, degradations, notices=notices)
        # A question for nothing but a time is answered by anything said then.
        recall = with_floor(recall, answer.answered, limits.floor)
        return (
            replace(recall, notices=notices + meant_notices)
            if meant_notices and recall.hits
            else recall
        )

    def _answer_cached(
        self, run: QuestionRun, limits: HitLimits, chosen: tuple[str | None, TurnChoice]
    ) -> _CachedAnswer:
        view, mode = run.view, run.mode
        # What lies in the future counts from then on.
        is_coming = view.latest > run.now
        coming = int(np.count_nonzero(view.table.ts > run.now)) if is_coming else 0
        question_key = (run.question.text, mode, limits, run.question.spans, run.window)
        # Links are made behind the writes: an answer stands until there are others.
        key = (chosen, *question_key, coming, self._links.version())
        answer = self._answers.get(view, key)
        if answer is not None and answer.meaning is not None:
            # Can its vector still be had? Asking also counts as a hit of the cache of vectors.
            vector = query_vector(self._embedder, answer.meaning, [])
            answer = None if vector is None else answer
        if answer is None:
            meaning, scores = self._score(run)
            hits, answer_probability = self._fill(run, meaning, scores, limits)
            degradations = (*run.degraded, *run.unread)
            answer = _CachedAnswer(
                meaning, hits, degradations, answer_probability, tuple(run.notices)
            )
            # What was unavailable may be there the next time, and there may be no cache.
            if not answer.degraded and self._embedder.cache_size:
                self._answers.put(view, key, answer)
        return answer

    def recall_among(
        self, view: TurnView, rows: Rows, query: str | Question, *, top_k: int
    ) -> Recall[TurnHit]:
        """The `top_k` best turns for `query` among `rows` of `view`: threads, times, speakers.

        What the caller chose is cut before anything is ranked, so a narrow choice never starves.
        No budget of tokens: the caller bounds what it shows, and how often something was said.
        """
        question = prepare(query, self._clock)
        if question.is_blank or not len(rows):
            return Recall()
        named_turns = turns_naming(view.table, question, view.naming)
        run = QuestionRun(
            view,
            rows,
            question,
            self._clock().timestamp(),
            repetitions=True,
            naming=np.any(named_turns, axis=0) if named_turns else None,
            elsewhen=view.naming([ELSEWHEN]) if named_turns else None,
        )
        meaning, scores = self._score(run)
        hits, answer_probability = self._fill(run, meaning, scores, HitLimits(top_k))
        degradations = (*question.notices, *run.degraded)
        return Recall(hits, degradations, confidence=answer_probability, notices=tuple(run.notices))

    def told(self, references: Collection[str]) -> list[ToldStatement]:
        """What turns of these say, those that were told by now."""
        _, view = self._index.synced_view(None, embed="none")
        rows, now = self._rows_of(view, references), self._clock().timestamp()
        rows = {name: row for name, row in rows.items() if view.table.ts[row] <= now}
        texts = self._read_texts(view, list(rows.values()))
        return [
            ToldStatement(name, text, self._describe_turn(view.table, row)["ts"])
            for (name, row), text in zip(rows.items(), texts, strict=True)
            if text
        ]

    def find_due_replacing(self, references: Collection[str]) -> dict[str, str]:
        """What replaced turns, by features, of the last ones, where no link was made yet."""
        _, view = self._index.synced_view(None, embed="none")
        table, asked_rows = view.table, set(self._rows_of(view, references).values())
        first = min((table.ts[row] for row in asked_rows), default=np.inf)
        later_rows = view.all_rows[(table.role == ROLE_USER) & (table.ts > first)]
        later_rows = later_rows[np.argsort(table.ts[later_rows], kind="stable")[-_DUE:]]
        names = {
            row: turn_reference(table.conversations[table.conversation[row]], table.position[row])
            for row in asked_rows.union(later_rows.tolist())
        }
        judged = self._links.stamps(names.values())
        due = [row for row, name in names.items() if name not in judged]
        if not due:
            return {}
        statements = {}
        for row, text in zip(names, self._read_texts(view, list(names)), strict=True):
            turn = self._describe_turn(table, row)
            speaker = turn["speaker"] if turn["role"] == "user" else turn["role"]
            at = float(table.ts[row])
            statements[row] = statement_of(compared_text(text), at, speaker or "")
        unknown = float("nan")
        verdicts = judge_due(self._links, statements, due, lambda _, them: [unknown] * len(them))
        return {
            names[old]: names[new]
            for (old, new), verdict in verdicts.items()
            if old in asked_rows and verdict.replaces >= REPLACED
        }

    def _rows_of(self, view: TurnView, references: Iterable[str]) -> dict[str, int]:
        """The rows of turns by their references, of those that are turns and there."""
        rows_by_reference = {}
        for reference in filter(is_turn_reference, references):
            conversation_id, _, position = reference.rpartition("#")
            rows = view.rows(conversation_id)
            for row in rows[view.table.position[rows] == int(position)].tolist():
                rows_by_reference[reference] = row
        return rows_by_reference

    def _score(self, run: QuestionRun) -> tuple[str | None, TurnScores]:
        """Score the rows by what the mode asks for, by words alone where vectors cannot be had.

        The first value is the text whose vector was needed.
        """
        view, rows, mode = run.view, run.rows, run.mode
        if mode == "vector":
            cosine = self._compute_cosine(run, run.question.text)
            if cosine is not None:
                return run.question.text, score_by("meaning", cosine, rows=rows)
        only, limit = run.scope
        if mode == "words":
            words = view.words(run.look_up(run.question.asked_words), only)
            return None, score_by("words", words, rows=rows)
        # The speakers of these rows are the same for every question to one view.
        present = self._speakers.of(
            view, only, lambda: speakers_present(view.table, None if only is None else rows)
        )
        nickname_terms = self._find_nicknames(view, run.question.text, present, only)
        reading = read_question(run.question.text, present, run.question.spans, nickname_terms)
        looked_up = run.look_up(reading.words)
        words = view.words(looked_up, only, limit=limit)
        cosine = None if mode == "vector" else self._compute_cosine(run, reading.meaning, words)
        alike = _estimate_meaning(view, looked_up, reading, words, for_all=cosine is None)
        exact = view.exact(looked_up, only) if looked_up.exact else None
        if run.alone and run.naming is not None:
            # What tells of it first, then what was said then, last what told then of other days.
            of_then = run.naming.astype(np.float32)
            if run.elsewhen is not None:
                of_then[rows] = np.maximum(of_then[rows], ~run.elsewhen[rows] / 2)
            exact = np.maximum(of_then, 0.0 if exact is None else exact)
        weights = self._weights
        if not embedder_reads(self._embedder.name, run.question.text):
            weights = replace(weights, words_half=WORDS_HALF_ALONE)
        titles = view.titles(looked_up)
        scores = score_turns(
            view.table,
            reading,
            words,
            cosine,
            weights,
            rows=None if run.is_whole else rows,
            alike=alike,
            titles=titles,
            exact=exact,
            naming=run.naming,
            elsewhen=run.elsewhen,
        )
        if read_cues(run.question.text).order:
            scores = spread_over_stages(view.table, scores, self._weights)
        return None if cosine is None else reading.meaning, scores

    def _find_nicknames(
        self, view: TurnView, question: str, present: Mapping[int, str], only: int | None
    ) -> dict[str, int]:
        """Nicknames in `question` to codes of `present`; `only` is the one conversation, if any."""
        nicknames: dict[str, int] = {}
        for name in unknown_names(question, present):
            code = match_shortened(name, present)
            if code is None:
                code = self._nicknames.get(view, (name, only))
                if code is None:
                    words = view.words(query_words(name), only, limit=TEXTS)
                    # BM25 of one word: the shorter the turn, the better, and greetings are short.
                    rows = np.argsort(-words, kind="stable")[: min(TEXTS, np.count_nonzero(words))]
                    if len(rows):
                        writers = view.table.speaker[rows].tolist()
                        addressees = [find_addressee(view.table, row) for row in rows.tolist()]
                        texts = self._index.texts_of(view, rows)
                        speaker = find_bearer(name, zip(texts, writers, addressees, strict=True))
                    else:
                        speaker = match_misspelt(name, present)
                    code = -1 if speaker is None else speaker
                    self._nicknames.put(view, (name, only), code)
            if code in present:
                nicknames[name] = code
        return nicknames

    def _compute_cosine(
        self, run: QuestionRun, text: str, words: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32] | None:
        vector = query_vector(self._embedder, text, run.degraded)
        if vector is None:
            return None
        view, rows = run.view, run.rows
        if len(rows) == len(view):
            cosine = view.cosine(vector, also=None if words is None else np.flatnonzero(words > 0))
        else:
            cosine = view.cosine(vector, rows)
        # By cosine alone, it is the embedder's own.
        return cosine if run.mode == "vector" else self._embedder.calibration.asked.apply(cosine)

    def _fill(
        self, run: QuestionRun, meaning: str | None, scores: TurnScores, limits: HitLimits
    ) -> tuple[tuple[TurnHit, ...], float | None]:
        """The hits, and the probability that one of them answers, None where it is not known."""
        view, confidence = run.view, None

        def vector() -> Vector | None:
            return None if meaning is None else query_vector(self._embedder, meaning, [])

        finder = PassageFinder(view, run.question.words, vector, self._cut)
        turns = TurnCandidates(
            run,
            scores,
            limits,
            self._weights,
            finder,
            lambda rows: self._read_texts(view, rows),
        )
        candidates = turns.best_first()
        if run.mode == "hybrid":
            window = self._open_window(run, scores)
            is_rated = not run.degraded and (
                view.is_embedded or bool(view.embedded[run.rows].all())
            )
            ordering = order_candidates(
                window.ordered(candidates),
                run.question.text,
                LinkedCandidates(self._links, turns.reference_of, turns.fetch, turns.closeness),
                run.question.spans,
                statements=len(run.rows),
                repetitions=run.repetitions,
                calibrated=self.calibrated and is_rated,
                subject=run.question.subject,
            )
            placed_turns = ordering.without_tail(limits.floor)
            confidence = ordering.confidence if is_rated else None
        else:
            placed_turns = (Placed(candidate, candidate.score) for candidate in candidates)
        picks = fill(
            placed_turns,
            lambda placed: token_cost(placed.candidate.text),
            top_k=limits.top_k,
            budget=limits.budget,
            whole=limits.whole,
        )
        related_turns = self._read_related(
            view, scores, [pick.hit for pick in picks], finder, limits
        )
        hits = []
        for pick in picks:
            hit = self._make_hit(view.table, scores, pick.hit, related_turns)
            hits.append(finder.shortened(hit, int(scores.rows[pick.hit.index]), pick.room))
        return tuple(hits), confidence

    def _open_window(self, run: QuestionRun, scores: TurnScores) -> Window:
        """What reads the first candidates of a question, each with the turn before it."""
        view, table = run.view, run.view.table

        def statement_texts(candidates: Sequence[Candidate]) -> list[str]:
            rows = scores.rows[[candidate.index for candidate in candidates]]
            # The turns before, in the same sitting: what was said hours before is not what a turn
            # answers to.
            earlier = table.previous[rows]
            beside = (earlier >= 0) & (table.session[earlier] == table.session[rows])
            rows_before = np.unique(earlier[beside])
            previous_turns = {}
            before = rows_before.tolist()
            for row, text in zip(before, self._read_texts(view, before), strict=True):
                # What was forgotten meanwhile, and what only quotes a recall, is nothing.
                if text := embedded_text(text).strip():
                    speaker = int(table.speaker[row])
                    name = table.speakers[speaker] if speaker >= 0 else None
                    previous_turns[row] = said_text(text, name)
            return [
                statement_text(
                    titled_text(
                        candidate,
                        embedded_text(candidate.passage or candidate.text).strip() or " ",
                    ),
                    day=day_of(candidate.at),
                    speaker=candidate.speaker or None,
                    before=previous_turns.get(int(table.previous[row]), ""),
                )
                for candidate, row in zip(candidates, rows.tolist(), strict=True)
            ]

        return Window(
            run.question.text,
            run.window,
            "turns",
            self._reader,
            statement_texts,
            run.unread,
        )

    def title_of(self, conversation_id: str) -> str:
        """What a conversation is called, "" where it has no name."""
        view = self._index.view()
        rows = view.rows(conversation_id)
        return view.title(int(view.table.conversation[rows[0]])) if len(rows) else ""

    def _read_related(
        self,
        view: TurnView,
        scores: TurnScores,
        hits: Sequence[Placed],
        finder: PassageFinder,
        limits: HitLimits,
    ) -> Mapping[int, RelatedTurn]:
        """The turns that the hits are about, by their places; without those forgotten since.

        They stand beside what the budget counts: of one longer than that, a passage comes.
        """
        related_indexes = {
            index for placed in hits for index in (*placed.candidate.copies, *placed.previous)
        }
        related_indexes |= {placed.older_than for placed in hits if placed.older_than is not None}
        indexes = sorted(related_indexes)
        texts = self._read_texts(view, scores.rows[indexes].tolist()) if indexes else ()
        turns = {}
        for index, text in zip(indexes, texts, strict=True):
            row = int(scores.rows[index])
            room = LONG if token_cost(text) > max(limits.budget, LONG) else None
            if text:
                turn = RelatedTurn(**self._describe_turn(view.table, row), text=text)
                turns[index] = finder.shortened(turn, row, room)
        return turns

    def _read_texts(self, view: TurnView, rows: Sequence[int]) -> list[str]:
        """The texts of rows; those that were read before for the same view come from memory."""
        texts = {row: self._texts.get(view, row) for row in rows}
        if missing := [row for row, text in texts.items() if text is None]:
            for row, text in zip(missing, self._index.texts_of(view, missing), strict=True):
                texts[row] = text
                if text:
                    self._texts.put(view, row, text)
        return [texts[row] or "" for row in rows]

    def _make_hit(
        self,
        table: TurnTable,
        scores: TurnScores,
        placed: Placed,
        related: Mapping[int, RelatedTurn],
    ) -> TurnHit:
        candidate = placed.candidate
        replacing = None if placed.older_than is None else related.get(placed.older_than)
        return TurnHit(
            **self._describe_turn(table, int(scores.rows[candidate.index])),
            text=candidate.text,
            score=candidate.score,
            answers=placed.answers,
            read=candidate.read_probability,
            factors={**scores.explain(candidate.index), **candidate.changes},
            current=replacing is None,
            older_than=replacing,
            reason=placed.reason if replacing is not None else "",
            previous=tuple(related[index] for index in placed.previous if index in related),
            quotes_recalled=quotes_recalled(candidate.text),
            occurrences=tuple(related[index] for index in candidate.copies if index in related),
        )

    def _describe_turn(self, table: TurnTable, row: int) -> dict[str, Any]:
        """What a table says of a turn: the fields of a hit, but for its text."""
        speaker = int(table.speaker[row])
        conversation_id = table.conversations[int(table.conversation[row])]
        position, ts = int(table.position[row]), float(table.ts[row])
        offset = 0 if table.offset is None else int(table.offset[row])
        # A turn without a known time keeps Go's zero time, as its file has it.
        said_at = from_epoch(ts) if np.isfinite(ts) else EARLIEST
        if offset and np.isfinite(ts):
            # With the offset at which it was said, in minutes east of UTC.
            with suppress(OverflowError):
                said_at = said_at.astimezone(timezone(timedelta(minutes=offset)))
        role = _ROLES.get(int(table.role[row]), "")
        if not role:
            # Roles beside the usual two are rare and have no code: the thread itself says which.
            thread = self._store.get(conversation_id)
            in_thread = thread is not None and position < len(thread.turns)
            role = thread.turns[position].role if thread is not None and in_thread else "other"
        return {
            "conversation_id": conversation_id,
            "index": position,
            "role": role,
            "ts": said_at,
            "speaker": table.speakers[speaker] if speaker >= 0 else None,
        }


def _choose_rows(
    view: TurnView, conversation_id: str | None, choice: TurnChoice
) -> tuple[Rows, tuple[str, ...]]:
    """The rows of one conversation, or of all, that were chosen, and what to say of the choice."""
    if conversation_id is None:
        rows = view.all_rows
        if choice == ANY_TURN:
            return rows, ()
    else:
        rows = view.rows(conversation_id)
    return choose_rows(view.table, rows, choice)


def _pick_likely(view: TurnView, rows: Rows, question: Question) -> list[bytes]:
    """Hashes of turns without a vector that may answer: by their words, then the latest.

    A few where words answer meanwhile; where no turn has a word of the question, all.
    """
    words = view.words(view.look_up(question.words))
    unembedded_rows = rows[~view.embedded[rows]]
    order = np.lexsort((-unembedded_rows, -view.table.ts[unembedded_rows], -words[unembedded_rows]))
    max_rows = LIKELY if words[rows].any() else len(order)
    return [view.hashes[row] for row in unembedded_rows[order[:max_rows]].tolist()]


def _estimate_meaning(
    view: TurnView,
    looked_up: Lookup,
    reading: QuestionReading,
    words: NDArray[np.float32],
    *,
    for_all: bool,
) -> NDArray[np.float32] | None:
    """What words tell of the meaning of turns without a vector, or of all turns."""
    if not for_all and view.is_embedded:
        return None
    similarity = view.alike(looked_up, words, len(analyse(reading.meaning)))
    if not for_all:
        similarity[view.embedded] = 0.0
    return similarity


def find_addressee(table: TurnTable, row: int) -> int:
    """The code of the last speaker before the turn, else the first after it, or -1; not its own."""
    speaker = int(table.speaker[row])
    for column in (table.previous, table.following):
        beside = row
        for _ in range(_STEPS):
            beside = int(column[beside])
            if beside < 0:
                break
            if (code := int(table.speaker[beside])) not in (speaker, -1):
                return code
    return -1
