"""What each signal of the turn ranking is worth: `python -m bench.fit_turns ../shared/data`.

In: REALTALK and BEAM, read by their importers. Out: bench/results/turn_ablation.json and .md. Each
chat is searched alone, as one thread, without a budget. Weights are chosen on chats 1 to 5 only;
chats 6 to 10 are reported. It ranks with anaphora's own analyser, embedder, reading and scores;
only the BM25 over one chat is computed here, by the word index's formula.

`--cache DIR` keeps the vectors, which take minutes, from one run to the next.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import analyse, query_terms
from anaphora.embed.base import Embedder
from anaphora.embed.minilm import MiniLM
from anaphora.rank.question import (
    TEXTS,
    QuestionReading,
    find_bearer,
    match_misspelt,
    match_shortened,
    read_question,
    speakers_present,
    unknown_names,
)
from anaphora.rank.stages import asks_for_order, spread_over_stages
from anaphora.rank.turn_table import (
    ROLE_ASSISTANT,
    ROLE_OTHER,
    ROLE_USER,
    SESSION_GAP_SECONDS,
    TurnTable,
    turn_flags,
)
from anaphora.rank.turns import DEFAULT_WEIGHTS, TurnScores, Weights, best_rows, score_turns
from anaphora.recall.conversation import find_addressee
from anaphora.recall.times.reading import read_times
from bench import turn_signals as tried
from bench.datasets import SETS, Haystack, haystacks
from bench.figures import write
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank

FIT = range(1, 6)
K = 10
_DOTTED = re.compile(r"\b\d{1,2}\.\d{1,2}\.\d{4}\b")
_BETWEEN_PARTS = re.compile(r",? and |, |; ")
ROLES = {"user": ROLE_USER, "assistant": ROLE_ASSISTANT}
ALONE = Weights(
    meaning=0,
    neighbour=0,
    speaker=0,
    role=0,
    personal=0,
    time=0,
    standing=0,
    spread=0,
)  # BM25 and nothing else

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """A question with its evidence as rows, and its readings.

    `reading` is the ranking's own; `plain` reads no names, `formal` no nicknames. `vector` is the
    meaning's, `parts` are those of its sub-questions.
    """

    category: str
    text: str
    evidence: frozenset[int]
    reading: QuestionReading
    plain: QuestionReading
    formal: QuestionReading
    words: Floats
    plain_words: Floats
    formal_words: Floats
    cosine: Floats
    plain_cosine: Floats
    formal_cosine: Floats
    vector: NDArray[np.float32]
    parts: tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class Chat:
    """A chat as ranking sees it."""

    number: int
    table: TurnTable
    asked: list[Asked]
    texts: list[str] = field(repr=False)
    vectors: NDArray[np.float32]
    owner: NDArray[np.intp]
    bm25: Words
    pairs: Words

    def cosine(self, vector: NDArray[np.float32]) -> Floats:
        """Of each turn's best part with the vector, shape (N,)."""
        return _best(self.vectors @ vector, self.owner, len(self.texts))


@dataclass(frozen=True)
class Variant:
    """A ranking to measure. `plain` ignores what the question says of speakers; without `roles`,
    "I" and "you" mean nobody, without `nicknames` only display names mean somebody, without `dots`
    25.01.2024 is no date. `stages` says which questions are spread over stages. `extra` adds a
    signal that the ranking does not have, `instead` scores in its place."""

    name: str
    weights: Weights = DEFAULT_WEIGHTS
    plain: tuple[str, ...] = ()
    roles: bool = True
    nicknames: bool = True
    dots: bool = True
    stages: Callable[[str], bool] = asks_for_order
    instead: tried.Instead | None = None
    extra: Callable[[Chat, Asked, TurnScores], Floats] | None = None

    def ranked(self, chat: Chat, one: Asked) -> list[int]:
        """The rows of the chat, best first."""
        if not self.nicknames:
            one = replace(one, reading=one.formal, words=one.formal_words, cosine=one.formal_cosine)
        if not self.roles:
            one = replace(one, reading=replace(one.reading, roles=()))
        if not self.dots and _DOTTED.search(one.text):
            one = replace(one, reading=replace(one.reading, spans=()))
        if "words" in self.plain:
            one = replace(one, words=one.plain_words)
        if "meaning" in self.plain:
            one = replace(one, cosine=one.plain_cosine)
        if self.instead is not None:
            scores = self.instead(chat, one, self.weights)
        else:
            scores = score_turns(chat.table, one.reading, one.words, one.cosine, self.weights)
        if self.extra is not None:
            total = scores.total + self.extra(chat, one, scores)
            scores = replace(scores, total=total.astype(np.float32))
        if self.stages(one.text):
            scores = spread_over_stages(chat.table, scores, self.weights)
        ranked: list[int] = best_rows(chat.table, scores, 20).tolist()
        return ranked


