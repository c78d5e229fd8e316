"""Deep recall through the facade: support, traces, what forgetting takes along, sealed homes."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.conftest import Clock
from tests.deep.asking import TEA, Opening, Script, finds, opening, submits, tell

from anaphora import Budget, DeepAnswer, DeepStep, Memory, NewMemory
from anaphora.errors import NotFound
from anaphora.features.deep.persisted.answers import MOST_TRACES, QuestionScope, answer_key
from anaphora.features.deep.persisted.gaps import question_key
from anaphora.features.deep.tables import TABLES

pytestmark = pytest.mark.internal


@pytest.fixture
def script() -> Script:
    return Script(finds("Ada lapsang tea"))


@pytest.fixture(params=["sqlite", "postgresql"])
def open_one(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Opening]:
    """Opens a home on either database."""
    more: dict[str, Any] = {}
    if request.param == "postgresql":
        more["database"] = request.getfixturevalue("postgresql_url")
    opened: list[Memory] = []
    make = opening(tmp_path / "home", clock, **more)

    def keep(*args: Any, **options: Any) -> Memory:
        opened.append(make(*args, **options))
        return opened[-1]

    yield keep
    for memory in opened:
        memory.close()


def rows(memory: Memory) -> dict[str, int]:
    """How many rows each table of deep recall has."""
    held = memory._services().table_rows
    return {
        table: len(held.find(table))
        for table in [*(table.name for table in TABLES), "fact_turn", "session_job"]
    }


@pytest.mark.promise("deep.no_model")
def test_without_a_model_there_is_evidence(tmp_path: Path, clock: Clock) -> None:
    """No error: sources, a note that says how to set a model, and nothing spent."""
    with opening(tmp_path, clock)() as memory:
        empty = memory.deep_recall(TEA)
        assert (empty.sources, empty.answer) == ((), "")
        tell(memory)
        kept = memory.remember("Ada drinks lapsang from a blue cup").id
        found = memory.deep_recall(TEA)
    assert {"tea#0", f"memory:{kept}"} <= {source.id for source in found.sources}
    assert "ANAPHORA_MODEL" in found.note
    assert found.cost.input_tokens == 0


@pytest.mark.promise("deep.supported")
def test_only_sources_that_exist_support(tmp_path: Path, clock: Clock, script: Script) -> None:
    """Sources come back with their words; what cites nothing that is there is not supported."""
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        good = memory.deep_recall(TEA)
        assert good.supported
        assert [source.text for source in good.sources if "lapsang" in source.text]
        script.said = submits("Ada drinks rum", "tea#99", "memory:none")
        bad = memory.deep_recall("How many barrels of rum?", budget=Budget(iterations=1))
        assert not bad.supported
        assert bad.gap_id is not None


def test_a_source_out_of_scope_does_not_exist(tmp_path: Path, clock: Clock, script: Script) -> None:
    """With memories left out, a memory that was cited supports nothing."""
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        kept = memory.remember("Ada drinks lapsang").id
        script.said = submits("lapsang", f"memory:{kept}")
        assert memory.deep_recall(TEA).supported
        assert not memory.deep_recall(TEA, include_memory=False).supported


@pytest.mark.promise("deep.traces")
def test_a_trace_is_shown_again(open_one: Opening, script: Script) -> None:
    """Every step of an answer comes back as it was, after a restart; the newest first."""
    memory = open_one(script)
    tell(memory)
    told: list[DeepStep] = []
    first = memory.deep_recall(TEA, on_step=told.append)
    assert told == list(first.steps)
    second = memory.deep_recall("How many cups of lapsang?")
    memory.close()
    memory = open_one(script)
    assert [one.question for one in memory.traces()] == [second.question, TEA]
    assert [one.id for one in memory.traces(1)] == [second.trace_id]
    assert first.trace_id is not None
    assert memory.trace(first.trace_id) == first
    assert memory.deep_recall(TEA).trace_id == first.trace_id
    assert memory.scoped("work").traces() == ()
    with pytest.raises(NotFound):
        memory.trace("nothing")


@pytest.mark.promise("deep.traces")
def test_traces_are_bounded(tmp_path: Path, clock: Clock) -> None:
    """The newest 100 are kept, however large an output is."""
    flood = "```python\nprint('x' * 19_000)\nsubmit('NOT_FOUND', [])\n```"
    with opening(tmp_path, clock)() as memory:
        for number in range(MOST_TRACES + 3):
            memory.deep_recall(f"How many {number}?")
        assert len(memory.traces(1_000)) == MOST_TRACES
    with opening(tmp_path, clock)(Script(flood)) as memory:
        memory.deep_recall(TEA)
        rows_kept = memory._services().table_rows.find("trace", newest=True, limit=1)
        assert len(rows_kept[0]["body"]) < 400_000


@pytest.mark.promise("deep.forgets")
@pytest.mark.parametrize("how", ["delete", "redact"])
def test_a_conversation_takes_everything_along(open_one: Opening, script: Script, how: str) -> None:
    """Answers, traces and gaps that came from deleted or redacted turns are gone; others stay."""
    memory = open_one(script)
    memory.conversations.append_user("apart", "Nothing but rain")
    other = memory.deep_recall(
        "How many days of rain?", scope="current_session", conversation_id="apart"
    )
    tell(memory)
    memory.conversations.append_user("tea", TEA)
    memory.deep_recall(TEA)
    script.said = submits("NOT_FOUND")
    memory.deep_recall("How many walnuts?", scope="current_session", conversation_id="tea")
    assert len(memory.traces()) == 3
    assert len(memory.gaps()) == 2
    if how == "delete":
        memory.conversations.delete("tea")
    else:
        memory.conversations.redact("tea", 0)
    assert [one.id for one in memory.traces()] == [other.trace_id]
    assert other.gap_id in {gap.id for gap in memory.gaps()}
    assert rows(memory)["answer"] == 0
    if how == "delete":
        assert [gap.id for gap in memory.gaps()] == [other.gap_id]


@pytest.mark.promise("deep.forgets")
def test_a_memory_takes_everything_along(open_one: Opening, script: Script) -> None:
    """Answers, traces, closed gaps and what a dream has made of a forgotten memory are gone."""
    memory = open_one(Script(submits("NOT_FOUND")))
    memory.deep_recall(TEA)
    memory.close()
    memory = open_one(script)
    kept = memory.remember("Ada drinks lapsang in total secrecy").id
    (stored,) = memory.dream().stored
    memory.deep_recall("How many times lapsang?")
    assert f"memory:{kept}" in memory.gaps("closed")[0].closed_by
    before = len(memory.traces())
    done = memory.forget(kept)
    assert set(done.ids) == {kept, stored}
    assert memory.gaps(None) == ()
    assert len(memory.traces()) < before
    assert not any("secrecy" in json.dumps(str(memory.trace(t.id))) for t in memory.traces())
    assert (rows(memory)["answer"], rows(memory)["fact_turn"]) == (0, 0)


@pytest.mark.promise("deep.forgets")
def test_nothing_forgotten_stays_in_the_files(tmp_path: Path, clock: Clock, script: Script) -> None:
    """After `forget` no byte of the database or the index says the words."""
    with opening(tmp_path / "home", clock)(script) as memory:
        kept = memory.remember("Ada hides lapsang behind the zwingli cabinet").id
        script.said = finds("zwingli cabinet lapsang")
        assert memory.deep_recall("How many zwingli cabinets?").supported
        assert found_in(tmp_path / "home", b"hides lapsang")
        memory.forget(kept)
        assert not found_in(tmp_path / "home", b"hides lapsang")


KEY = "AKIAIOSFODNN7EXAMPLE"
ASKS_WITH_SECRETS = f"How often did we use the key {KEY} and password: hunter2-walnut?"


@pytest.mark.promise("deep.secrets")
@pytest.mark.parametrize(
    "said",
    [
        submits("NOT_FOUND"),
        submits(f"Twice, as {KEY}.", "tea#0"),
        f"I look for {KEY}.\n```python\nprint('hunter2-walnut', llm_query(question))\n```",
        None,
    ],
    ids=["gap", "answer", "steps", "no model"],
)
def test_secrets_of_a_question_are_not_kept(tmp_path: Path, clock: Clock, said: str | None) -> None:
    """Gap, trace and answer are written without them, and the model is asked without them."""
    script = None if said is None else Script(said)
    with opening(tmp_path / "home", clock)(script) as memory:
        tell(memory)
        asked = memory.deep_recall(ASKS_WITH_SECRETS)
        assert asked.question == ASKS_WITH_SECRETS
        assert asked.trace_id is not None
        trace = memory.trace(asked.trace_id)
        clean = trace.question
        assert "[redacted:aws-access-key]" in clean
        assert [one.question for one in memory.traces()] == [clean]
        assert {gap.question for gap in memory.gaps()} <= {clean}
        assert not memory.deep_recall(ASKS_WITH_SECRETS).cached
        if script is not None:
            assert clean in script.model.asked[0][1].text
            assert KEY not in script.model.asked[0][1].text
            assert len(trace.steps) == len(asked.steps)
        for secret in (KEY, "hunter2-walnut"):
            assert secret not in str(trace)
            assert found_in(tmp_path / "home", secret.encode()) == []


@pytest.mark.promise("deep.secrets")
def test_an_answer_about_one_secret_closes_no_gap_of_another(tmp_path: Path, clock: Clock) -> None:
    """Without their secrets two questions read alike; an answer to one is none to the other."""
    script = Script(submits("NOT_FOUND"))
    with opening(tmp_path / "home", clock)(script) as memory:
        tell(memory)
        kept = memory.deep_recall(ASKS_WITH_SECRETS).gap_id
        script.said = submits("Twice.", "tea#0")
        other = ASKS_WITH_SECRETS.replace("IOSFODNN7", "IOSFODNN8")
        assert memory.deep_recall(other).supported
        assert [gap.id for gap in memory.gaps()] == [kept]


def found_in(home: Path, word: bytes) -> list[Path]:
    """The files that hold these bytes."""
    files = [path for path in home.rglob("*") if path.is_file()]
    return [path for path in files if word in path.read_bytes()]


@pytest.mark.promise("deep.sealed")
def test_a_sealed_home_says_nothing(tmp_path: Path, clock: Clock) -> None:
    """Questions, answers, gaps, traces and facts are found again, and nowhere in the files."""
    pytest.importorskip("cryptography")
    script = Script(finds("lapsang"))
    make = opening(tmp_path / "home", clock)
    secret = "How many gwendolen teapots?"
    with make(script, encrypt="file") as memory:
        tell(memory, "thread-of-ada")
        assert memory.deep_recall(TEA).supported
        script.said = submits("NOT_FOUND")
        memory.deep_recall(secret)
        script.said = '[{"fact": "Gwendolen brews the oolong.", "turns": [0]}]'
        assert memory.extract("thread-of-ada").added
        memory.end_session("thread-of-ada")
    for word in (b"gwendolen", b"Gwendolen", b"oolong", b"lapsang", b"thread-of-ada", b"NOT_FOUND"):
        assert found_in(tmp_path / "home", word) == []
    script.said = finds("lapsang")
    with make(script) as memory:
        assert [gap.question for gap in memory.gaps()] == [secret]
        assert {one.question for one in memory.traces()} == {TEA, secret}
        memory.deep_recall(TEA)
        assert memory.deep_recall(TEA).cached
        memory.conversations.delete("thread-of-ada")
        assert len(memory.list()) == 0
        assert memory._services().jobs.list_pending("extract") == []


def test_saved_answers_of_another_program_are_read() -> None:
    """Fields that this program does not know are left out; those it misses have their defaults."""
    from anaphora.values.json_codec import as_json, from_plain

    whole = json.loads(as_json(DeepAnswer("q", "a", steps=(DeepStep(1, "code"),))))
    whole["invented"] = 1
    whole["steps"][0]["invented"] = 2
    del whole["degraded"], whole["steps"][0]["sub_calls"]
    assert from_plain(DeepAnswer, whole) == DeepAnswer("q", "a", steps=(DeepStep(1, "code"),))


def test_a_key_is_a_digest_that_says_nothing() -> None:
    """The key is SHA-256 in hex over all that tells questions apart."""
    one = QuestionScope("How many?", "all_sessions", None, True, ("a", "b"))
    keys = {
        answer_key("default", one),
        answer_key("work", one),
        answer_key("default", QuestionScope("How many?", "all_sessions", "c", True, ("a", "b"))),
        answer_key("default", QuestionScope("How many?", "all_sessions", None, False, ("a", "b"))),
        answer_key("default", QuestionScope("How many?", "all_sessions", None, True, ("b", "a"))),
    }
    assert len(keys) == 5
    assert all(len(key) == 64 for key in keys)
    assert answer_key("default", one) == answer_key(
        "default", QuestionScope("how  many", "all_sessions", None, True, ("a", "b"))
    )


def letters(text: str) -> str:
    """A text as it is read: neither case nor the way in which an accent is written tells."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


