"""Recall of turns and memories with a reader: what it moves, what it never does, what is said."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.reading.tiny_reader import make_reader

from anaphora import Memory, Recall
from anaphora.errors import InvalidInput
from anaphora.rank.reading import WEIGHTS
from anaphora.reading.model import Lane, LogOdds, Reader
from anaphora.reading.service import BUNDLED
from anaphora.testing import run_cli
from anaphora.values.conversations import READ_MOST

START = datetime(2024, 3, 4, 8, tzinfo=UTC)
QUESTION = "Which animal lives beside the harbour crane?"
ANSWER = "The crane is where the zebra is."
OTHERS = (
    "An animal lives beside the harbour crane, they say.",
    "The harbour crane has a new animal sign.",
    "Beside the harbour crane lives Bo.",
    "A harbour crane was painted red.",
    "A harbour animal was seen at the pier.",
)
SHIPPED = pytest.param(
    "shipped", marks=pytest.mark.skipif(not BUNDLED.is_dir(), reason="no reader ships")
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(params=["tiny", SHIPPED])
def any_reader(request: pytest.FixtureRequest, tiny: Path) -> Path:
    return tiny if request.param == "tiny" else BUNDLED


Open = Callable[[str | Path], Memory]


@pytest.fixture
def open_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the test's home with a reader, which is loaded when this returns."""
    opened: list[Memory] = []

    def open_one(reader: str | Path) -> Memory:
        monkeypatch.setenv("ANAPHORA_READER", str(reader))
        memory = Memory.open(tmp_path / "home", embedder="hashing")
        opened.append(memory)
        memory.recall(QUESTION, read=1)
        assert memory.ready(60)
        return memory

    yield open_one
    for memory in opened:
        memory.close()


def tell(memory: Memory) -> None:
    """The answer and what sounds more like it, as turns and as memories."""
    for number, text in enumerate((*OTHERS, ANSWER)):
        memory.conversations.append("chat", "user", text, ts=START + timedelta(days=number))
        memory.remember(text)


@pytest.mark.skipif(not BUNDLED.is_dir(), reason="no reader ships")
@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("Lena hält Bienen hinter der Kirche.", "Wer hält Bienen?"),
        ("Le loyer est payé le trois de chaque mois.", "Quand est payé le loyer ?"),
        ("La caldera la revisó Kowalski en mayo.", "¿Quién revisó la caldera?"),
        ("A aula de piano passou para quinta-feira.", "Em que dia fica agora a aula de piano?"),
        ("鍵は赤い棚の中にあります。", "鍵はどこにありますか？"),
    ],
)
def test_other_languages_are_not_read(statement: str, question: str, open_with: Open) -> None:
    """The reader learnt English: it takes every other text for no answer. Where cosines are not
    measured it would silence all of them."""
    memory = open_with(BUNDLED)
    for number, text in enumerate((*OTHERS, statement)):
        memory.conversations.append("chat", "user", text, ts=START + timedelta(days=number))
        memory.remember(text)
    memory.ready(60)
    for ask in (memory.recall, partial(memory.recall_conversation, None)):
        unread, hits = ask(question), ask(question, read=32)
        assert statement in texts(hits)
        assert texts(hits) == texts(unread)
        assert all(hit.read is None for hit in hits)
        # Nor is a text in another language read for a question in English.
        hits = ask(f"{QUESTION} ({statement.split()[1:2] or statement[:2]})", read=32, top_k=6)
        assert {hit.text for hit in hits if hit.read is None} <= {statement}
        assert any(hit.read is not None for hit in hits)


