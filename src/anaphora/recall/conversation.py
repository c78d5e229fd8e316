"""The conversation lane: from a question to the old turns that matter now.

In the order of the walk: sync the index, read the question (times, speakers, nicknames), score
(over the stages of a history where an order of events is asked for), fill the budget. It never
changes a record, and a failing embedder never makes it raise: words answer alone, and the answer
says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.language.times.told import ELSEWHEN
from anaphora.rank.pairs import REPLACED, statement_of
from anaphora.rank.silence import CALIBRATED_FOR, TURN_FLOOR
from anaphora.rank.turn_table import ROLE_USER
from anaphora.rank.turns import DEFAULT_WEIGHTS, Weights
from anaphora.recall.answers import with_floor
from anaphora.recall.links import KnownLinks, NoLinks, ToldStatement, judge_due
from anaphora.recall.narrowing import add_times, choose_rows, narrow_by_times, turns_naming
from anaphora.recall.passages import Cut, PassageFinder, anywhere
from anaphora.recall.pipeline import Pipeline
from anaphora.recall.query import BLANK, check_count, check_share, query_vector
from anaphora.recall.question import Question, prepare
from anaphora.recall.reading import begin_reading
from anaphora.recall.turn_candidates import FoundTurns, HitLimits, QuestionRun
from anaphora.recall.turn_hits import TurnHitMaker, describe_turn
from anaphora.recall.turn_scores import TurnScorer
from anaphora.recall.view_cache import ViewCache
from anaphora.store.threads.ids import check_id
from anaphora.text.recalled import compared_text
from anaphora.values.conversations import Degraded, Recall, RecallMode, TurnChoice, TurnHit
from anaphora.values.links import is_turn_reference, turn_reference

if TYPE_CHECKING:
    from anaphora.embed.base import Vector
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns.index import TurnIndex
    from anaphora.index.turns.view import TurnView
    from anaphora.reading.service import ReaderService
    from anaphora.store.threads.conversations import Conversations


Rows = NDArray[np.intp]

# Characters of texts kept for the next question.
_TEXTS_KEPT = 4_000_000
_OVERHEAD = 100

# The last turns, of which one that was not linked yet may replace another turn.
_DUE = 48

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
        calibrated = embedder.name.startswith(CALIBRATED_FOR)
        self._pipeline = Pipeline(reader, self._links, calibrated)
        self._store = store
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._scorer = TurnScorer(index, embedder, weights)
        # As many answers are kept as query vectors: one setting for both.
        self._answers: ViewCache[_CachedAnswer] = ViewCache(embedder.cache_size)
        self._texts: ViewCache[str] = ViewCache(_TEXTS_KEPT, lambda text: _OVERHEAD + len(text))

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

        `silent_times` gets those of the notices that name a time without turns.
        """
        if conversation_id is not None:
            check_id(conversation_id)
            conversation_id = self._store.standing_id(conversation_id)
        check_count("top_k", top_k, 1)
        check_count("budget", budget, 0)
        floor = TURN_FLOOR if min_confidence is None else min_confidence
        check_share("min_confidence", floor)
        question = prepare(query, self._clock)
        window = begin_reading(read, mode, self._pipeline.reader, question)
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
        notices += narrowing.notices + answer.notices
        recall = Recall(answer.hits, degradations, notices=notices)
        # A question for nothing but a time is answered by anything said then.
        recall = with_floor(recall, answer.answered, limits.floor)
        return add_times(recall, question.times, now)

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
            meaning, hits, answer_probability = self._answer(run, limits)
            degradations = (*run.degraded, *run.unread)
            answer = _CachedAnswer(
                meaning, hits, degradations, answer_probability, tuple(run.notices)
            )
            # What was unavailable may be there the next time, and there may be no cache.
            if not answer.degraded and self._embedder.cache_size:
                self._answers.put(view, key, answer)
        return answer

    def _answer(
        self, run: QuestionRun, limits: HitLimits
    ) -> tuple[str | None, tuple[TurnHit, ...], float | None]:
        """The text that a vector was needed of, the hits, and how probably one answers."""
        view = run.view
        meaning, scores = self._scorer.score(run)

        def vector() -> Vector | None:
            return None if meaning is None else query_vector(self._embedder, meaning, [])

        finder = PassageFinder(view, run.question.words, vector, self._cut)
        turns = FoundTurns(
            run,
            scores,
            limits,
            self._scorer.weights,
            finder,
            lambda rows: self._read_texts(view, rows),
        )
        placed_turns, confidence = self._pipeline.place(turns, limits.floor)
        return meaning, TurnHitMaker(self._store, turns).best(placed_turns), confidence

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
        _, hits, answer_probability = self._answer(run, HitLimits(top_k))
        degradations = (*question.notices, *run.degraded)
        return Recall(hits, degradations, confidence=answer_probability, notices=tuple(run.notices))

    def told(self, references: Collection[str]) -> list[ToldStatement]:
        """What turns of these say, those that were told by now."""
        _, view = self._index.synced_view(None, embed="none")
        rows, now = self._rows_of(view, references), self._clock().timestamp()
        rows = {name: row for name, row in rows.items() if view.table.ts[row] <= now}
        texts = self._read_texts(view, list(rows.values()))
        return [
            ToldStatement(name, text, describe_turn(self._store, view.table, row)["ts"])
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
            turn = describe_turn(self._store, table, row)
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

    def title_of(self, conversation_id: str) -> str:
        """What a conversation is called, "" where it has no name."""
        view = self._index.view()
        rows = view.rows(conversation_id)
        return view.title(int(view.table.conversation[rows[0]])) if len(rows) else ""

    def _read_texts(self, view: TurnView, rows: Sequence[int]) -> list[str]:
        """The texts of rows; those that were read before for the same view come from memory."""
        texts = {row: self._texts.get(view, row) for row in rows}
        if missing := [row for row, text in texts.items() if text is None]:
            for row, text in zip(missing, self._index.texts_of(view, missing), strict=True):
                texts[row] = text
                if text:
                    self._texts.put(view, row, text)
        return [texts[row] or "" for row in rows]


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
