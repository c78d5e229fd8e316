"""Words score as BM25 does, wherever a turn lies; vectors score by their cosine."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np
import pytest

from anaphora.index.turns.index import TurnIndex
from anaphora.index.words import postings as module
from anaphora.index.words.documents import document_of, term_number
from anaphora.index.words.postings import MemoryPostings, score
from anaphora.language.analyser import analyse, query_terms

from .conftest import Bench

VOCABULARY = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine"]


def filled(bench: Bench, turns: int = 90) -> list[str]:
    chance = random.Random(5)
    weights = [1 / (n + 1) for n in range(len(VOCABULARY))]
    texts = [
        " ".join(chance.choices(VOCABULARY, weights, k=chance.randrange(2, 30)))
        for _ in range(turns)
    ]
    for number, text in enumerate(texts):
        bench.store.append("ab"[number % 2], "user", text)
    return texts


def plain_bm25(texts: list[str], terms: tuple[str, ...]) -> list[float]:
    """BM25 as it is written in books (k1 1.2, b 0.75)."""
    tokens = [analyse(text) for text in texts]
    average = sum(map(len, tokens)) / len(tokens)
    scores = []
    for own in tokens:
        score = 0.0
        for term in terms:
            holding = sum(term in other for other in tokens)
            idf = math.log(1 + (len(tokens) - holding + 0.5) / (holding + 0.5))
            tf = own.count(term)
            score += idf * 2.2 * tf / (tf + 1.2 * (0.25 + 0.75 * len(own) / average))
        scores.append(score)
    return scores


def by_text(index: TurnIndex, scores: np.ndarray, texts: list[str]) -> list[float]:
    every = index.texts_of(index.view(), range(len(scores)))
    found = dict(zip(every, scores.tolist(), strict=True))
    return [found[text] for text in texts]


@pytest.fixture(params=[500, 60, 0], ids=["beside", "both", "in columns"])
def late(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the words lie: beside the columns, half of them, or in columns."""
    monkeypatch.setattr(module, "_LATE", request.param)


@pytest.mark.internal
def test_a_tail_that_grows_while_it_is_read_answers_as_it_was() -> None:
    """A posting that comes while scores are computed neither fails them nor shifts them."""

    class Growing(list[tuple[int, int]]):
        def __iter__(self) -> Iterator[tuple[int, int]]:
            yield from super().__iter__()
            self.append((2, 1))

    postings = MemoryPostings()
    postings.add(0, document_of((["oak", "elm"],)))
    postings.add(1, document_of((["oak"],)))
    keys, scores = score(postings, {"oak": 1.0, "elm": 2.0}, 2.0)
    oak = term_number("oak", 0)
    postings._postings[oak] = Growing(postings._postings[oak])
    again, same = score(postings, {"oak": 1.0, "elm": 2.0}, 2.0)
    assert (again.tolist(), same.tolist()) == (keys.tolist(), scores.tolist())


@pytest.mark.promise("recall.own_words")
@pytest.mark.usefixtures("late")
def test_a_text_is_wholly_alike_to_itself(bench: Bench) -> None:
    """By words no turn is more alike to a question than the turn itself, and no other one is."""
    texts = filled(bench)
    index = bench.index()
    index.sync("a", embed="none")
    index.sync(embed="none")
    view = index.view()
    for text in dict.fromkeys(texts):
        terms = query_terms(text)
        words = view.words(terms)
        found = view.alike(terms, words, len(analyse(text)))
        own = by_text(index, found, texts)[texts.index(text)]
        assert own == pytest.approx(found.max()) == pytest.approx(1.0, abs=0.02)
        assert found.min() >= 0
        assert not found[words == 0].any()
    longer = view.alike(terms, words, 100)
    assert (longer < found)[words > 0].all()
    assert not view.alike(("unheard",), np.zeros(len(view), np.float32), 1).any()


@pytest.mark.promise("index.tail")
@pytest.mark.usefixtures("late")
def test_words_score_as_bm25(bench: Bench) -> None:
    """In columns, beside them, or in part here and there: the scores are those of BM25."""
    texts = filled(bench)
    index = bench.index()
    index.sync("a")
    index.sync()
    terms = query_terms("pine maple, ash or oaks")
    expected = plain_bm25(texts, terms)
    found = by_text(index, index.view().words(terms), texts)
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_view_stays_as_it_was(bench: Bench) -> None:
    """What was taken before more turns came still fits together afterwards."""
    filled(bench, 20)
    index = bench.index()
    index.sync()
    view = index.view()
    words, cosine = view.words(["pine"]), view.cosine(bench.service.query("pine"))
    for number in range(10):
        bench.store.append("a", "user", f"pine and birch {number}")
    index.sync()
    assert np.array_equal(view.cosine(bench.service.query("pine")), cosine)
    assert len(view.words(["pine"])) == len(words) == 20
    assert len(index.view().table) == 30
