"""The conversation lane: from a question to the old turns that matter now.

In: a question, a thread or all threads, a budget. Out: `Recall[TurnHit]`, best first, each hit with
the factors of its score, and what was unavailable. It never changes truth, and a failing embedder
never makes it raise: words answer alone, and the result says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import analyse, query_terms
from anaphora.core.arguments import EARLIEST, from_epoch
from anaphora.errors import EmbeddingError, InvalidInput
from anaphora.rank.budget import fill, token_cost
from anaphora.rank.question import (
    TEXTS,
    QuestionReading,
    bearer,
    misspelt,
    read_question,
    shortened,
    speakers_present,
    unknown_names,
)
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER, TurnTable
from anaphora.rank.turns import (
    DEFAULT_WEIGHTS,
    TurnScores,
    Weights,
    best_rows,
    score_by_meaning,
    score_by_words,
    score_turns,
)
from anaphora.recall.times.reading import read_times
from anaphora.recall.truncation import read_of
from anaphora.recall.view_cache import Repeated
from anaphora.store.threads.ids import check_id
from anaphora.values.conversations import Degraded, Recall, RecallMode, TurnHit

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns.index import TurnIndex
    from anaphora.index.turns.view import TurnView
    from anaphora.store.threads.conversations import Conversations


# Names that are remembered between questions, nobody's among them.
_NAMES_KEPT = 512

# Turns that are looked at, back and then forth, for the other one of a conversation.
_STEPS = 4


@dataclass(frozen=True, slots=True)
class Nicknames:
    """Who is called what in the turns of one index."""

    index: TurnIndex
    _known: Repeated[int] = field(default_factory=lambda: Repeated(_NAMES_KEPT))

    def called(
        self, view: TurnView, question: str, present: Mapping[int, str], only: int | None
    ) -> dict[str, int]:
        """Names in `question` to codes of `present`; `only` is the one conversation, if it is."""
        found: dict[str, int] = {}
        for name in unknown_names(question, present):
            code = shortened(name, present)
            if code is None:
                code = self._bearer(view, name, present, only)
            if code in present:
                found[name] = code
        return found

    def _bearer(
        self, view: TurnView, name: str, present: Mapping[int, str], only: int | None
    ) -> int:
        """The code of who is called `name`, -1 for nobody."""
        code = self._known.get(view, (name, only))
        if code is None:
            words = view.words(query_terms(name), only, limit=TEXTS)
            # BM25 of one word: the shorter the turn, the better, and greetings are short.
            rows = np.argsort(-words, kind="stable")[: min(TEXTS, np.count_nonzero(words))]
            if len(rows):
                texts = self.index.texts_of(view, rows)
                found = bearer(name, _exchanges(view.table, rows, texts))
            else:
                found = misspelt(name, present)
            code = -1 if found is None else found
            self._known.put(view, (name, only), code)
        return code


def _exchanges(
    table: TurnTable, rows: NDArray[np.intp], texts: list[str]
) -> Iterator[tuple[str, int, int]]:
    for row, text in zip(rows.tolist(), texts, strict=True):
        yield text, int(table.speaker[row]), spoken_to(table, row)


def spoken_to(table: TurnTable, row: int) -> int:
    """The code of who last spoke before the turn, else first after it; not its own, -1 for none."""
    own = int(table.speaker[row])
    for column in (table.previous, table.following):
        beside = row
        for _ in range(_STEPS):
            beside = int(column[beside])
            if beside < 0:
                break
            if (code := int(table.speaker[beside])) not in (own, -1):
                return code
    return -1


Rows = NDArray[np.intp]
Spans = tuple[tuple[float, float], ...]

_ROLES = {ROLE_USER: "user", ROLE_ASSISTANT: "assistant"}
MODES: tuple[str, ...] = get_args(RecallMode)

# How long a question waits for a model that is still loading before words answer alone. Loading
# takes under a second; a machine that needs longer is better served by words now.
MODEL_PATIENCE = 10.0

# Candidates are ordered, and their texts read from the disk, in chunks that double: most questions
# are answered from the first, a long live transcript to exclude or a tight budget needs more.
FIRST_CHUNK = 8


# Threads whose speakers are remembered between questions.
_THREADS_KEPT = 256

# How many turns get a score for their words: beyond the best few hundred, the words of a question
# match by chance, and every one of them costs time.
WORD_HITS = 200

# More tokens than any thread holds.
NO_BUDGET = 1 << 40


@dataclass(frozen=True, slots=True)
class _Room:
    """What hits may take up: how many, how many tokens, and which texts are in the prompt."""

    top_k: int
    budget: int
    live: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a view answered; `meaning` is the text whose vector was needed, None for none."""

    meaning: str | None
    hits: tuple[TurnHit, ...]
    degraded: tuple[Degraded, ...]