SIGNS = st.characters(exclude_categories=["Cs"]).filter(lambda c: not c.isspace())


WORDS = st.text(max_size=12)


@pytest.mark.promise("deep.question_form")
@given(before=WORDS, one=SIGNS, other=SIGNS, after=WORDS)
@example("Why did we drop C", "#", "+", "?")
@example("What is Ma", "ß", "s", "se?")
@example("Is it ", "\N{DOG FACE}", "\N{CAT FACE}", "?")
@example("Was it ", "-", "+", "5 degrees?")
@example("the regex a", "?", "*", "")
@example("the sign ", "?", "!", "")
@example("sch", "ö", "o", "n?")
def test_one_sign_makes_another_question(before: str, one: str, other: str, after: str) -> None:
    """Two texts that differ in one sign have keys of their own, as answers and as gaps."""
    first, second = f"{before}{one}{after}", f"{before}{other}{after}"
    assume(letters(first) != letters(second))
    # A mark at the end of a word is the one sign that may be left away.
    assume(not {one, other} & set("?\uff1f\u061f") or " ".join((after + "x").split()) != "x")
    keys = {
        answer_key("default", QuestionScope(text, "all_sessions", None, True))
        for text in (first, second)
    }
    assert len(keys) == 2
    assert question_key(first) != question_key(second)