# -- reading the data


def load(
    data: Path,
    cache: Path | None,
    model: Embedder | None = None,
    only: Callable[[str, int], bool] = lambda name, number: True,
) -> dict[str, list[Chat]]:
    """The chats of both data sets, embedded, by default by our model; `only` some of them."""
    model = model or MiniLM()
    chats: dict[str, list[Chat]] = {}
    for name, _ in SETS:
        wanted = (one for _, one in haystacks(data, name) if only(name, one.number))
        chats[name] = [_chat(one, model, cache) for one in wanted]
        print(f"{name}: {len(chats[name])} chats", flush=True)
    return chats


def _chat(haystack: Haystack, model: Embedder, cache: Path | None) -> Chat:
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
    vectors, owner = vectors_of(texts, model, cache)
    bm25 = Words(tokens)
    pairs = [[f"{a} {b}" for a, b in pairwise(t)] for t in tokens]
    present = speakers_present(table)
    asked = []
    for question in haystack.questions:
        if question.left_out:
            continue
        now = question.now or turns[-1].ts
        named = read_times(question.text, now) if now else ()
        spans = [(span.start.timestamp(), span.end.timestamp()) for span in named]
        called = nicknames_in(question.text, present, table, texts, bm25)
        reading = read_question(question.text, present, spans, called)
        formal = read_question(question.text, present, spans)
        plain = read_question(question.text, {}, spans)
        meant, as_it_stands, without = (
            np.asarray(model.embed_query(some.meaning)) for some in (reading, plain, formal)
        )
        asked.append(
            Asked(
                category=question.category,
                text=question.text,
                evidence=frozenset(row[key] for _, key in question.evidence),
                reading=reading,
                plain=plain,
                formal=formal,
                words=bm25.scores(reading.terms),
                plain_words=bm25.scores(plain.terms),
                formal_words=bm25.scores(formal.terms),
                cosine=_best(vectors @ meant, owner, n),
                plain_cosine=_best(vectors @ as_it_stands, owner, n),
                formal_cosine=_best(vectors @ without, owner, n),
                vector=meant,
                parts=tuple(
                    np.asarray(model.embed_query(part)) for part in _parts(reading.meaning)
                ),
            )
        )
    return Chat(haystack.number, table, asked, texts, vectors, owner, bm25, Words(pairs))


def _best(similar: NDArray[np.float32], owner: NDArray[np.intp], n: int) -> Floats:
    cosine = np.full(n, -1.0)
    np.maximum.at(cosine, owner, similar)
    return cosine


def _parts(question: str) -> list[str]:
    """The sub-questions of a question, none where it has one part."""
    parts = [
        p for p in _BETWEEN_PARTS.split(question) if len(analyse(p, keep_stop_words=False)) > 1
    ]
    return parts if len(parts) > 1 else []


def nicknames_in(
    question: str, present: dict[int, str], table: TurnTable, texts: Sequence[str], bm25: Words
) -> dict[str, int]:
    """What `recall.nicknames` finds in an index."""
    found = {}
    for name in unknown_names(question, present):
        code = match_shortened(name, present)
        if code is None:
            scores = bm25.scores(query_terms(name))
            rows = np.argsort(-scores, kind="stable")[: min(TEXTS, np.count_nonzero(scores))]
            read = [
                (texts[r], int(table.speaker[r]), find_addressee(table, r)) for r in rows.tolist()
            ]
            code = find_bearer(name, read) if read else match_misspelt(name, present)
        if code in present:
            found[name] = code
    return found