@dataclass(frozen=True, slots=True)
class ConversationRecall:
    """Answers questions from the turns of one namespace."""

    store: Conversations
    index: TurnIndex
    embedder: EmbedderService
    clock: Callable[[], datetime]
    weights: Weights = field(default=DEFAULT_WEIGHTS)
    repeated: Repeated[_Answer] = field(init=False)
    present: Repeated[dict[int, str]] = field(init=False)
    names: Nicknames = field(init=False)

    def __post_init__(self) -> None:
        """As many answers are kept as query vectors: one setting for both."""
        object.__setattr__(self, "repeated", Repeated(self.embedder.cache_size))
        object.__setattr__(self, "present", Repeated(_THREADS_KEPT))
        object.__setattr__(self, "names", Nicknames(self.index))

    def recall(
        self,
        conversation_id: str | None,
        query: str,
        *,
        top_k: int = 6,
        budget: int = 2500,
        exclude: Iterable[str] = (),
        mode: RecallMode = "hybrid",
    ) -> Recall[TurnHit]:
        """The best turns for `query`; see `Memory.recall_conversation` for the arguments."""
        _check(conversation_id, query, top_k, budget, mode)
        if not query.strip():
            return Recall((), (Degraded("query", "it is blank: there is nothing to look for"),))
        query, cut = read_of(query)
        followed, view = self.index.synced_view(conversation_id)
        degraded = [*cut, *followed.degraded]
        rows = _rows(view, conversation_id)
        if not len(rows):
            return Recall((), tuple(degraded))
        spans = self._spans(query)
        live = frozenset(text.strip() for text in exclude)
        key = (conversation_id, query, mode, top_k, budget, live, spans)
        answer = self.repeated.get(view, key)
        if answer is None or not self._known(answer.meaning):
            answer = self._answer(view, rows, query, mode, spans, _Room(top_k, budget, live))
            # What was unavailable may be there the next time, and who wants no cache gets none.
            if not answer.degraded and self.embedder.cache_size:
                self.repeated.put(view, key, answer)
        return Recall(answer.hits, (*degraded, *answer.degraded))

    def among(self, view: TurnView, rows: Rows, query: str, *, top_k: int) -> Recall[TurnHit]:
        """The `top_k` best turns for `query` among `rows` of `view`: threads, times, speakers.

        What the caller chose is cut before anything is ranked, so a narrow choice never starves.
        No budget of tokens: the caller bounds what it shows.
        """
        if not query.strip() or not len(rows):
            return Recall()
        query, cut = read_of(query)
        degraded = list(cut)
        spans = self._spans(query)
        _, scores = self._score(view, rows, query, "hybrid", spans, degraded)
        return Recall(self._fill(view, scores, _Room(top_k, NO_BUDGET, frozenset())), (*degraded,))

    def _known(self, meaning: str | None) -> bool:
        """Whether the query's vector can still be had; asking also counts as a hit of its cache."""
        if meaning is None:
            return True
        try:
            self.embedder.query(meaning, timeout=MODEL_PATIENCE)
        except EmbeddingError:
            return False
        return True

    def _answer(
        self, view: TurnView, rows: Rows, query: str, mode: str, spans: Spans, room: _Room
    ) -> _Answer:
        degraded: list[Degraded] = []
        meaning, scores = self._score(view, rows, query, mode, spans, degraded)
        return _Answer(meaning, self._fill(view, scores, room), tuple(degraded))

    def _score(
        self,
        view: TurnView,
        rows: Rows,
        query: str,
        mode: str,
        spans: Spans,
        degraded: list[Degraded],
    ) -> tuple[str | None, TurnScores]:
        """Score `rows` by what `mode` asks for, by words alone where vectors cannot be had.

        The first value is the text whose vector was needed.
        """
        if mode == "vector":
            cosine = self._cosine(view, rows, query, degraded)
            if cosine is not None:
                return query, score_by_meaning(cosine, rows=rows)
        only, limit = _reach(view, rows)
        if mode == "words":
            return None, score_by_words(view.words(query_terms(query), only), rows=rows)
        present = self._present(view, rows, only)
        called = self.names.called(view, query, present, only)
        reading = read_question(query, present, spans, called)
        words = view.words(reading.terms, only, limit=limit)
        cosine = (
            None if mode == "vector" else self._cosine(view, rows, reading.meaning, degraded, words)
        )
        alike = _alike(view, reading, words, lacking=cosine is None)
        scores = score_turns(
            view.table, reading, words, cosine, self.weights, rows=rows, alike=alike
        )
        return None if cosine is None else reading.meaning, scores

    def _present(self, view: TurnView, rows: Rows, only: int | None) -> dict[int, str]:
        """Who speaks in these rows; it is the same for every question to one view."""
        found = self.present.get(view, only)
        if found is None:
            found = speakers_present(view.table, None if only is None else rows)
            self.present.put(view, only, found)
        return found

    def _spans(self, query: str) -> Spans:
        return tuple(
            (span.start.timestamp(), span.end.timestamp())
            for span in read_times(query, self.clock())
        )

    def _cosine(
        self,
        view: TurnView,
        rows: Rows,
        text: str,
        degraded: list[Degraded],
        words: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32] | None:
        try:
            vector = self.embedder.query(text, timeout=MODEL_PATIENCE)
        except EmbeddingError as error:
            degraded.append(Degraded("embeddings", f"words answered alone: {error}"))
            return None
        if len(rows) < len(view):
            return view.cosine(vector, rows)
        return view.cosine(vector, also=None if words is None else np.flatnonzero(words))

    def _fill(self, view: TurnView, scores: TurnScores, room: _Room) -> tuple[TurnHit, ...]:
        size = max(FIRST_CHUNK, room.top_k + 2)
        candidates = self._with_texts(view, scores, size, room.live)
        taken = fill(
            candidates,
            lambda item: token_cost(item[1]),
            top_k=room.top_k,
            budget=room.budget,
        )
        return tuple(self._hit(view.table, scores, place, text) for place, text in taken)

    def _with_texts(
        self, view: TurnView, scores: TurnScores, size: int, live: frozenset[str]
    ) -> Iterator[tuple[int, str]]:
        """Places and their texts, best first, without the turns of the live transcript."""
        done = 0
        while True:
            places = best_rows(view.table, scores, done + size)
            chunk = places[done:]
            texts = self.index.texts_of(view, scores.rows[chunk])
            for place, text in zip(chunk, texts, strict=True):
                # An empty text is a turn that was forgotten since the view was taken.
                if text and text.strip() not in live:
                    yield int(place), text
            if len(chunk) < size:
                return
            done, size = done + size, 2 * size

    def _hit(self, table: TurnTable, scores: TurnScores, place: int, text: str) -> TurnHit:
        row = int(scores.rows[place])
        speaker = int(table.speaker[row])
        conversation_id = table.conversations[int(table.conversation[row])]
        position = int(table.position[row])
        return TurnHit(
            conversation_id=conversation_id,
            index=position,
            role=self._role(int(table.role[row]), conversation_id, position),
            text=text,
            ts=_when(float(table.ts[row])),
            score=float(scores.total[place]),
            factors=scores.explain(place),
            speaker=table.speakers[speaker] if speaker >= 0 else None,
        )

    def _role(self, code: int, conversation_id: str, position: int) -> str:
        if code in _ROLES:
            return _ROLES[code]
        # Roles beside the usual two are rare and have no code: the thread itself says which.
        thread = self.store.get(conversation_id)
        known = thread is not None and position < len(thread.turns)
        return thread.turns[position].role if thread is not None and known else "other"


