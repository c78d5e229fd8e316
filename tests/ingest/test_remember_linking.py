"""Closeness links memories and never makes two of them one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from anaphora import NewMemory, Vectors
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import EmbeddingError
from anaphora.ingest.judging import PairJudge
from anaphora.store.db.engine import Database, open_database
from anaphora.store.records.rows import RecordLink
from anaphora.testing import WordHashingEmbedder

from ..rank.sameness_pairs import ONE_FACT, TWO_FACTS  # noqa: TID252 - the same pairs decide here
from .truth_desk import Desk, drop_vectors

pytestmark = pytest.mark.internal

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def desk(truth: Database, clock: Callable[[], datetime]) -> Desk:
    """Remembering over an empty truth, once for each kind of database, its embedder loaded."""
    return Desk(truth, clock).warm()


@pytest.mark.promise("remember.links")
def test_what_says_the_same_is_linked_and_reinforces_once(desk: Desk, clock: Any) -> None:
    """Two close memories that agree are linked as the same; the older is reinforced, once ever."""
    older = desk.say("She lives in Rome")
    clock.advance(days=1)
    younger = desk.say("She lives in Rome.")
    assert (younger.action, younger.related) == ("added", (older.id,))
    (link,) = desk.links(older.id)
    assert (link.kind, {link.record_id, link.other_id}) == ("same", {older.id, younger.id})
    assert (desk.get(older.id).reinforce_count, desk.get(younger.id).reinforce_count) == (1, 0)
    assert desk.get(older.id).last_reinforced == NOW + DAY
    assert [event.kind for event in desk.records.events(older.id)] == ["added", "linked"]
    drop_vectors(desk.vectors, desk.service.name)
    assert desk.remembering.fill_vectors().embedded == 2
    assert desk.get(older.id).reinforce_count == 1
    assert len(desk.links(older.id)) == 1


@pytest.mark.promise("remember.never_merges")
def test_what_differs_is_linked_as_related(desk: Desk) -> None:
    """Two close memories that differ in a word stay two, flagged as related, unreinforced."""
    one = desk.say("Ana is allergic to peanuts and to walnuts")
    two = desk.say("Ana is not allergic to peanuts and to walnuts")
    assert two.related == (one.id,)
    assert [link.kind for link in desk.links(one.id)] == ["related"]
    assert desk.get(one.id).reinforce_count == 0
    assert len(desk.records.list()) == 2
    far = desk.say("The train leaves at noon")
    assert far.related == ()


def test_the_same_words_elsewhere_are_another_fact(desk: Desk) -> None:
    """Close memories of different paths, payloads or types are never the same."""
    desk.say("It is vim", path="user.editor")
    desk.say("It is vim.", path="agent.editor")
    desk.say("It is vim!", payload={"for": "root"})
    desk.say("It is vim.", type="episodic")
    assert {link.kind for link in desk.links(*(r.id for r in desk.records.list()))} == {"related"}


def test_what_does_not_stand_is_not_linked(desk: Desk) -> None:
    """Superseded and softly forgotten memories get no links."""
    first = desk.say("The code is four")
    second = desk.say("The code is four!", supersedes=first.id)
    desk.forget(second.id, soft=True)
    assert desk.say("The code is four.").related == ()


def test_close_memories_within_one_batch_are_linked(desk: Desk) -> None:
    """Memories that come together are linked as if they came one after the other."""
    done = desk.remembering.remember_many(
        [NewMemory("She lives in Rome"), NewMemory("far away"), NewMemory("She lives in Rome.")]
    )
    assert done[2].related == (done[0].id,)
    assert done[0].related == (done[2].id,)
    assert desk.get(done[0].id).reinforce_count == 1


def test_long_memories_are_linked_by_their_closest_parts(truth: Database, clock: Any) -> None:
    """A text of several parts is no neighbour of itself, and is found by its best part."""
    desk = Desk(truth, clock, WordHashingEmbedder(window=4)).warm()
    long = desk.say("one two three four " * 3)
    assert desk.vectors.counts() == {desk.service.name: (1, 3)}
    assert desk.links(long.id) == []
    short = desk.say("One two three four")
    assert short.related == (long.id,)


def test_a_failing_index_keeps_nothing_from_being_kept(truth: Database, clock: Any) -> None:
    """When neighbours cannot be asked the memory is kept, and its vector comes later."""
    desk = Desk(truth, clock).warm()
    asked = desk.remembering._linker.neighbours

    def broken(rows: Vectors, closer: float) -> Any:
        raise EmbeddingError("no index")

    desk.remembering._linker.neighbours = broken
    assert desk.say("kept").action == "added"
    assert desk.vectors.counts() == {}
    desk.remembering._linker.neighbours = asked
    assert desk.remembering.fill_vectors().embedded == 1


def test_vectors_of_another_embedder_are_left_alone(truth: Database, clock: Any) -> None:
    """Each embedder fills its own vectors; none is compared with another's."""
    one = Desk(truth, clock).warm()
    one.say("She lives in Rome")
    other = Desk(truth, clock, WordHashingEmbedder(64)).warm()
    assert other.remembering.fill_vectors().embedded == 1
    assert set(other.vectors.counts().values()) == {(1, 1)}
    assert drop_vectors(one.vectors, one.service.name) == 1
    assert list(other.vectors.counts()) == [other.service.name]