@pytest.mark.promise("deep.question_form")
@given(st.text(max_size=40), st.sampled_from([" ", "  ", "\t", "\n", "\u3000"]))
def test_case_and_space_make_no_other_question(text: str, space: str) -> None:
    """However wide its gaps and whatever its case, a question is the same."""
    wide = space + space.join(text.split()) + space
    assert question_key(wide) == question_key(text) == question_key(text.lower())


@pytest.mark.promise("deep.dream")
def test_restatements_are_linked_once_ever(tmp_path: Path, clock: Clock) -> None:
    """A pair reinforces once, however often it is dreamt of; nothing goes away."""
    with opening(tmp_path, clock)() as memory:
        memory.ready(60)
        index = memory._services().memory.index
        # As when another process, or an import, brought the second: nothing linked them.
        parts = memory._services()
        memory.remember("Ada lives in Ghent with two cats")
        neighbours, parts.memory.writer._linker.neighbours = (
            parts.memory.writer._linker.neighbours,
            lambda rows, _: [[] for _ in rows],
        )
        memory.remember_many([NewMemory("Ada lives in Ghent with two cats.")])
        parts.memory.writer._linker.neighbours = neighbours
        index.sync()
        records = memory.list().items
        assert [one.reinforce_count for one in records] == [0, 0]
        report = memory.dream()
        (link,) = report.links
        assert {link.first, link.second} == {one.id for one in records}
        counts = sorted(one.reinforce_count for one in memory.list())
        assert memory.dream().links == ()
        assert sorted(one.reinforce_count for one in memory.list()) == counts
        assert counts == ([0, 1] if link.kind == "same" else [0, 0])
