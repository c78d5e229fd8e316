"""Answers that come back: for an hour, while what they stand on is what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.deep.asking import PAIRS, TEA, Opening, Script, finds, opening, submits, tell

from anaphora import Memory, NewTurn

Open = Callable[[], Memory]


@pytest.fixture(params=["sqlite", "postgresql"])
def open_home(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Opening]:
    """Opens one home, on either database, as often as a test wants."""
    more = {}
    if request.param == "postgresql":
        more["database"] = request.getfixturevalue("postgresql_url")
    opened: list[Memory] = []
    open_one = opening(tmp_path / "home", clock, **more)

    def keep(*args: object, **options: object) -> Memory:
        opened.append(open_one(*args, **options))
        return opened[-1]

    yield keep
    for memory in opened:
        memory.close()


@pytest.fixture
def script() -> Script:
    return Script(finds("Ada lapsang tea"))


@pytest.mark.promise("deep.cache")
def test_an_answer_comes_back_however_it_is_spelt(open_home: Opening, script: Script) -> None:
    """Other case and space, and no question mark, are the same question, after a restart too."""
    memory = open_home(script)
    tell(memory)
    first = memory.deep_recall(TEA)
    assert (first.cached, first.supported, script.calls) == (False, True, 1)
    memory.close()
    again = open_home(script).deep_recall("  what DOES ada  drink\nin total")
    assert again.cached
    assert (again.answer, again.sources, again.trace_id) == (
        first.answer,
        first.sources,
        first.trace_id,
    )
    assert again.cost.input_tokens == 0
    assert [step.kind for step in again.steps] == ["cache"]
    assert script.calls == 1


@pytest.mark.promise("deep.cache_own_turn")
def test_the_question_stored_as_a_turn_is_no_news(open_home: Opening, script: Script) -> None:
    """Agents store the question they ask; that alone must not cost a second search."""
    memory = open_home(script)
    tell(memory)
    memory.conversations.append_user("tea", TEA)
    memory.deep_recall(TEA)
    memory.conversations.append_user("tea", TEA)
    memory.conversations.append_user("other", TEA.lower())
    assert memory.deep_recall(TEA).cached


@pytest.mark.promise("deep.cache_dropped")
@pytest.mark.parametrize(
    "change",
    [
        lambda m, ids: m.conversations.append_user("tea", "Ada drinks cold milk in total silence"),
        lambda m, ids: m.remember("Ada drinks three cups of coffee in total"),
        lambda m, ids: m.conversations.delete("tea"),
        lambda m, ids: m.conversations.redact("tea", 0),
        lambda m, ids: m.forget(ids["other"]),
        lambda m, ids: m.forget(ids["other"], soft=True),
        lambda m, ids: m.remember("Ada drinks lapsang, four cups", path="/ada/drink"),
    ],
    ids=["new turn", "new memory", "deletion", "redaction", "forget", "soft", "supersession"],
)
def test_what_changes_the_evidence_drops_the_answer(
    open_home: Opening, script: Script, change: Callable[[Memory, dict[str, str]], object]
) -> None:
    """After a new row among the evidence, a deletion or a new value the question is asked anew."""
    memory = open_home(script)
    tell(memory)
    memory.remember("Ada drinks lapsang", path="/ada/drink")
    ids = {"other": memory.remember("The weather in Oslo was bad").id}
    memory.deep_recall(TEA)
    assert memory.deep_recall(TEA).cached
    change(memory, ids)
    assert not memory.deep_recall(TEA).cached


@pytest.mark.promise("deep.cache_dropped")
def test_extraction_drops_every_answer(open_home: Opening, script: Script) -> None:
    """Facts have changed: what was answered before may be wrong now."""
    memory = open_home(script)
    tell(memory)
    memory.deep_recall(TEA)
    script.said = '[{"fact": "Bob lives in Ghent.", "turns": [2]}]'
    assert memory.extract("tea").added
    script.said = finds("Ada lapsang tea")
    assert not memory.deep_recall(TEA).cached


def test_an_unrelated_turn_changes_nothing(open_home: Opening, script: Script) -> None:
    """A turn that the question does not find leaves the answer where it is."""
    memory = open_home(script)
    tell(memory)
    memory.conversations.extend("long", [_turn(n) for n in range(60)])
    memory.deep_recall(TEA)
    memory.conversations.append_user("long", "Nothing but rain over the harbour today")
    assert memory.deep_recall(TEA).cached


def _turn(number: int) -> NewTurn:
    # Each a little further from the question than the one before it.
    return NewTurn("user", "Ada tea drink total" + " and cake" * number)


@pytest.mark.promise("deep.cache")
def test_an_answer_lives_for_an_hour(open_home: Opening, script: Script, clock: Clock) -> None:
    """59 minutes later it comes back; 61 minutes later it is asked anew."""
    memory = open_home(script)
    tell(memory)
    memory.deep_recall(TEA)
    clock.advance(minutes=59)
    assert memory.deep_recall(TEA).cached
    clock.advance(minutes=2)
    assert not memory.deep_recall(TEA).cached


@pytest.mark.promise("deep.cache_apart")
def test_no_answer_crosses_namespaces_models_or_scopes(open_home: Opening, script: Script) -> None:
    """The same words in another namespace, scope or of another model are another question."""
    memory = open_home(script)
    tell(memory)
    tell(memory.scoped("work"))
    memory.deep_recall(TEA)
    assert memory.deep_recall(TEA).cached
    assert not memory.scoped("work").deep_recall(TEA).cached
    assert not memory.deep_recall(TEA, scope="all_sessions").cached
    assert not memory.deep_recall(TEA, include_memory=False).cached
    assert not memory.deep_recall(TEA, scope="current_session", conversation_id="tea").cached
    memory.close()
    other = open_home(Script(finds("Ada lapsang tea"), name="another"))
    assert not other.deep_recall(TEA).cached


def test_only_so_many_answers_are_kept(tmp_path: Path, clock: Clock, script: Script) -> None:
    """The oldest answer goes when there are more than 50."""
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        for number in range(50 + 2):
            clock.advance(seconds=1)
            memory.deep_recall(f"{TEA} cups {number}", scope="all_sessions")
        assert not memory.deep_recall(f"{TEA} cups 0", scope="all_sessions").cached
        assert memory.deep_recall(f"{TEA} cups {50}", scope="all_sessions").cached


def test_an_answer_without_support_is_not_kept(
    tmp_path: Path, clock: Clock, script: Script
) -> None:
    """What cites nothing that exists is asked anew each time."""
    script.said = submits("Lapsang, I guess")
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        assert not memory.deep_recall(TEA).supported
        assert not memory.deep_recall(TEA).cached


@pytest.mark.promise("deep.question_form")
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_answer_is_given_to_another_question(
    tmp_path: Path, clock: Clock, script: Script, one: str, other: str
) -> None:
    """What was answered to one question is not the answer to one that differs in a sign."""
    script.said = submits("Ada drinks lapsang.", "tea#0")
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        assert memory.deep_recall(one, scope="all_sessions").supported
        assert not memory.deep_recall(other, scope="all_sessions").cached
        assert memory.deep_recall(one.upper(), scope="all_sessions").cached