def vectors_of(
    texts: Sequence[str], model: Embedder, cache: Path | None
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """The vectors of all parts of the texts, and the text of each; kept in `cache` if there is."""
    digest = hashlib.sha256(json.dumps([model.name, *texts]).encode()).hexdigest()[:24]
    kept = cache / f"{digest}.npz" if cache else None
    if kept and kept.is_file():
        with np.load(kept) as found:
            return found["vectors"], found["owner"]
    parts = model.embed(texts)
    vectors = np.concatenate(parts)
    owner = np.repeat(np.arange(len(parts)), [len(some) for some in parts])
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, vectors=vectors, owner=owner)
    return vectors, owner


class Words:
    """BM25 over one chat by the word index's formula (k1 1.2, b 0.75)."""

    def __init__(self, tokens: Sequence[Sequence[str]]) -> None:
        self.length = np.array([len(some) for some in tokens], float)
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for row, some in enumerate(tokens):
            for term, count in Counter(some).items():
                self.postings.setdefault(term, []).append((row, count))

    def rarity(self, term: str) -> float:
        """Inverse document frequency of a term."""
        n, held = len(self.length), len(self.postings.get(term, ()))
        return float(np.log1p((n - held + 0.5) / (held + 0.5)))

    def scores(self, terms: Sequence[str]) -> Floats:
        """BM25 of every turn, shape (N,)."""
        n = len(self.length)
        total = np.zeros(n)
        norm = 1.2 * (0.25 + 0.75 * self.length / max(self.length.mean(), 1.0))
        for term in terms:
            if term in self.postings:
                rows, counts = np.array(self.postings[term]).T
                total[rows] += self.rarity(term) * 2.2 * counts / (counts + norm[rows])
        return total


# -- signals that were tried and left out


def _session_prior(weight: float) -> Callable[[Chat, Asked, TurnScores], Floats]:
    def extra(chat: Chat, _: Asked, scores: TurnScores) -> Floats:
        best = np.zeros(int(chat.table.session.max()) + 1)
        np.maximum.at(best, chat.table.session, scores.total)
        share: Floats = weight * best[chat.table.session]
        return share

    return extra


def _marked(weight: float, mark: Callable[[str], bool]) -> Callable[..., Floats]:
    def extra(chat: Chat, _: Asked, __: TurnScores) -> Floats:
        marked = np.array([mark(text) for text in chat.texts], float)
        return weight * marked / DEFAULT_WEIGHTS.scale

    return extra


def _after_question(weight: float) -> Callable[..., Floats]:
    def extra(chat: Chat, _: Asked, __: TurnScores) -> Floats:
        asks = np.array([text.rstrip().endswith("?") for text in chat.texts], float)
        return weight * np.append(0.0, asks[:-1]) / DEFAULT_WEIGHTS.scale

    return extra


def _recency(weight: float) -> Callable[..., Floats]:
    def extra(chat: Chat, _: Asked, __: TurnScores) -> Floats:
        place: Floats = np.linspace(0.0, weight / DEFAULT_WEIGHTS.scale, len(chat.table))
        return place

    return extra


def _without(name: str) -> Weights:
    return replace(DEFAULT_WEIGHTS, **{name: 0.0})