def _rows(view: TurnView, conversation_id: str | None) -> Rows:
    if conversation_id is None:
        return np.arange(len(view), dtype=np.intp)
    return view.rows(conversation_id)


def _alike(
    view: TurnView, reading: QuestionReading, words: NDArray[np.float32], *, lacking: bool
) -> NDArray[np.float32] | None:
    """What words tell of the meaning of turns without a vector, or of all when it is `lacking`."""
    if not lacking and view.embedded.all():
        return None
    found = view.alike(reading.terms, words, len(analyse(reading.meaning)))
    if not lacking:
        found[view.embedded] = 0.0
    return found


def _reach(view: TurnView, rows: Rows) -> tuple[int | None, int]:
    """The one conversation of these rows (None: several), and how many turns words must score."""
    if len(rows) == len(view):
        return None, WORD_HITS
    codes = view.table.conversation[rows]
    if int(codes.min()) == int(codes.max()) and len(rows) == int(
        np.count_nonzero(view.table.conversation == codes[0])
    ):
        return int(codes[0]), WORD_HITS
    # The best of all are cut before the rows are looked at: those of the rows must be among them.
    return None, max(WORD_HITS, len(view))


def _when(epoch: float) -> datetime:
    # A turn without a known time keeps Go's zero time, as its file has it.
    return from_epoch(epoch) if np.isfinite(epoch) else EARLIEST


def _check(
    conversation_id: str | None, query: object, top_k: object, budget: object, mode: str
) -> None:
    if conversation_id is not None:
        check_id(conversation_id)
    if not isinstance(query, str):
        raise InvalidInput("query", query, "expected a string")
    for name, value, least in (("top_k", top_k, 1), ("budget", budget, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidInput(name, value, f"expected a whole number, {least} or more")
    if mode not in MODES:
        raise InvalidInput("mode", mode, f"expected one of {', '.join(MODES)}")
