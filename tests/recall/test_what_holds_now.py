"""What holds now comes first in both lanes, and says what it was before; times, and silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conftest import Clock

from anaphora import Memory, NewTurn, render_recall
from anaphora.errors import InvalidInput

DAY = timedelta(days=1)
START = datetime(2026, 2, 2, 9, 0, tzinfo=UTC)
NOW = START + 60 * DAY
ASKED = "which port does the staging database listen on?"
OLD = "The staging database listens on port 5433."
NEW = "We moved the staging database, it listens on port 5439 now."
CHATTER = (
    "It will rain on Saturday, I think.",
    "My bicycle has a flat tyre again.",
    "I baked bread with too much salt.",
    "The tram was late this morning.",
    "We should order new chairs for the office.",
)

Tell = Callable[..., None]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", clock=lambda: NOW) as opened:
        assert opened.ready(60)
        yield opened


def tell(
    memory: Memory, day: int, *lines: str, conversation: str = "chat", speaker: str = ""
) -> None:
    """Lines of one day, by the user and the assistant in turn, or all by one speaker."""
    turns = [
        NewTurn(
            "user" if speaker or number % 2 == 0 else "assistant",
            line,
            ts=START + day * DAY + timedelta(minutes=number),
            speaker=speaker or None,
        )
        for number, line in enumerate(lines)
    ]
    memory.conversations.extend(conversation, turns)


@pytest.mark.promise("recall.current")
def test_an_agent_that_is_asked_again_and_again_gives_the_newest_value(memory: Memory) -> None:
    """A value said once, asked and answered four times, then changed: the change comes first."""
    tell(memory, 0, OLD, "Noted: staging is on port 5433.", *CHATTER)
    for day in (3, 6, 9, 12):
        tell(memory, day, ASKED, "The staging database listens on port 5433.")
    tell(memory, 20, NEW, "Noted: port 5439 from now on.")
    found = memory.recall_conversation(None, ASKED, top_k=10, budget=10_000)
    values = [hit for hit in found if "543" in hit.text]
    assert "5439" in found[0].text
    assert found[0].current
    assert [hit.text for hit in found].count(ASKED) == 1
    (question,) = [hit for hit in found if hit.text == ASKED]
    assert len(question.occurrences) == 3
    assert question.factors["unanswered"] < 0
    # The question stands behind what holds and one that it replaced; the rest is far behind.
    before = found[: [hit.text for hit in found].index(ASKED)]
    assert [hit.current for hit in before] == [True, False, True]
    assert all(hit in values for hit in before)
    assert not any(hit.current for hit in values if hit not in before)


@pytest.mark.promise("recall.current")
def test_what_was_replaced_says_so_with_its_time_and_the_way_back(memory: Memory) -> None:
    """The older turn names what replaced it, the newer one what it was until then."""
    tell(memory, 0, OLD, "Noted.", *CHATTER)
    tell(memory, 45, NEW, "Noted.")
    found = memory.recall_conversation("chat", ASKED)
    assert [hit.text for hit in found][:2] == [NEW, OLD]
    newer, older = found[0], found[1]
    assert (newer.current, older.current) == (True, False)
    assert older.older_than is not None
    assert (older.older_than.text, older.older_than.ts) == (NEW, newer.ts)
    assert [one.text for one in newer.previous] == [OLD]
    assert sum(newer.factors.values()) == pytest.approx(newer.score, abs=1e-4)
    block = render_recall(found)
    assert f"- User (2026-03-19): {NEW}\n  (until 2026-03-19: on 2026-02-02" in block
    assert f'- User (2026-02-02): {OLD}\n  (older: on 2026-03-19 "{NEW}")' in block


@pytest.mark.promise("recall.current")
def test_the_past_is_asked_for_by_its_words_or_its_days(memory: Memory) -> None:
    """ "Before", "at first" and a named month get the value of then, a plain question does not."""
    tell(memory, 0, OLD, "Noted.", *CHATTER)
    tell(memory, 40, NEW, "Noted.")
    for question in (
        "which port did the staging database use before?",
        "on which port was the staging database at first?",
        "which port did the staging database listen on in February?",
    ):
        assert memory.recall_conversation(None, question)[0].text == OLD, question
    for question in (ASKED, "which port does staging use now?"):
        assert memory.recall_conversation(None, question)[0].text == NEW, question


@pytest.mark.promise("recall.current")
def test_newer_alone_does_not_win(memory: Memory) -> None:
    """A fact said once long ago stays first for its question, whatever was said since."""
    tell(memory, 0, "The alarm code of the office is 8841.", "Noted.")
    tell(memory, 30, "The alarm of the car went off again.", "Annoying.", *CHATTER)
    tell(memory, 50, "The office will be painted in May.", "Nice.")
    found = memory.recall_conversation(None, "what is the alarm code of the office?")
    assert found[0].text == "The alarm code of the office is 8841."
    assert found[0].current


@pytest.mark.promise("recall.repetition")
def test_turns_that_say_the_same_are_one_hit(memory: Memory) -> None:
    """The same words by the same speaker come once, every other time of them is reachable."""
    for day in (0, 5, 9):
        tell(
            memory,
            day,
            "The cleaning service comes on Thursdays.",
            "Noted.",
            conversation=f"c{day}",
        )
    tell(memory, 12, *CHATTER)
    found = memory.recall_conversation(None, "when does the cleaning service come?")
    first = found[0]
    assert first.text == "The cleaning service comes on Thursdays."
    assert len([hit for hit in found if hit.text == first.text]) == 1
    reached = {(one.conversation_id, one.index) for one in first.occurrences}
    assert reached | {(first.conversation_id, first.index)} == {("c0", 0), ("c5", 0), ("c9", 0)}
    assert [one.ts for one in first.occurrences] == sorted(one.ts for one in first.occurrences)
    assert "said 3 times, also on 2026-02-" in render_recall(found)


@pytest.mark.promise("recall.repetition")
def test_who_does_not_know_never_stands_before_who_does(memory: Memory) -> None:
    """ "I do not know" and the question itself come after the turn that holds the answer."""
    question = "Who has the key to the cellar?"
    tell(memory, 0, question, "I don't know who has the key to the cellar.")
    tell(memory, 4, question, "Nobody told me who has the key to the cellar.")
    tell(memory, 8, "By the way, Greta keeps the cellar key in her desk.", "Good to know.")
    tell(memory, 9, question, *CHATTER)
    found = memory.recall_conversation(None, question)
    assert found[0].text == "By the way, Greta keeps the cellar key in her desk."


@pytest.mark.promise("recall.current")
def test_the_newest_of_lasting_memories_comes_first(tmp_path: Path) -> None:
    """Facts without a path: the present value is first, the one before says that it is older."""
    clock = Clock()
    with Memory.open(tmp_path / "home", clock=clock) as memory:
        memory.ready(60)
        old = memory.remember("The team deploys on Wednesday mornings.")
        clock.advance(days=30)
        memory.remember("Rafi owns the deploy script.")
        new = memory.remember("Since July the team deploys on Thursdays.")
        found = memory.recall("on which day does the team deploy?")
    assert [hit.id for hit in found][:2] == [new.id, old.id]
    assert found[0].current
    older = found[1].older_than
    assert older is not None
    assert (older.id, older.text) == (new.id, found[0].text)
    assert [one.id for one in found[0].previous] == [old.id]
    product = found[0].similarity * found[0].decay * found[0].reinforcement
    assert product * found[0].factors.get("unanswered", 1.0) == pytest.approx(
        found[0].score, rel=1e-3
    )


@pytest.mark.promise("recall.choice")
def test_times_speakers_and_roles_are_arguments(memory: Memory) -> None:
    """Only what was said in the span, by the speaker, in the role is looked at; notices say why."""
    tell(memory, 0, "I like tea best.", speaker="Ada Byron")
    tell(memory, 10, "I like coffee best.", speaker="Bob")
    tell(memory, 20, "What do you drink?", "I like water best.")

    def texts(**chosen: object) -> list[str]:
        found = memory.recall_conversation(None, "who likes which drink best?", **chosen)  # type: ignore[arg-type]
        return sorted(hit.text for hit in found)

    assert texts(speaker="ada") == ["I like tea best."]
    assert texts(speaker="Bob", since=START + DAY) == ["I like coffee best."]
    assert texts(until=START + 5 * DAY) == ["I like tea best."]
    assert texts(role="assistant") == ["I like water best."]
    assert texts(since=START + 5 * DAY, until=START + 15 * DAY) == ["I like coffee best."]
    nobody = memory.recall_conversation(None, "tea?", speaker="Carl")
    assert (nobody.hits, nobody.notices) == (
        (),
        ("no turn is by Carl; known are Ada Byron, Bob",),
    )
    empty = memory.recall_conversation(None, "tea?", since=START + 50 * DAY)
    assert empty.notices == ("nothing was said since 2026-03-24 09:00 UTC",)
    with pytest.raises(InvalidInput, match="until"):
        memory.recall_conversation(None, "tea?", since=START + DAY, until=START)
    with pytest.raises(InvalidInput, match="role"):
        memory.recall_conversation(None, "tea?", role="king")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="since"):
        memory.recall_conversation(None, "tea?", since=datetime(2026, 2, 2))  # noqa: DTZ001


@pytest.mark.promise("recall.choice")
def test_a_day_on_which_nothing_was_said_is_named(memory: Memory) -> None:
    """A question for a span without turns says so, beside whatever comes close."""
    tell(memory, 0, OLD, "Noted.", *CHATTER)
    found = memory.recall_conversation(None, "what did we say about staging on 24 February 2026?")
    assert found.notices == ("nothing was said on 2026-02-24 (24 February 2026)",)
    spoken = memory.recall_conversation(None, "what did we say about staging on 2 February 2026?")
    assert spoken.notices == ()


@pytest.mark.promise("recall.choice")
def test_a_question_for_a_time_alone_gets_what_was_said_then(memory: Memory) -> None:
    """ "What happened on …" brings turns of that day and no others, or nothing with the reason."""
    tell(memory, 0, OLD, "Noted.", *CHATTER)
    tell(memory, 22, "We decided to move the queue to PostgreSQL.", "Noted.")
    tell(memory, 24, "The pilot starts in April.", "Noted.")
    found = memory.recall_conversation(None, "what happened on 24 February 2026?")
    assert {hit.ts.date().isoformat() for hit in found} == {"2026-02-24"}
    assert found[0].text == "We decided to move the queue to PostgreSQL."
    several = memory.recall_conversation(None, "what did we say between 23 and 27 February?")
    assert {hit.ts.day for hit in several} == {24, 26}
    for question in ("what was said on 1 March 2026?", "what did we discuss last week?"):
        empty = memory.recall_conversation(None, question)
        assert not empty.hits, question
        assert empty.notices[0].startswith("nothing was said")
        assert not empty.nearest
        assert memory.recall_conversation(None, question, min_confidence=0).hits
    # What asks for more than a time finds what was said at other times, too.
    assert (
        memory.recall_conversation(None, "which port did staging use on 24 February?")[0].text
        == OLD
    )


@pytest.mark.promise("recall.silence")
def test_what_nobody_spoke_of_gets_silence_and_the_nearest_on_request(memory: Memory) -> None:
    """Nonsense and what was never said get no hit in either lane; what came nearest is there."""
    tell(memory, 0, OLD, "Noted.", *CHATTER)
    memory.remember("The user prefers vitest over jest.")
    memory.remember("Rafi owns the deploy script.")
    for question in ("qqqzzz xyzzy plugh", "who won the football championship in Brazil?"):
        for ask in (memory.recall, lambda q, **more: memory.recall_conversation(None, q, **more)):
            found = ask(question)
            assert not found.hits, question
            # To nonsense no turn may be near at all: only that has no confidence.
            assert bool(found.nearest) == (found.confidence != 0.0)
            assert found.nearest or "xyzzy" in question
            assert found.confidence is not None
            assert found.confidence < 0.2
            assert ask(question, min_confidence=0).hits == found.nearest


@pytest.mark.promise("recall.silence")
def test_a_plain_question_for_what_was_kept_is_answered(memory: Memory) -> None:
    """Short questions without a word in common find a preference, as a person expects."""
    memory.remember("The user prefers vitest over jest.")
    memory.remember("Rafi owns the deploy script.")
    tell(memory, 0, OLD, "Noted.", *CHATTER)
    for question, wanted in (
        ("which test runner", "vitest"),
        ("what does the user like for tests?", "vitest"),
        ("who is responsible for deploying?", "Rafi"),
    ):
        assert wanted in memory.recall(question)[0].text, question
    assert memory.recall_conversation(None, "staging port")[0].text == OLD