def variants() -> Iterator[Variant]:
    """Everything that is measured, in the order of the report."""
    both = ("words", "meaning")
    total = replace(ALONE, meaning=1.0)
    yield Variant("BM25 alone", ALONE, plain=both)
    yield Variant("cosine alone", replace(total, words=0.0), plain=both)
    yield Variant("sum of both", total, plain=both)
    yield Variant("sum + names taken out of the words", total, plain=("meaning",))
    yield Variant("sum + meaning as the speaker would say it", total, plain=("words",))
    yield Variant("sum + both readings of names", total)
    yield Variant("sum + neighbour", replace(total, neighbour=0.2), plain=both)
    yield Variant("sum + speaker", replace(total, speaker=0.5, role=0.25), plain=both)
    yield Variant("sum + personal", replace(total, personal=0.2), plain=both)
    yield Variant("sum + time", replace(total, time=0.4), plain=both)
    yield Variant("sum + standing", replace(total, standing=0.1), plain=both)
    yield Variant("full")
    yield Variant("full - names taken out of the words", plain=("words",))
    yield Variant("full - meaning as the speaker would say it", plain=("meaning",))
    for name in ("words", "meaning", "neighbour", "speaker", "personal", "time"):
        yield Variant(f"full - {name}", _without(name))
    yield Variant("full - standing", _without("standing"))
    yield Variant("full - spread over stages", _without("spread"))
    yield Variant("full - I and you (roles)", roles=False)
    yield Variant("full - nicknames", nicknames=False)
    yield Variant("full - dates with dots", dots=False)
    yield Variant("full - both of these: the first pass", nicknames=False, dots=False)
    for name, values in (
        ("words_half", (10.0, 40.0)),
        ("neighbour", (0.1, 0.3, 0.4)),
        ("meaning", (0.5, 2.0)),
        ("speaker", (0.25, 1.0)),
        ("role", (0.1, 0.5)),
        ("personal", (0.1, 0.4)),
        ("time", (0.2, 0.8)),
        ("standing", (0.05, 0.2)),
        ("spread", (0.1, 0.4)),
    ):
        for value in values:
            yield Variant(f"full, {name} = {value:g}", replace(DEFAULT_WEIGHTS, **{name: value}))
    yield Variant("left out: session's best turn, 0.2", extra=_session_prior(0.2))
    yield Variant("left out: questions -0.1", extra=_marked(-0.1, lambda t: t.rstrip()[-1:] == "?"))
    yield Variant("left out: after a question +0.1", extra=_after_question(0.1))
    yield Variant("left out: digits +0.1", extra=_marked(0.1, lambda t: any(map(str.isdigit, t))))
    yield Variant("left out: later turns up to +0.1", extra=_recency(0.1))
    yield from _second_pass()


def _second_pass() -> Iterator[Variant]:
    """What the second pass tried and left out (docs/decisions/0020)."""
    for weight in (0.2, 0.4):
        yield Variant(f"left out: bare questions -{weight}", extra=tried.bare_question(weight))
    for share in (0.1, 0.2):
        yield Variant(
            f"left out: the turn after a question, {share} more", extra=tried.after_asking(share)
        )
    both = tried.together(tried.bare_question(0.2), tried.after_asking(0.1))
    yield Variant("left out: bare questions -0.2, after one 0.1", extra=both)
    yield Variant("left out: same speaker beside, 0.1 more", extra=tried.same_speaker(0.1))
    yield Variant("left out: pictures +0.1", extra=tried.image(0.1))
    for penalty in (0.005, 0.02):
        yield Variant(
            f"left out: plural, spread over sittings {penalty}", extra=tried.spread(penalty)
        )
    yield from _third_pass()
    for name, instead in (
        ("standing 0.3 for requests", tried.standing_for_requests(0.3)),
        ("the question as it stands as well", tried.both_readings(0.9)),
        ("Rocchio 0.2, best 3", tried.nearest_texts(0.2, 3)),
        ("Rocchio 0.5, best 3", tried.nearest_texts(0.5, 3)),
        ("Rocchio 0.3, best 3, score 0.42 or more", tried.nearest_texts(0.3, 3, 0.42)),
        ("RM3, 10 words of the best 5, 0.1", tried.words_of_the_best(0.1, 5, 10)),
        ("RM3, 5 words of the best 3, 0.2", tried.words_of_the_best(0.2, 3, 5)),
        ("mean of parts 0.2", tried.mean_of_parts(0.2)),
        ("mean of parts 0.5", tried.mean_of_parts(0.5)),
        ("pairs of words 0.2", tried.pairs_of_words(0.2)),
        ("sub-questions 0.3", tried.sub_questions(0.3)),
    ):
        yield Variant(f"left out: {name}", instead=instead)