@pytest.mark.skipif(not BUNDLED.is_dir(), reason="no reader ships")
def test_strange_questions_get_silence_in_the_smallest_homes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few there are, and read as in hooks: nothing here answers any of them."""
    monkeypatch.setenv("ANAPHORA_READER", str(BUNDLED))
    strange = ("who painted the Sistine Chapel?", "qqqzzz xyzzy plugh", "how do I boil an egg")
    with Memory.open(tmp_path / "home") as memory:
        for statement in ("The boiler was serviced in May by Kowalski.", "6432", *OTHERS[:3]):
            memory.remember(statement)
            memory.conversations.append("chat", "user", statement)
            memory.recall(QUESTION, read=1)
            assert memory.ready(60)
            for question in strange:
                assert not memory.recall(question, read=8).hits
                assert not memory.recall_conversation(None, question, read=8).hits


def tell_much(memory: Memory, count: int = 60) -> None:
    chance = random.Random(1)
    words = (
        "animal",
        "harbour",
        "crane",
        "beside",
        "lives",
        "zebra",
        "pier",
        "sign",
        "red",
        "boat",
    )
    for number in range(count):
        text = f"{' '.join(chance.choices(words, k=8))} {number}."
        memory.conversations.append("chat", "user", text, ts=START + timedelta(hours=9 * number))
        memory.remember(text)


def lanes(memory: Memory, **options: Any) -> list[Recall[Any]]:
    options = {"min_confidence": 0.0, **options}
    return [
        memory.recall_conversation("chat", QUESTION, budget=1 << 30, **options),
        memory.recall(QUESTION, **options),
    ]


def texts(found: Recall[Any]) -> list[str]:
    return [hit.text for hit in found.hits]


@pytest.mark.promise("recall.read")
def test_what_answers_comes_forward(open_with: Open, tiny: Path) -> None:
    """In a conversation; of memories the order stays, and both say what the reader made of them."""
    memory = open_with(tiny)
    tell(memory)
    unread, bare = lanes(memory, read=0, top_k=6)
    turns, memories = lanes(memory, read=32, top_k=6)
    assert not turns.degraded
    assert texts(turns).index(ANSWER) < texts(unread).index(ANSWER)
    assert sorted(texts(turns)) == sorted(texts(unread))
    assert not memories.degraded
    assert texts(memories) == texts(bare)
    assert all(hit.read is not None for hit in memories)
    search = memory.search(QUESTION, read=32, min_confidence=0.0)
    assert [hit.score for hit in search] == sorted((hit.score for hit in search), reverse=True)
    assert next(hit for hit in search if hit.text == ANSWER).read == pytest.approx(0.9, abs=0.1)


@pytest.mark.promise("recall.read")
@pytest.mark.parametrize("window", [1, 4, 8])
def test_what_is_read_stays_within_its_window(
    open_with: Open, any_reader: Path, window: int
) -> None:
    """Which candidates are among the first does not change, nor the order of those behind."""
    memory = open_with(any_reader)
    tell(memory)
    for unread, read in zip(
        lanes(memory, read=0, top_k=6), lanes(memory, read=window, top_k=6), strict=True
    ):
        scored = [hit for hit in read if hit.read is not None]
        assert len(scored) == min(window, len(unread.hits))
        behind = [hit.score for hit in read if hit.read is None]
        assert all(hit.score >= max(behind, default=0.0) for hit in scored)


@pytest.mark.promise("recall.read_prefix")
def test_the_first_hits_are_the_same_however_many_are_wanted(
    open_with: Open, any_reader: Path
) -> None:
    """What is read depends on the window alone."""
    memory = open_with(any_reader)
    tell_much(memory)
    # Links that are made behind the calls change an answer between two of them.
    assert memory.ready(60)
    for most, *fewer in zip(*(lanes(memory, read=16, top_k=k) for k in (24, 1, 3, 9)), strict=True):
        for found in fewer:
            assert texts(found) == texts(most)[: len(found.hits)]
            assert len(found.hits)


@pytest.mark.promise("recall.read_why")
def test_a_hit_shows_what_the_reader_made_of_it(open_with: Open, any_reader: Path) -> None:
    """A part of the sum, up to its weight times the log-odds, and the probability beside it."""
    memory = open_with(any_reader)
    tell(memory)
    turns, memories = lanes(memory, read=32, top_k=6)
    unread, bare = lanes(memory, read=0, top_k=6)
    before = {hit.text: hit.score for hit in unread}
    for hit in turns:
        assert hit.read is not None
        assert sum(hit.factors.values()) == pytest.approx(hit.score, abs=1e-5)
        if "unanswered" not in hit.factors:
            assert hit.factors["reader"] == pytest.approx(hit.score - before[hit.text], abs=1e-5)
    for hit in memories:
        assert hit.read is not None
        product = hit.similarity * hit.decay * hit.reinforcement + hit.factors["reader"]
        assert product * hit.factors.get("unanswered", 1.0) == pytest.approx(hit.score, abs=1e-5)
        assert abs(hit.factors["reader"]) <= max(WEIGHTS.values()) * 6.0 + 1e-9
    for hit in (*unread, *bare):
        assert hit.read is None
        assert "reader" not in hit.factors


@pytest.mark.promise("recall.read_why")
def test_the_command_line_shows_it_with_why(open_with: Open, tiny: Path, tmp_path: Path) -> None:
    """Beside the parts of the score; the JSON has both."""
    memory = open_with(tiny)
    tell(memory)
    memory.close()
    asked = ["--home", str(tmp_path / "home"), "memory", "recall", QUESTION]
    # A process of one question may be done before its reader is there: here one is loaded already.
    for _ in range(100):
        found = json.loads(run_cli(*asked, "--json").stdout)
        if not found["degraded"]:
            break
    assert found["hits"][0]["answers"] is not None
    shown = run_cli(*asked, "--why").stdout
    assert " · answers the question (" in shown
    # It is of all that is known, and not the reader's alone.
    assert "the reader" not in shown


@pytest.mark.promise("recall.read_degrades")
def test_a_reader_that_is_loading_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order is that without it, and the answer says so; the next one has it."""
    go = threading.Event()

    def load_late(folder: Path) -> Reader:
        go.wait()
        return Reader(folder)

    monkeypatch.setattr("anaphora.reading.model.Reader", load_late)
    monkeypatch.setenv("ANAPHORA_READER", str(make_reader(tmp_path / "reader")))
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        tell(memory)
        unread = lanes(memory, read=0, top_k=6)
        for before, found in zip(unread, lanes(memory, read=32, top_k=6), strict=True):
            assert texts(found) == texts(before)
            assert [part.part for part in found.degraded] == ["reader"]
            assert "loading" in found.degraded[0].reason
            assert found.confidence == before.confidence
        search = memory.search(QUESTION, read=32, min_confidence=0.0)
        assert [part.part for part in search.degraded] == ["reader"]
        assert not memory.ready(0)
        go.set()
        assert memory.ready(60)
        for found in lanes(memory, read=32, top_k=6):
            assert not found.degraded
            assert all(hit.read is not None for hit in found)


