"""Facts taken out of finished conversations: bound to turns that exist, and gone with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Clock
from tests.deep.asking import Script, opening, tell

from anaphora import Budget, Message, Reply
from anaphora.errors import ModelError, NotFound


def facts(*some: tuple[str, Any]) -> str:
    """A reply with these facts and the turns they cite."""
    return json.dumps([{"fact": text, "turns": turns} for text, turns in some])


@pytest.mark.promise("deep.extract")
def test_every_fact_cites_turns_that_exist(tmp_path: Path, clock: Clock) -> None:
    """A fact without a turn, or with one that is not there, is refused; the others are kept."""
    script = Script(
        "Here they are:\n"
        + facts(
            ("Ada drinks lapsang in the evening.", [0]),
            ("Bob is allergic to walnuts.", ["#2", 3]),
            ("Carol is a pilot.", []),
            ("Dora lives in Rome.", [99]),
            ("Emil is old.", [0, 77]),
            ("Fay is young.", ["no"]),
        )
    )
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        done = memory.extract("tea")
        records = [memory.get(one) for one in done.added]
    assert [(r.text, r.turn_index) for r in records] == [
        ("Ada drinks lapsang in the evening.", 0),
        ("Bob is allergic to walnuts.", 2),
    ]
    assert {(r.conversation_id, r.sources) for r in records} == {("tea", ("extract",))}
    assert done.refused == (
        "Carol is a pilot.",
        "Dora lives in Rome.",
        "Emil is old.",
        "Fay is young.",
    )
    assert done.cost.sub_calls == 1
    assert done.cost.input_tokens > 0


@pytest.mark.promise("deep.extract")
def test_at_most_twenty_facts(tmp_path: Path, clock: Clock) -> None:
    """However many a model writes, a session gives 20."""
    script = Script(facts(*((f"Fact number {n} stands.", [n % 4]) for n in range(60))))
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        assert len(memory.extract("tea").added) == 20


@pytest.mark.promise("deep.extract")
def test_only_what_is_new_is_read(tmp_path: Path, clock: Clock) -> None:
    """Unchanged content asks nobody; what was added later is read with a little before it."""
    script = Script(facts(("Ada drinks lapsang.", [0])))
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        memory.extract("tea")
        assert memory.extract("tea").skipped == "unchanged"
        assert len(script.model.asked) == 1
        memory.conversations.append_user("tea", "Carol flies the red plane to Malta in May. " * 3)
        script.said = facts(("Carol flies to Malta in May.", [4]), ("Ada drinks lapsang.", [0]))
        done = memory.extract("tea")
        assert [memory.get(one).text for one in done.added] == ["Carol flies to Malta in May."]
        # Turn 0 was not shown again, so that nobody can have read it there.
        assert done.refused == ("Ada drinks lapsang.",)
        assert "lapsang" not in script.model.asked[1][1].text.split("#2")[0]
        memory.conversations.redact("tea", 1)
        memory.extract("tea")
        assert "#0" in script.model.asked[2][1].text


@pytest.mark.promise("deep.extract")
def test_what_was_said_before_is_reinforced(tmp_path: Path, clock: Clock) -> None:
    """A fact that is known already comes in as every restatement does."""
    script = Script(facts(("Ada drinks lapsang.", [0])))
    with opening(tmp_path, clock)(script) as memory:
        known = memory.remember("Ada drinks lapsang.").id
        tell(memory)
        done = memory.extract("tea")
        assert (done.added, done.reinforced) == ((), (known,))
        assert memory.get(known).reinforce_count == 1


@pytest.mark.promise("deep.extract")
def test_secrets_are_not_extracted(tmp_path: Path, clock: Clock) -> None:
    """Facts come in through `remember`: a card number is taken out."""
    script = Script(facts(("Ada pays with 4111 1111 1111 1111.", [0])))
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        (fact,) = memory.extract("tea").added
        assert "4111" not in memory.get(fact).text


@pytest.mark.parametrize(
    ("said", "turns", "why"),
    [("ok", 1, "too_short"), ("", 0, "missing")],
)
def test_what_is_not_there_is_not_extracted(
    tmp_path: Path, clock: Clock, said: str, turns: int, why: str
) -> None:
    """A conversation that hardly says anything asks nobody, one that is not there raises."""
    script = Script(facts())
    with opening(tmp_path, clock)(script) as memory:
        for _ in range(turns):
            memory.conversations.append_user("c", said)
        if why == "missing":
            with pytest.raises(NotFound):
                memory.extract("c")
        else:
            assert memory.extract("c").skipped == why
    assert script.model.asked == []


@pytest.mark.promise("deep.extract")
def test_the_budget_is_kept(tmp_path: Path, clock: Clock) -> None:
    """What the budget does not allow is not asked, and comes the next time."""
    script = Script(facts(("Ada drinks lapsang.", [0])))
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        done = memory.extract("tea", budget=Budget(tokens=50))
        assert (done.skipped, script.model.asked) == ("tokens", [])
        assert memory.extract("tea").added


def test_a_model_that_fails_raises_and_is_asked_again(tmp_path: Path, clock: Clock) -> None:
    """Nothing is noted as read; a queued job waits for the next time, three times in all."""
    script = Script()
    script.said = ModelError("scripted", "refused")  # type: ignore[assignment]
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        with pytest.raises(ModelError):
            memory.extract("tea")
        memory.end_session("tea")
        for _ in range(2):
            assert [part.part for part in memory.run_jobs().degraded] == ["model"]
        script.said = facts(("Ada drinks lapsang.", [0]))
        assert memory.run_jobs().extracted[0].added


@pytest.mark.promise("deep.forgets")
@pytest.mark.parametrize("how", ["delete", "redact"])
def test_facts_go_with_their_turns(tmp_path: Path, clock: Clock, how: str) -> None:
    """A fact goes when a turn that says it goes, unless it was said elsewhere too."""
    script = Script(
        facts(
            ("Ada drinks lapsang.", [0]),
            ("Bob lives in Ghent.", [2]),
            ("Tea is noted.", [1]),
            ("Walnuts are bad.", [0, 3]),
        )
    )
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        tell(memory, "again")
        memory.extract("tea")
        memory.remember("Tea is noted.")
        script.said = facts(("Bob lives in Ghent.", [2]))
        memory.extract("again")
        if how == "delete":
            memory.conversations.delete("tea")
        else:
            memory.conversations.redact("tea", 0)
        left = {record.text for record in memory.list()}
    gone = {"Ada drinks lapsang.", "Walnuts are bad."}
    assert left == {"Bob lives in Ghent.", "Tea is noted."}
    assert not left & gone


GOOD = facts(("Ada drinks lapsang.", [0]))
CUT = '[{"fact": "Ada drinks lapsang.", "turns": []}, {"fact": "Bob lives in Gh'


@pytest.mark.promise("deep.extract_again")
@pytest.mark.parametrize(
    "said",
    [
        "",
        "no facts",
        "[",
        "[1, 2]",
        '[{"fact": 3}]',
        '{"fact": "x"}',
        '{"fact": "x", "turns": []}',
        "[" * 5_000,
        '[{"turns":[0]}]',
        '[{"turns":[]}]',
        CUT,
        "I see: nothing [yet].",
    ],
)
def test_a_reply_that_is_no_list_is_not_the_last_word(
    tmp_path: Path, clock: Clock, said: str
) -> None:
    """Nothing of it is stored, it says so, and the session is read by the next extraction."""
    script = Script(said)
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        done = memory.extract("tea")
        assert (done.added, done.skipped, done.unread) == ((), "malformed", True)
        assert len(memory.list()) == 0
        script.said = GOOD
        assert len(memory.extract("tea").added) == 1
        assert memory.extract("tea").skipped == "unchanged"


@pytest.mark.promise("deep.extract_again")
def test_a_reply_that_was_cut_says_so(tmp_path: Path, clock: Clock) -> None:
    """What its limit of tokens has cut is asked for again; a list that is whole counts."""
    script = Script()
    script.said = Reply(CUT, 10, 10, 0.0, cut=True)  # type: ignore[assignment]
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        assert memory.extract("tea").skipped == "cut"
        whole = Reply(GOOD + " And also", 10, 10, 0.0, cut=True)
        script.said = whole  # type: ignore[assignment]
        done = memory.extract("tea")
        assert (len(done.added), done.skipped) == (1, None)


@pytest.mark.promise("deep.extract_again")
@pytest.mark.parametrize("said", ["[]", "None: []", "Facts (as [asked]): []", '{"facts": []}'])
def test_no_facts_is_an_answer(tmp_path: Path, clock: Clock, said: str) -> None:
    """An empty list says that there are none: the session is read."""
    with opening(tmp_path, clock)(Script(said)) as memory:
        tell(memory)
        done = memory.extract("tea")
        assert (done.added, done.skipped) == ((), None)
        assert memory.extract("tea").skipped == "unchanged"


@pytest.mark.promise("deep.extract_again")
def test_what_was_read_before_a_bad_reply_stays_read(tmp_path: Path, clock: Clock) -> None:
    """Of a long conversation the pieces before count; the next extraction begins behind them."""
    script = Script(GOOD)
    long = "We talked about the weather in Ghent for a long time. " * 600

    def reply(messages: Sequence[Message]) -> str:
        # Every turn is long enough to be asked about alone.
        return script.said if "#3" in messages[1].text else GOOD

    script.model._next = reply
    with opening(tmp_path, clock)(script) as memory:
        for _ in range(5):
            memory.conversations.append_user("tea", long)
        script.said = "Sorry?"
        done = memory.extract("tea")
        assert (len(done.added), done.skipped) == (1, "malformed")
        assert len(script.model.asked) == 4
        script.said = "[]"
        assert memory.extract("tea").skipped is None
        again = [asked[1].text.split("\n")[1][:5] for asked in script.model.asked[4:]]
        assert again == ["|- #1", "|- #2", "|- #3", "|- #4"]
        assert memory.extract("tea").skipped == "unchanged"


@pytest.mark.promise("deep.extract_again")
def test_a_queued_extraction_waits_for_a_better_reply(tmp_path: Path, clock: Clock) -> None:
    """A job whose reply could not be read stays, three times in all, and the report says why."""
    script = Script("Sorry?")
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        memory.end_session("tea")
        for _ in range(2):
            report = memory.run_jobs()
            assert [str(part) for part in report.degraded] == [
                "model: tea: its reply was malformed"
            ]
        script.said = GOOD
        assert memory.run_jobs().extracted[0].added
        assert memory.run_jobs().extracted == ()
