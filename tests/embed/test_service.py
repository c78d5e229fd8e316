"""The service around an embedder: loading, batches, the cache of query vectors, calibration."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.test_large_things import IN_CALL, LONG, CountingEmbedder

from anaphora import Memory, Vector, Vectors
from anaphora.embed.base import mean_vector
from anaphora.embed.calibration import (
    MINILM,
    UNCHANGED,
    Line,
    measure_calibration,
    measure_mean_cosines,
)
from anaphora.embed.minilm import MiniLM
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
        "print({'onnxruntime'} & set(sys.modules))"
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
        (MissingExtra("embedders", "tokenizers"), EmbeddingError),
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
    with pytest.raises(InvalidInput, match=r"hashing, minilm, \./a/folder"):
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


@pytest.mark.promise("recall.large_things")
def test_who_closes_the_home_waits_for_a_piece_and_no_more() -> None:
    """What is embedded behind a call ends between two pieces; what was done before is given."""
    embedder = CountingEmbedder(threading.current_thread())
    service = EmbedderService(spec_for(embedder))
    done = service.embed(["Salt.", LONG, "Bread."], stopping=lambda: len(embedder.in_call) > 2)
    assert len(done) == 1
    assert sum(embedder.in_call) <= 3 * IN_CALL
    assert len(service.embed([LONG, "Bread."])) == 2


NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


class Squeezed:
    """Hashed words whose cosines c are a + (1 - a) · c instead, as of some trained models."""

    def __init__(self, a: float) -> None:
        self._inner = WordHashingEmbedder()
        self._a = a
        self.embedded = 0

    @property
    def name(self) -> str:
        return f"squeezed:{self._a}"

    @property
    def dimensions(self) -> int:
        return self._inner.dimensions + 1

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        self.embedded += len(texts)
        return [self._squeezed(rows) for rows in self._inner.embed(texts)]

    def embed_query(self, text: str) -> Vector:
        return mean_vector(self.embed([text])[0])

    def query_key(self, text: str) -> Hashable:
        return self._inner.query_key(text)

    def _squeezed(self, rows: Vectors) -> Vectors:
        common = np.full((len(rows), 1), np.sqrt(self._a), np.float32)
        own = rows * np.float32(np.sqrt(1.0 - self._a))
        return np.concatenate([own, common], axis=1).astype(np.float32)


@pytest.mark.promise("embed.calibration")
def test_the_bundled_models_cosines_stay_as_they_are() -> None:
    """The map is the identity itself, not nearly it, and takes no array apart."""
    service = EmbedderService(spec_for("minilm"))
    service.query("load it")
    assert service.calibration is UNCHANGED
    cosines = np.linspace(-1, 1, 9, dtype=np.float32)
    assert service.calibration.asked.apply(cosines) is cosines
    # What others are measured against is what it has.
    found = measure_mean_cosines(MiniLM())
    assert (found.apart, found.told) == pytest.approx((MINILM.apart, MINILM.told), abs=2e-3)


@pytest.mark.promise("embed.calibration")
@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 0.9))
def test_a_line_between_cosines_changes_nothing(a: float) -> None:
    """Of two embedders whose cosines differ by a line, both have the same after calibration."""
    plain, squeezed = measure_calibration(WordHashingEmbedder()), measure_calibration(Squeezed(a))
    cosines = np.linspace(-0.2, 1.0, 7)
    for of_plain, of_squeezed in (
        (plain.asked, squeezed.asked),
        (plain.alike, squeezed.alike),
    ):
        mapped = of_squeezed.apply(a + (1.0 - a) * cosines)
        assert mapped == pytest.approx(of_plain.apply(cosines), abs=5e-3)


@given(st.floats(0.2, 20.0), st.floats(-15.0, 1.0), st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_order_stays_and_the_way_back_is_exact(
    scale: float, shift: float, one: float, other: float
) -> None:
    """No cosine passes another; what is not known stays not known; thresholds map back."""
    line = Line(scale, shift)
    low, high = line.apply(np.array(sorted((one, other)))) if one and other else (0.0, 0.0)
    assert low <= high
    assert line.invert(line.scale * one + line.shift) == pytest.approx(one, abs=1e-6)
    unknown = line.apply(np.array([0.0, np.nan]))
    assert unknown[0] == 0.0
    assert np.isnan(unknown[1])


def test_an_embedder_that_tells_nothing_apart_is_left_alone() -> None:
    """Where answers are no closer than anything else, there is no line to find."""
    assert measure_calibration(Squeezed(0.9999)) == UNCHANGED
    assert measure_mean_cosines(Squeezed(0.5)).apart > 0.5


@pytest.mark.promise("embed.calibration")
def test_it_is_measured_once_for_a_home(tmp_path: Path) -> None:
    """The second opening knows how the embedder's cosines lie, and embeds no neutral sentence."""
    first, second = Squeezed(0.8), Squeezed(0.8)
    with Memory.open(tmp_path, embedder=first) as memory:
        memory.remember("Nadia sells milk.")
        memory.ready()
    assert first.embedded > 30
    with Memory.open(tmp_path, embedder=second) as memory:
        memory.recall("Who sells milk?")
    assert second.embedded == 1


@pytest.mark.promise("embed.calibration")
def test_unrelated_memories_are_not_linked_because_all_cosines_are_high(tmp_path: Path) -> None:
    """Cosines count as the bundled model's would; `mode="vector"` shows the embedder's own."""
    with Memory.open(tmp_path, embedder=Squeezed(0.8), clock=lambda: NOW) as memory:
        memory.ready()
        memory.remember("Nadia sells milk on Mondays.")
        closes = "The harbour master closes the heavy northern gate at ten"
        other = memory.remember(f"{closes}.")
        same = memory.remember(f"{closes} tonight.")
        assert other.related == ()
        assert same.related == (other.id,)
        bare = memory.recall(f"{closes}.", mode="vector", top_k=1)
        assert bare[0].similarity == pytest.approx(1.0, abs=1e-3)
        unrelated = memory.recall("quarterly revenue", top_k=3, min_score=0.0)
        assert max(hit.factors["meaning"] for hit in unrelated) < 0.3


COLD = """
import sys, threading
import anaphora.embed.minilm as minilm
let = threading.Event()
load = minilm.MiniLM.__init__
def slow(self, *given, **named):
    let.wait(60)
    load(self, *given, **named)
minilm.MiniLM.__init__ = slow
from anaphora import Memory
with Memory.open(sys.argv[1]) as memory:
    made = memory.remember("The spare key lies under the blue pot")
    found = memory.recall("spare key", mode="words")
    assert [hit.id for hit in found] == [made.id]
    assert not memory.ready(0)
    let.set()
    assert memory.ready()
    (hit,) = memory.recall("how do I get into the house?", mode="vector")
    assert hit.id == made.id
print("done")
"""


@pytest.mark.promise("remember.never_blocks")
def test_a_model_that_is_still_loading(tmp_path: Path) -> None:
    """While the model loads, writes return and words answer; then the vectors fill in."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COLD, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