@pytest.mark.promise("recall.read_degrades")
@pytest.mark.promise("recall.read_integrity")
def test_a_broken_model_is_said_and_hinders_nothing(open_with: Open, tmp_path: Path) -> None:
    """A file that is not the one of the manifest is not used."""
    folder = make_reader(tmp_path / "broken")
    with (folder / "model.onnx").open("ab") as model:
        model.write(b"more")
    memory = open_with(folder)
    tell(memory)
    unread = lanes(memory, read=0, top_k=6)
    for before, found in zip(unread, lanes(memory, read=32, top_k=6), strict=True):
        assert texts(found) == texts(before)
        assert [part.part for part in found.degraded] == ["reader"]
        assert "SHA-256" in found.degraded[0].reason


@pytest.mark.promise("recall.read_off")
def test_off_is_off(open_with: Open) -> None:
    """Nothing is read and nothing is missing."""
    memory = open_with("off")
    tell(memory)
    unread = lanes(memory, read=0, top_k=6)
    for before, found in zip(unread, lanes(memory, read=32, top_k=6), strict=True):
        assert texts(found) == texts(before)
        assert not found.degraded
        assert all(hit.read is None for hit in found)


@pytest.mark.parametrize("mode", ["words", "vector"])
def test_by_words_or_meaning_alone_nothing_is_read(open_with: Open, tiny: Path, mode: str) -> None:
    """Both are what they say."""
    memory = open_with(tiny)
    tell(memory)
    for found in lanes(memory, read=32, mode=mode):
        assert found.hits
        assert all(hit.read is None for hit in found)


