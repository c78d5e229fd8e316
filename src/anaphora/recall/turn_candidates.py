"""The turns of one question as candidates: which come next, and which are linked to them.

In: a question to rows of a view, and their scores. Out: candidates with their texts, best first,
and those that a link names. A text is read when it is needed, once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.calls.limits import check_cancelled
from anaphora.index.turns.embedded import embedded_text
from anaphora.language.analyser import QueryWord
from anaphora.rank.turn_table import ROLE_ASSISTANT
from anaphora.rank.turns import TurnScores, Weights, best_rows
from anaphora.reading.inputs import said_text, statement_text
from anaphora.recall.candidates import Candidate
from anaphora.recall.passages import PassageFinder
from anaphora.recall.reading import day_of, titled_text
from anaphora.text.recalled import strip_recalled
from anaphora.values.conversations import Degraded, RecallMode
from anaphora.values.links import turn_reference

if TYPE_CHECKING:
    from anaphora.index.turns.view import TurnView
    from anaphora.index.words.lookup import Lookup
    from anaphora.rank.silence import Lane
    from anaphora.recall.narrowing import Mask
    from anaphora.recall.question import Question

Rows = NDArray[np.intp]

FIRST_CHUNK: Final = 18
"""Candidates are ordered, and their texts read from the disk, in chunks that double: most questions
are answered from the first, a long live transcript to exclude or a tight budget needs more."""

WORD_HITS: Final = 200
"""How many turns get a score for their words: beyond the best few hundred, the words of a question
match by chance, and every one of them costs time."""

NO_BUDGET: Final = 1 << 40
"""More tokens than any thread holds."""


@dataclass(frozen=True)
class QuestionRun:
    """A question to rows of a view. `degraded` gets what was unavailable, `notices` what the
    caller should know; `unread` gets why its candidates could not be read with it.

    `repetitions`: turns that say the same are several hits. `window`: so many candidates are read.
    `naming`: the turns whose text names a day of its times, None for none, `elsewhen` those that
    name others than their own; `alone`: only turns of its times answer it. `now` is when it is
    asked, in seconds since 1970.
    """

    view: TurnView
    rows: Rows
    question: Question
    now: float
    mode: RecallMode = "hybrid"
    repetitions: bool = False
    window: int = 0
    naming: Mask | None = None
    elsewhen: Mask | None = None
    alone: bool = False
    degraded: list[Degraded] = field(default_factory=list)
    unread: list[Degraded] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def look_up(self, words: Sequence[QueryWord]) -> Lookup:
        """What words are looked up by; a word that is read as another one is told."""
        lookup = self.view.look_up(words)
        self.notices.extend(lookup.notices("no turn"))
        return lookup

    @property
    def is_whole(self) -> bool:
        """Whether its rows are those of all turns."""
        return self.rows is self.view.all_rows

    @cached_property
    def scope(self) -> tuple[int | None, int]:
        """The one conversation of the rows (None: several), and how many turns words must score."""
        if self.is_whole:
            return None, WORD_HITS
        conversation = self.view.table.conversation
        codes = conversation[self.rows]
        if int(codes.min()) == int(codes.max()) and len(self.rows) == int(
            np.count_nonzero(conversation == codes[0])
        ):
            return int(codes[0]), WORD_HITS
        # The best of all are cut before the rows are looked at: those of the rows must be among
        # them.
        return None, max(WORD_HITS, len(self.view))


@dataclass(frozen=True, slots=True)
class HitLimits:
    """What hits may take up: how many, how many tokens, and which texts are in the prompt.

    `whole`: no passage stands for a long turn. Where anything answers as probably as
    `floor`, those that hardly do not come (0: they do).
    """

    top_k: int
    budget: int = NO_BUDGET
    live: frozenset[str] = frozenset()
    whole: bool = False
    floor: float = 0.0


@dataclass(frozen=True)
class FoundTurns:
    """The scored turns of one question: `Found` of the pipeline.

    `texts_of` reads the texts of rows.
    """

    run: QuestionRun
    scores: TurnScores
    limits: HitLimits
    weights: Weights
    finder: PassageFinder
    texts_of: Callable[[Sequence[int]], Sequence[str]]
    lane: Lane = "turns"
    # How many are candidates is known when all were read.
    count: None = None

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.run.question

    @property
    def window(self) -> int:
        """How many are read with the question."""
        return self.run.window

    @property
    def unread(self) -> list[Degraded]:
        """Gets why they could not be."""
        return self.run.unread

    @property
    def searched(self) -> int:
        """How many turns were asked."""
        return len(self.run.rows)

    @property
    def repetitions(self) -> bool:
        """Whether turns that say the same are several hits."""
        return self.run.repetitions

    @property
    def is_ranked(self) -> bool:
        """Whether more than meaning or words alone order them."""
        return self.run.mode == "hybrid"

    @cached_property
    def is_rated(self) -> bool:
        """Whether all turns that may be shown have a cosine."""
        view, rows = self.run.view, self.run.rows
        return not self.run.degraded and (view.is_embedded or bool(view.embedded[rows].all()))

    def best_first(self) -> Iterator[Candidate]:
        """The candidates, best first, without the turns of the live transcript."""
        read_count = 0
        size = max(FIRST_CHUNK, self.limits.top_k + 2, self.run.window + 1)
        while True:
            check_cancelled()
            indexes = best_rows(self.run.view.table, self.scores, read_count + size)[read_count:]
            yield from self._read(indexes)
            if len(indexes) < size:
                return
            read_count, size = read_count + size, 2 * size

    def reference_of(self, candidate: Candidate) -> str:
        """How a link names the turn of a candidate."""
        table, row = self.run.view.table, int(self.scores.rows[candidate.index])
        conversation_id = table.conversations[int(table.conversation[row])]
        return turn_reference(conversation_id, int(table.position[row]))

    def fetch(self, references: Collection[str]) -> list[Candidate]:
        """The candidates of these turns, of those that were scored."""
        table, indexes = self.run.view.table, []
        for reference in references:
            conversation_id, _, position = reference.rpartition("#")
            rows = self.run.view.rows(conversation_id) if conversation_id else ()
            indexes += [
                int(self._indexes[row]) for row in rows if table.position[row] == int(position)
            ]
        return list(self._read(np.array([at for at in indexes if at >= 0], np.intp)))

    def closeness(self, candidate: Candidate, others: Sequence[Candidate]) -> list[float]:
        """The cosine of a candidate to each of others."""
        rows = self.scores.rows[[turn.index for turn in others]]
        near: list[float] = self.run.view.closeness(
            int(self.scores.rows[candidate.index]), rows
        ).tolist()
        return near

    def reader_texts(self, candidates: Sequence[Candidate]) -> list[str]:
        """What a reader reads of them: each with the turn before it, its day and speaker."""
        table = self.run.view.table
        rows = self.scores.rows[[candidate.index for candidate in candidates]]
        # The turns before, in the same sitting: what was said hours before is not what a turn
        # answers to.
        earlier = table.previous[rows]
        beside = (earlier >= 0) & (table.session[earlier] == table.session[rows])
        rows_before = np.unique(earlier[beside])
        previous_turns = {}
        before = rows_before.tolist()
        for row, text in zip(before, self.texts_of(before), strict=True):
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

    @cached_property
    def _indexes(self) -> NDArray[np.intp]:
        """The index among the scores of each row of the view, -1 for none."""
        indexes = np.full(len(self.run.view), -1, np.intp)
        indexes[self.scores.rows] = np.arange(len(self.scores.rows))
        return indexes

    def _read(self, indexes: Rows) -> Iterator[Candidate]:
        """Candidates with their texts."""
        scores, table, naming = self.scores, self.run.view.table, self.run.naming
        rows = scores.rows[indexes]
        row_list, speakers, times = rows.tolist(), table.speaker[rows].tolist(), table.ts[rows]
        parts = {name: scores.factors.get(name) for name in ("meaning", "speaker", "title")}
        meanings, named, titles = (
            [0.0] * len(rows) if part is None else part[indexes].tolist() for part in parts.values()
        )
        columns = (
            indexes.tolist(),
            row_list,
            self.texts_of(row_list),
            scores.total[indexes].tolist(),
            meanings,
            times.tolist(),
            speakers,
            (table.role[rows] == ROLE_ASSISTANT).tolist(),
            named,
            titles,
            (times > self.run.now).tolist(),
            [False] * len(rows) if naming is None else naming[rows].tolist(),
        )
        cosine_of_meaning = self.weights.cosine_of_meaning
        title_share = self.weights.scale / self.weights.title
        for (
            index,
            row,
            text,
            score,
            meaning,
            at,
            speaker,
            assistant,
            name_match,
            title_match,
            coming,
            timely,
        ) in zip(*columns, strict=True):
            # An empty text is a turn that was forgotten since the view was taken; one that
            # only quotes what was recalled says nothing itself.
            if not strip_recalled(text) or text.strip() in self.limits.live:
                continue
            yield Candidate(
                index,
                text,
                score,
                meaning * cosine_of_meaning,
                at,
                table.speakers[speaker] if speaker >= 0 else "",
                assistant,
                speaker >= 0 and name_match > 0.0,
                self.finder.compared(text, row),
                # The title of its conversation, if that contains words asked for.
                title=self.run.view.title(int(table.conversation[row])) if title_match else "",
                titled=min(1.0, title_match * title_share),
                coming=coming,
                timely=timely,
            )