def _third_pass() -> Iterator[Variant]:
    """Ten that differ for questions in the plural, and what else than the order of events could be
    spread over stages (docs/decisions/0033)."""
    for penalty in (0.05, 0.1):
        for name, close in (
            ("neighbours", tried.adjacent),
            ("one sitting", tried.same_sitting),
            ("alike", tried.alike),
        ):
            yield Variant(
                f"left out: plural, {name} apart {penalty}", extra=tried.covering(penalty, close)
            )
    yield Variant("left out: plurals over stages", stages=tried.asks_for_several)
    yield Variant("left out: summaries over stages", stages=tried.asks_for_summary)


# -- measuring


def measure(chats: Sequence[Chat], variant: Variant) -> dict[str, dict[str, dict[str, float]]]:
    """half → category → measure; the category "all" is every question."""
    rows: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for chat in chats:
        half = "fit" if chat.number in FIT else "report"
        for one in chat.asked:
            ranked = variant.ranked(chat, one)
            values = (
                recall_at_k(ranked, one.evidence, 5),
                recall_at_k(ranked, one.evidence, K),
                recall_at_k(ranked, one.evidence, 20),
                reciprocal_rank(ranked, one.evidence),
                ndcg_at_k(ranked, one.evidence, K),
            )
            for category in ("all", one.category):
                rows.setdefault((half, category), []).append(values)
    names = ("recall@5", "recall@10", "recall@20", "mrr", "ndcg@10")
    result: dict[str, dict[str, dict[str, float]]] = {"fit": {}, "report": {}}
    for (half, category), values_of in sorted(rows.items()):
        means = np.mean(values_of, axis=0).round(4).tolist()
        result[half][category] = {**dict(zip(names, means, strict=True)), "n": len(values_of)}
    return result


def _markdown(results: dict[str, dict[str, dict[str, dict[str, dict[str, float]]]]]) -> str:
    lines = [
        "# Ablation of the turn ranking",
        "",
        "Evidence recall@10 by turn; each chat is searched alone, without a budget. Weights were",
        "chosen on chats 1 to 5 (fit), before chats 6 to 10 (report) were seen. A half has some",
        "350 REALTALK and 90 BEAM questions: differences under 0.02 and 0.04 are within noise.",
        "Generated by `python -m bench.fit_turns`.",
        "",
        "| ranking | REALTALK fit | REALTALK report | BEAM fit | BEAM report |",
        "|---|---|---|---|---|",
    ]
    for name, sets in results.items():
        cells = [
            f"{sets[s][half]['all']['recall@10']:.3f}"
            for s, _ in SETS
            for half in ("fit", "report")
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    shown = ("BM25 alone", "cosine alone", "sum of both", "full")
    for set_name, _ in SETS:
        lines += ["", f"## {set_name} by category, recall@10 (fit / report)", ""]
        lines += ["| category | n | " + " | ".join(shown) + " |", "|---" * (len(shown) + 2) + "|"]
        full = results["full"][set_name]
        for category in full["report"]:
            cells = [
                f"{results[name][set_name]['fit'][category]['recall@10']:.3f} / "
                f"{results[name][set_name]['report'][category]['recall@10']:.3f}"
                for name in shown
            ]
            count = f"{full['fit'][category]['n']} / {full['report'][category]['n']}"
            lines.append(f"| {category} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every variant, print it, and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.fit_turns", description=__doc__)
    parser.add_argument("data", type=Path, help="the folder of shared data")
    parser.add_argument("--cache", type=Path, default=None, help="where to keep vectors")
    chosen = parser.parse_args()
    chats = load(chosen.data, chosen.cache)
    results = {}
    for variant in variants():
        results[variant.name] = {name: measure(chats[name], variant) for name, _ in SETS}
        cells = [
            f"{results[variant.name][name][half]['all']['recall@10']:.3f}"
            for name, _ in SETS
            for half in ("fit", "report")
        ]
        print(f"{variant.name:46} " + " ".join(cells), flush=True)
    write("turn_ablation", json.dumps(results, indent=1), _markdown(results))


if __name__ == "__main__":
    main()