@pytest.mark.parametrize("read", [-1, READ_MOST + 1])
def test_a_window_has_bounds(open_with: Open, tiny: Path, read: int) -> None:
    """One outside of them is refused by name."""
    memory = open_with(tiny)
    for ask in (
        lambda: memory.recall(QUESTION, read=read),
        lambda: memory.recall_conversation(None, QUESTION, read=read),
        lambda: memory.search(QUESTION, read=read, kinds=["file"]),
    ):
        with pytest.raises(InvalidInput, match="read"):
            ask()


def test_the_turn_before_is_read_with_a_turn(open_with: Open, tiny: Path) -> None:
    """Where it belongs to the same sitting, and is not forgotten."""
    memory = open_with(tiny)
    said = ("Was it a zebra?", "The animal beside the harbour crane, yes.")
    for name, gap in (("near", timedelta(minutes=1)), ("far", timedelta(days=3))):
        memory.conversations.append(name, "user", said[0], ts=START)
        memory.conversations.append(name, "user", said[1], ts=START + gap)

    def answers(conversation: str) -> float:
        found = memory.recall_conversation(conversation, QUESTION, read=32, min_confidence=0.0)
        return next(hit.answers or 0.0 for hit in found if hit.text == said[1])

    assert answers("near") > 0.5 > answers("far")
    memory.conversations.redact("near", 0)
    assert answers("near") < 0.5


def test_a_question_that_is_asked_again_is_not_read_again(
    open_with: Open, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for more hits either: what is read are the same candidates."""
    memory = open_with(tiny)
    tell(memory)
    asked: list[str] = []
    judge = Reader.judge_answers

    def judge_answers(own: Reader, question: str, candidates: Sequence[str], lane: Lane) -> LogOdds:
        asked.extend(candidates)
        return judge(own, question, candidates, lane)

    monkeypatch.setattr(Reader, "judge_answers", judge_answers)
    lanes(memory, read=32, top_k=2)
    assert len(asked) == 2 * (len(OTHERS) + 1)
    lanes(memory, read=32, top_k=6)
    assert len(asked) == 2 * (len(OTHERS) + 1)


def test_a_reader_tells_whether_anything_answers_where_cosines_do_not(
    open_with: Open, any_reader: Path
) -> None:
    """With an embedder whose cosines were not measured, only what was read says how sure."""
    memory = open_with(any_reader)
    tell(memory)
    assert [found.confidence for found in lanes(memory)] == [None, None]
    for found in lanes(memory, read=8):
        assert found.confidence is not None
        assert 0.0 <= found.confidence <= 1.0
    found = memory.search(QUESTION, read=8, min_confidence=0.0)
    assert found.confidence is not None
    assert all(0.0 <= hit.score <= 1.0 for hit in found)


@pytest.mark.skipif(not BUNDLED.is_dir(), reason="no reader ships")
def test_with_another_embedder_what_was_never_said_is_less_sure(open_with: Open) -> None:
    """The shipped reader, beside an embedder that counts words: silence follows what it reads."""
    memory = open_with(BUNDLED)
    tell(memory)
    asked = ("Where is the crane?", "How much does a litre of paint cost in Norway?")
    for ask in (
        memory.recall,
        lambda question, **how: memory.recall_conversation(None, question, **how),
    ):
        known, foreign = (
            ask(question, read=8, min_confidence=0.0).confidence for question in asked
        )
        assert known is not None
        assert foreign is None or foreign < known


def test_what_is_read_of_others_does_not_silence_a_fact_in_another_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader reads English alone: it knows nothing of the nearest one."""
    monkeypatch.setenv("ANAPHORA_READER", "on")
    fact = "Der Ersatzschlüssel liegt beim Nachbarn Herrn Vogt."
    with Memory.open(tmp_path / "home") as memory:
        for text in (fact, *OTHERS, "The gym locker needs a coin.", "Our car is a blue Fiat."):
            memory.remember(text)
        assert memory.ready(120)
        memory.recall("?", read=8)
        assert memory.ready(120)
        found = memory.recall("who has our spare key?", read=8)
        assert [hit.text for hit in found][:1] == [fact]
        assert not memory.recall("what is the capital of Mongolia?", read=8).hits
