"""The turn ranking over the chats of REALTALK and BEAM, by any weights, in memory.

In: both data sets, read by their importers. Out: chats as ranking sees them, and the figures of a
half of them by given weights: weights are chosen on chats 1 to 5, and chats 6 to 10 are reported.
Each chat is searched alone, as one thread, without a budget, by anaphora's own analyser, embedder,
reading and scores; only the BM25 over one chat is that of `bench.plain`, by the index's formula.
`make fit` chooses the weights (`tools.fitting`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Embedder
from anaphora.language.analyser import analyse, query_terms
from anaphora.language.times.reading import read_times
from anaphora.rank.question import (
    TEXTS,
    QuestionReading,
    find_bearer,
    match_misspelt,
    match_shortened,
    read_question,
    unknown_names,
)
from anaphora.rank.stages import spread_over_stages
from anaphora.rank.statements import read_cues
from anaphora.rank.turn_table import (
    ROLE_ASSISTANT,
    ROLE_OTHER,
    ROLE_USER,
    SESSION_GAP_SECONDS,
    TurnTable,
    speakers_present,
    turn_flags,
)
from anaphora.rank.turns import Weights, best_rows, score_turns
from anaphora.recall.turn_scores import find_addressee
from bench.datasets import SETS, Haystack, haystacks
from bench.metrics import recall_at_k, reciprocal_rank
from bench.plain import Bm25

FIT = range(1, 6)
K = 10
ROLES = {"user": ROLE_USER, "assistant": ROLE_ASSISTANT}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """A question as ranking reads it, its evidence as rows, and what words and meaning give."""

    text: str
    evidence: frozenset[int]
    reading: QuestionReading
    words: Floats
    cosine: Floats


@dataclass(frozen=True)
class Chat:
    """A chat as ranking sees it."""

    number: int
    table: TurnTable
    asked: list[Asked]


# -- reading the data


def load(data: Path, model: Embedder) -> dict[str, list[Chat]]:
    """The chats of both data sets, embedded."""
    return {
        name: [_chat(haystack, model) for _, haystack in haystacks(data, name)] for name, _ in SETS
    }


def _chat(haystack: Haystack, model: Embedder) -> Chat:
    (conversation,) = haystack.conversations
    turns = conversation.turns
    row = {turn.key: place for place, turn in enumerate(turns)}
    tokens = [analyse(turn.text) for turn in turns]
    names = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.speaker))
    n = len(turns)
    ts = np.array([turn.ts.timestamp() if turn.ts else np.nan for turn in turns])
    table = TurnTable(
        conversation=np.zeros(n, np.int32),
        position=np.arange(n, dtype=np.int32),
        previous=np.arange(-1, n - 1, dtype=np.int32),
        following=np.append(np.arange(1, n, dtype=np.int32), np.int32(-1)),
        session=np.cumsum(np.append(True, np.diff(ts) > SESSION_GAP_SECONDS)).astype(np.int32) - 1,
        role=np.array([ROLES.get(turn.role, ROLE_OTHER) for turn in turns], np.int8),
        speaker=np.array([names.index(t.speaker) if t.speaker else -1 for t in turns], np.int16),
        ts=ts,
        length=np.array([len(some) for some in tokens], np.int32),
        flags=np.array([turn_flags(turn.text) for turn in turns], np.int32),
        conversations=(conversation.conversation_id,),
        speakers=names,
    )
    texts = [turn.text for turn in turns]
    vectors, owner = vectors_of(texts, model)
    bm25 = Bm25(texts, analyse)
    present = speakers_present(table)
    asked = []
    for question in haystack.questions:
        if not question.evidence:
            continue
        now = question.now or turns[-1].ts
        named = read_times(question.text, now) if now else ()
        spans = [(span.start.timestamp(), span.end.timestamp()) for span in named]
        called = nicknames_in(question.text, present, table, texts, bm25)
        reading = read_question(question.text, present, spans, called)
        cosine = np.full(n, -1.0)
        np.maximum.at(cosine, owner, vectors @ np.asarray(model.embed_query(reading.meaning)))
        evidence = frozenset(row[key] for _, key in question.evidence)
        words = bm25.scores_of(reading.terms)
        asked.append(Asked(question.text, evidence, reading, words, cosine))
    return Chat(haystack.number, table, asked)


def nicknames_in(
    question: str, present: dict[int, str], table: TurnTable, texts: Sequence[str], bm25: Bm25
) -> dict[str, int]:
    """What `recall.nicknames` finds in an index."""
    found = {}
    for name in unknown_names(question, present):
        code = match_shortened(name, present)
        if code is None:
            scores = bm25.scores_of(query_terms(name))
            rows = np.argsort(-scores, kind="stable")[: min(TEXTS, np.count_nonzero(scores))]
            read = [
                (texts[r], int(table.speaker[r]), find_addressee(table, r)) for r in rows.tolist()
            ]
            code = find_bearer(name, read) if read else match_misspelt(name, present)
        if code in present:
            found[name] = code
    return found


def vectors_of(
    texts: Sequence[str], model: Embedder
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """The vectors of all parts of the texts, and the text of each."""
    parts = model.embed(texts)
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(rows) for rows in parts])


# -- measuring


def measure(chats: Sequence[Chat], weights: Weights, *, fitted: bool) -> tuple[float, float]:
    """Recall@10 and reciprocal rank over the questions of one half of the chats."""
    values = []
    for chat in chats:
        for asked in chat.asked if (chat.number in FIT) is fitted else ():
            scores = score_turns(chat.table, asked.reading, asked.words, asked.cosine, weights)
            if read_cues(asked.text).order:
                scores = spread_over_stages(chat.table, scores, weights)
            ranked = best_rows(chat.table, scores, 20).tolist()
            found = recall_at_k(ranked, asked.evidence, K)
            values.append((found, reciprocal_rank(ranked, asked.evidence)))
    recall, rank = np.mean(values, axis=0).tolist()
    return float(recall), float(rank)