@pytest.fixture(scope="session")
def model() -> EmbedderService:
    """The bundled model."""
    service = EmbedderService(spec_for("minilm"))
    assert service.ready(60), service.failure
    return service


def pairs_as_linked(place: Path, clock: Callable[[], datetime], service: EmbedderService) -> Any:
    """For every pair: the kinds of links between its two memories, remembered with the model."""
    desk = Desk(open_database(place), clock)
    desk.service = service
    desk.remembering._embedder = desk.remembering._backlog._embedder = service
    desk.remembering._linker.embedder = service
    kinds: dict[tuple[str, str], set[str]] = {}
    pairs = TWO_FACTS + ONE_FACT
    done = desk.remembering.remember_many([NewMemory(text) for pair in pairs for text in pair])
    links = {(k.record_id, k.other_id): k.kind for k in desk.links(*(d.id for d in done))}
    for number, pair in enumerate(pairs):
        one, other = sorted((done[2 * number].id, done[2 * number + 1].id))
        kinds[pair] = {links[one, other]} if (one, other) in links else set()
    texts = {record.id: record.text for record in desk.records.list(limit=999)}
    same = {(texts[a], texts[b]) for (a, b), kind in links.items() if kind == "same"}
    desk.truth.close()
    return kinds, same


@pytest.mark.slow
@pytest.mark.promise("remember.never_merges")
def test_no_two_facts_are_taken_for_one(tmp_path: Path, clock: Any, model: EmbedderService) -> None:
    """With the real model: no pair of two facts is linked as the same."""
    kinds, same = pairs_as_linked(tmp_path / "truth.db", clock, model)
    assert [pair for pair in TWO_FACTS if "same" in kinds[pair]] == []
    different = {frozenset(pair) for pair in TWO_FACTS}
    assert [pair for pair in same if frozenset(pair) in different] == []


@pytest.mark.promise("remember.links")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We open at 9 on weekdays.", "On weekdays we open at 9 am."),
        ("The interest on the oven loan is 4.2 percent.", "Oven loan interest: 4.2%."),
        ("Staff get 15 percent off everything.", "Everything is 15% off for staff."),
    ],
)
def test_other_words_for_one_fact_reinforce_it(
    truth: Database, clock: Any, model: EmbedderService, older: str, newer: str
) -> None:
    desk = Desk(truth, clock, loaded=model)
    first = desk.say(older)
    clock.advance(days=20)
    second = desk.say(newer)
    assert [link.kind for link in desk.links(second.id)] == ["same"]
    assert desk.get(first.id).reinforce_count == 1
    assert second.conflicts == ()


@pytest.mark.promise("remember.links")
def test_without_a_judge_identical_texts_alone_are_the_same(
    truth: Database, clock: Any, model: EmbedderService, tmp_path: Path
) -> None:
    desk = Desk(truth, clock, loaded=model, judge=PairJudge(tmp_path / "none"))
    first = desk.say("We open at 9 on weekdays.")
    clock.advance(days=20)
    again = desk.say("we open  at 9 on weekdays")
    changed = desk.say("We open at 10 on weekdays now.")
    assert [link.kind for link in desk.links(again.id) if first.id in ends_of(link)] == ["same"]
    assert desk.get(first.id).reinforce_count == 1
    assert changed.conflicts == ()


@pytest.mark.promise("remember.never_merges")
def test_long_texts_that_begin_alike_are_two(
    truth: Database, clock: Any, model: EmbedderService
) -> None:
    """What the judge does not read may say something else."""
    desk = Desk(truth, clock, loaded=model)
    text = "We open at 9 on weekdays, and the bakery opens before us. " * 12
    first, second = desk.say(text + "Kim has the key."), desk.say(text + "Rafi has the key.")
    assert [link.kind for link in desk.links(first.id)] == ["related"]
    assert second.conflicts == ()


def ends_of(link: RecordLink) -> set[str]:
    return {link.record_id, link.other_id}
