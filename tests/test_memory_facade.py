"""The lasting memories of one home, through `Memory` and with the real model, from end to end."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import NOW, Clock

from anaphora import Memory, NewMemory, Remembered, Vectors
from anaphora.embed.base import Embedder
from anaphora.embed.service import spec_for
from anaphora.errors import EmbeddingError, FilterError, InvalidInput, NotFound
from anaphora.testing import WordHashingEmbedder

OpenMemory = Callable[..., Memory]

# The published floor of scores.
FLOOR = 0.5
FACTS = (
    NewMemory(
        "The user prefers vitest over jest for unit tests",
        path="user.preferences.testing",
        payload={"framework": "vitest"},
        tags=("testing", "javascript"),
        category="development",
    ),
    NewMemory("Deployments happen every Tuesday at nine", tags=("ops",), category="development"),
    NewMemory("Ada is allergic to walnuts", category="health", type="episodic"),
    NewMemory("To reset the router, hold the button for ten seconds", type="procedural"),
    NewMemory("The integration tests need a running database", tags=("testing",)),
    NewMemory("Error E4021 means that the certificate has expired", tags=("ops", "errors")),
)


@pytest.fixture
def open_memory(tmp_path: Path, clock: Clock) -> Iterator[OpenMemory]:
    """Opens homes under the test's folder, as another program would each time."""
    opened: list[Memory] = []

    def open_one(name: str = "home", **options: Any) -> Memory:
        given: dict[str, Any] = {"embedder": "minilm", "clock": clock} | options
        opened.append(Memory.open(tmp_path / name, **given))
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """An empty home."""
    memory = open_memory()
    memory.ready()
    return memory


@pytest.fixture
def filled(memory: Memory) -> Memory:
    """A home with the facts."""
    memory.remember_many(FACTS)
    return memory


def texts(found: Any) -> list[str]:
    return [one.text for one in found]


def test_the_example_of_the_seed(memory: Memory) -> None:
    """What was remembered with path, payload, tags and category comes back with all of them."""
    made = memory.remember(
        FACTS[0].text,
        path=FACTS[0].path,
        payload=FACTS[0].payload,
        tags=list(FACTS[0].tags),
        category=FACTS[0].category,
    )
    assert made == Remembered(made.id, "added")
    (hit,) = memory.recall("prefers vitest over jest", top_k=3)
    assert (hit.id, hit.text) == (made.id, FACTS[0].text)
    assert (hit.path, hit.payload) == ("user.preferences.testing", {"framework": "vitest"})
    assert (hit.tags, hit.category, hit.type) == (FACTS[0].tags, "development", "semantic")
    assert hit.created_at == NOW
    assert hit.score == pytest.approx(hit.similarity * hit.decay * hit.reinforcement)
    assert hit.score > FLOOR


def test_the_filter_of_the_seed(filled: Memory) -> None:
    """A filter lets through what it names before anything is cut, and a bad one names its place."""
    filters = {"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}
    found = filled.recall("user testing preferences", top_k=5, filters=filters)
    assert texts(found) == [FACTS[0].text]
    narrow = {"payload.framework": {"in": ["vitest", "jest"]}}
    assert texts(filled.recall("walnuts", top_k=1, filters=narrow, min_score=0.0)) in (
        [],
        [FACTS[0].text],
    )
    assert texts(filled.list(narrow)) == [FACTS[0].text]
    with pytest.raises(FilterError) as bad:
        filled.recall("tests", filters={"AND": [{"tags": {"smells": "nice"}}]})
    assert "filters.AND[0].tags" in bad.value.what


@pytest.mark.promise("remember.reinforces")
def test_a_restatement_reinforces(memory: Memory, clock: Clock) -> None:
    """The same thing said again is one memory that counts more; its tags and sources are joined."""
    text = FACTS[2].text
    first = memory.remember(text, tags=["health"], source="doctor")
    once = memory.recall("walnut allergy", mode="vector")[0]
    clock.advance(days=2)
    again = memory.remember(text, tags=["food"], source="letter")
    assert (again.id, again.action) == (first.id, "reinforced")
    (hit,) = memory.recall("walnut allergy", mode="vector")
    assert hit.reinforcement > once.reinforcement == 1.0
    assert hit.reinforcement == pytest.approx(1 + np.log(2))
    assert hit.decay == 1.0
    record = memory.get(first.id)
    assert (record.reinforce_count, record.last_reinforced) == (1, clock.now)
    assert (record.tags, record.sources) == (("health", "food"), ("doctor", "letter"))
    assert len(memory.list()) == 1


def test_an_old_fact_restated_outranks_a_fresh_one(memory: Memory, clock: Clock) -> None:
    """What was said often ranks above a fresh one-off that is nearer to the question."""
    for _ in range(8):
        often = memory.remember("We usually deploy the service with Docker Compose")
        clock.advance(days=1)
    fresh = memory.remember("How do we deploy the service? Once it went by rsync")
    clock.advance(days=1)
    found = memory.recall("how do we deploy the service?", mode="vector")
    assert [hit.id for hit in found] == [often.id, fresh.id]
    assert found[1].similarity > found[0].similarity


@pytest.mark.promise("remember.supersedes")
def test_a_path_has_one_value_at_a_time(memory: Memory, clock: Clock) -> None:
    """A new value supersedes the old one, which answers for its own time and stays in history."""
    old = memory.remember("The user's editor is Vim", path="user.editor")
    spring = clock.now
    clock.advance(days=30)
    new = memory.remember("The user's editor is Helix", path="user.editor")
    assert new.action == "superseded"
    assert texts(memory.recall("which editor?")) == ["The user's editor is Helix"]
    then = memory.recall("which editor?", as_of=spring + timedelta(days=1))
    assert texts(then) == ["The user's editor is Vim"]
    before = memory.recall("which editor?", as_of=spring - timedelta(days=1), explain=True)
    assert (before.hits, {one.reason for one in before.rejected}) == ((), {"not_yet_known"})
    line = memory.history("user.editor")
    assert [one.id for one in line] == [old.id, new.id]
    assert (line[0].valid_to, line[0].superseded_by) == (clock.now, new.id)
    assert (line[1].valid_to, line[1].supersedes) == (None, old.id)
    assert [one.id for one in memory.list()] == [new.id]


@pytest.mark.promise("remember.update")
def test_an_update(filled: Memory, clock: Clock) -> None:
    """Tags change in place; other words make a version that supersedes."""
    (tuesday,) = filled.recall("when do we deploy?", top_k=1)
    clock.advance(hours=1)
    done = filled.update(tuesday.id, tags=["ops", "calendar"], category="planning")
    assert (done.id, done.action) == (tuesday.id, "updated")
    assert filled.get(tuesday.id).tags == ("ops", "calendar")
    done = filled.update(tuesday.id, text="Deployments happen every Thursday at nine")
    assert done.action == "superseded"
    (hit,) = filled.recall("when do we deploy?", top_k=1)
    assert (hit.id, hit.text) == (done.id, "Deployments happen every Thursday at nine")
    assert (hit.tags, hit.category) == (("ops", "calendar"), "planning")
    assert filled.get(tuesday.id).superseded_by == done.id
    with pytest.raises(InvalidInput):
        filled.update(tuesday.id, text="once more")
    with pytest.raises(NotFound):
        filled.update("nothing", tags=["x"])


def test_what_has_nothing_to_do_with_it(filled: Memory) -> None:
    """An unrelated question falls below the published floor; `min_score` leaves it out."""
    for query in ("the history of Byzantine mosaics", "sourdough starter feeding schedule"):
        assert len(filled.recall(query, min_score=FLOOR)) == 0
    for query, place in (("is Ada allergic to anything?", 2), ("E4021", 5)):
        assert texts(filled.recall(query, min_score=FLOOR))[0] == FACTS[place].text
    assert len(filled.recall("E4021", min_score=99.0)) == 0


def test_modes(filled: Memory) -> None:
    """By meaning, by words and by both: each finds what it can, `vector` by the seed's formula."""
    by_vector = filled.recall("nut allergy", mode="vector", top_k=1)
    assert texts(by_vector) == [FACTS[2].text]
    assert by_vector[0].score == pytest.approx(by_vector[0].similarity)
    assert texts(filled.recall("E4021", mode="words")) == [FACTS[5].text]
    assert len(filled.recall("peanut sensitivity", mode="words")) == 0
    assert texts(filled.recall("certificate error E4021", top_k=1)) == [FACTS[5].text]
    with pytest.raises(InvalidInput):
        filled.recall("x", mode="guess")  # type: ignore[arg-type]


def test_why_something_did_not_come(filled: Memory, clock: Clock) -> None:
    """`explain` also gives the candidates that were left out, each with the reason."""
    filled.remember("The user prefers mocha", path="user.preferences.testing")
    clock.advance(seconds=1)
    found = filled.recall(
        "vitest for unit tests", top_k=1, explain=True, filters={"tags": {"exists": True}}
    )
    reasons = {one.hit.text: one.reason for one in found.rejected}
    assert reasons[FACTS[0].text] == "superseded"
    assert reasons[FACTS[2].text] == "filtered"
    assert all(one.hit.id not in {hit.id for hit in found} for one in found.rejected)
    assert filled.recall("vitest").rejected == ()


def test_events(memory: Memory) -> None:
    """Whoever asks is told of what was remembered, recalled and found in the cache."""
    told: dict[str, list[Any]] = {"cache": [], "remember": [], "recall": []}
    for event, seen in told.items():
        memory.on(event, seen.append)
    made = [memory.remember("The kettle is blue"), *memory.remember_many(FACTS[:2])]
    changed = memory.update(made[0].id, tags=["kitchen"])
    found = [memory.recall("what colour is the kettle?") for _ in range(2)]
    assert told["remember"] == [*made, changed]
    assert told["recall"] == found
    assert [(one.type, one.query) for one in told["cache"]] == [
        ("miss", "what colour is the kettle?"),
        ("hit", "what colour is the kettle?"),
    ]
    with pytest.raises(InvalidInput):
        memory.on("forget", print)


@pytest.mark.promise("remember.many")
def test_many_at_once(memory: Memory) -> None:
    """Many are kept as one after the other, with progress; a bad one among them stops all."""
    items = [NewMemory(f"Room {n} holds {n * 7} chairs") for n in range(300)]
    steps: list[tuple[str, int, int]] = []
    done = memory.remember_many([*items, items[250]], lambda *step: steps.append(step))
    assert [one.action for one in done] == ["added"] * 300 + ["reinforced"]
    assert done[300].id == done[250].id
    assert steps[-1] == ("remembering", 301, 301)
    assert [step[1] for step in steps] == sorted({step[1] for step in steps})
    assert memory.recall("how many chairs are in room 250?", top_k=1)[0].id == done[250].id
    with pytest.raises(InvalidInput):
        memory.remember_many([NewMemory("good"), NewMemory("bad", tags=("",) * 2), NewMemory("")])
    assert memory.stats().memories == 300
    with pytest.raises(InvalidInput):
        memory.remember("x", tags="one string")


@pytest.mark.promise("remember.redacts")
def test_secrets_stay_out(memory: Memory, tmp_path: Path) -> None:
    """A secret is taken out before anything is written, and the result says so."""
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6"
    made = memory.remember(f"The deploy token is {secret}", payload={"note": secret})
    assert made.redacted
    assert secret not in memory.get(made.id).text
    memory.recall("deploy token")
    memory.close()
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files
    assert all(secret.encode() not in path.read_bytes() for path in files)


def test_namespaces(memory: Memory) -> None:
    """A namespace knows nothing of another on the same home."""
    other = memory.scoped("other")
    mine = memory.remember("The kettle is blue", path="kettle.colour")
    theirs = other.remember("The kettle is green", path="kettle.colour")
    assert (mine.action, theirs.action) == ("added", "added")
    assert texts(memory.recall("kettle")) == ["The kettle is blue"]
    assert texts(other.recall("kettle")) == ["The kettle is green"]
    with pytest.raises(NotFound):
        other.get(mine.id)
    with pytest.raises(NotFound):
        other.forget(mine.id)
    assert other.forget(filters={"path": "kettle.colour"}).count == 1
    assert texts(memory.recall("kettle")) == ["The kettle is blue"]
    assert len(other.recall("kettle")) == 0
    assert (memory.stats().memories, other.stats().memories) == (1, 0)


def test_a_listing_in_pages(filled: Memory, clock: Clock) -> None:
    """Pages give every memory once, the last changed first, whatever comes meanwhile."""
    clock.advance(hours=1)
    latest = filled.remember("One more thing")
    first = filled.list(limit=3)
    assert first.items[0].id == latest.id
    filled.remember("Something that came while somebody was reading")
    second = filled.list(limit=3, cursor=first.cursor)
    third = filled.list(limit=3, cursor=second.cursor)
    assert third.cursor is None
    seen = [one.text for page in (first, second, third) for one in page]
    assert sorted(seen) == sorted(["One more thing", *(fact.text for fact in FACTS)])
    with pytest.raises(InvalidInput):
        filled.list(cursor="not one of ours")
    with pytest.raises(NotFound) as missing:
        filled.get("nothing")
    assert (missing.value.kind, missing.value.id) == ("memory", "nothing")


@pytest.mark.promise("forget.survivors")
def test_forgetting(filled: Memory) -> None:
    """What is forgotten is gone, the count is honest, and a turn that holds the words is named."""
    filled.conversations.append_user("kitchen", "By the way: Ada is allergic to walnuts, you know.")
    filled.conversations.append_user("kitchen", "The weather is fine")
    (ada,) = filled.recall("Ada's allergy", top_k=1, min_score=FLOOR)
    done = filled.forget(ada.id)
    assert (done.count, done.ids) == (1, (ada.id,))
    assert [(one.kind, one.id, one.index) for one in done.surviving] == [("turn", "kitchen", 0)]
    assert ada.text not in texts(filled.recall("Ada is allergic to walnuts"))
    with pytest.raises(NotFound):
        filled.get(ada.id)
    with pytest.raises(NotFound):
        filled.forget(ada.id)
    done = filled.forget(filters={"tags": {"contains": "ops"}})
    assert (done.count, done.surviving) == (2, ())
    assert filled.stats().memories == len(FACTS) - 3
    with pytest.raises(InvalidInput):
        filled.forget()


@pytest.mark.promise("forget.soft")
def test_forgetting_softly(filled: Memory) -> None:
    """Softly forgotten, a memory leaves recall and lists, and its history stays."""
    (ada,) = filled.recall("Ada's allergy", top_k=1)
    assert filled.forget(ada.id, soft=True).count == 1
    assert ada.text not in texts(filled.recall("Ada is allergic to walnuts"))
    assert ada.text not in texts(filled.list())
    assert filled.get(ada.id).forgotten
    assert filled.forget(ada.id, soft=True).count == 0
    again = filled.remember(ada.text, type="episodic")
    assert (again.action, again.id != ada.id) == ("added", True)
    assert texts(filled.recall("Ada's allergy", top_k=1)) == [ada.text]


def test_what_expires(memory: Memory, clock: Clock) -> None:
    """A memory is recalled until its time is over, and for that time also afterwards."""
    until = clock.now + timedelta(days=1)
    made = memory.remember("The lift is out of order today", expires_at=until)
    assert [hit.id for hit in memory.recall("does the lift work?")] == [made.id]
    clock.advance(days=2)
    assert len(memory.recall("does the lift work?")) == 0
    before = memory.recall("does the lift work?", as_of=until - timedelta(hours=1))
    assert [hit.id for hit in before] == [made.id]
    assert memory.remember("The lift is out of order today").action == "added"
    assert len(memory.recall("does the lift work?")) == 1


def test_numbers_and_health(filled: Memory) -> None:
    """`stats` counts what there is, and `doctor` finds nothing wrong."""
    filled.conversations.append_user("c", "hello there")
    filled.ready()
    stats = filled.stats()
    assert (stats.memories, stats.turns, stats.pending) == (len(FACTS), 1, 0)
    assert stats.bytes["truth"] > 0
    assert [check for check in filled.doctor() if not check.ok] == []
    assert {"home", "truth", "memories", "embedder"} <= {check.name for check in filled.doctor()}


class Failing(WordHashingEmbedder):
    """Makes no vector while it `fails`."""

    fails = True

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        if self.fails:
            raise EmbeddingError("the model has a bad day")
        return super().embed(texts)


@pytest.mark.promise("remember.never_blocks")
def test_a_failing_embedder(open_memory: OpenMemory) -> None:
    """Where no vector can be made a write is kept, words find it, and its vector comes later."""
    embedder = Failing()
    memory = open_memory(embedder=embedder)
    memory.ready()
    made = memory.remember("The spare key lies under the blue pot")
    memory.remember_many(FACTS)
    assert memory.remember("The spare key lies under the blue pot").action == "reinforced"
    found = memory.recall("spare key under the pot", top_k=1)
    assert [hit.id for hit in found] == [made.id]
    assert [one.part for one in found.degraded].count("embeddings") > 0
    embedder.fails = False
    later = open_memory(embedder=embedder)
    assert later.ready()
    found = later.recall("which key lies under a pot?", mode="vector", top_k=1)
    assert [hit.id for hit in found] == [made.id]
    assert found.degraded == ()
    assert memory.recall("spare key under the pot").degraded == ()


def run(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code, str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


UNCLOSED = """
import sys
from anaphora import Memory
memory = Memory.open(sys.argv[1])
memory.remember("Nobody closes this")
print(len(memory.recall("who closes this?")))
"""


def test_a_memory_that_nobody_closed(tmp_path: Path) -> None:
    """A program that ends without closing ends well and silently, and loses nothing."""
    for ending in ("", "sys.exit(0)\n"):
        done = run(UNCLOSED + ending, tmp_path / "home")
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    done = run("import sys\nfrom anaphora import Memory\nMemory.open(sys.argv[1])\n", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        (kept,) = memory.list()
        assert kept.reinforce_count == 1


@pytest.mark.promise("embed.identity")
def test_moving_to_another_embedder_and_back(open_memory: OpenMemory, tmp_path: Path) -> None:
    """Memories and turns move to another embedder and back: nothing is lost, none is compared
    with the other's vectors, and the home remembers which one it has."""
    started = open_memory(embedder="minilm")
    started.ready()
    started.remember_many(
        replace(fact, text=fact.text + end, path=None) for fact in FACTS for end in ("", "!")
    )
    for number, fact in enumerate(FACTS):
        started.conversations.append_user(f"talk{number % 2}", f"We spoke of this: {fact.text}")
    before = sorted(texts(started.list()))
    first = started.stats().embedder
    started.ready()
    started.close()

    names = [first]
    steps: list[tuple[str, int, int]] = []
    for embedder in ("hashing", "minilm"):
        moving = open_memory(embedder=None)
        assert moving.stats().embedder == names[-1]
        steps.clear()
        done = moving.reindex(embedder, progress=lambda *step: steps.append(step))
        assert done.left == 0
        # The way back makes no vector: those of the first embedder were kept.
        assert ({what for what, *_ in steps} == {"links"}) == (embedder == "minilm")
        # Until it is opened again the memory answers as it did, with its own vectors.
        (best,) = texts(moving.recall("allergic to nuts", top_k=1))
        assert best.rstrip("!") == FACTS[2].text
        moving.close()
        moved = open_memory(embedder=None)
        assert moved.stats().embedder == done.embedder != names[-1]
        names.append(done.embedder)
        assert moved.stats().pending == 0
        assert sorted(texts(moved.list())) == before
        again = moved.reindex()
        assert (again.memories, again.turns, again.left) == (0, 0, 0)
        found = moved.recall("is somebody allergic to nuts?", mode="vector", top_k=1)
        assert found[0].text.rstrip("!") == FACTS[2].text
        assert found.degraded == ()
        talk = moved.recall_conversation(None, "allergic to nuts", mode="vector", top_k=1)
        assert FACTS[2].text in talk[0].text
        assert talk.degraded == ()
        moved.close()
    assert names == [first, names[1], first]


@pytest.mark.promise("remember.never_blocks")
def test_what_was_kept_before_the_model_was_there_is_found_by_meaning(tmp_path: Path) -> None:
    """A memory that was written cold gets its vector with the next question, not only by words."""
    with Memory.open(tmp_path / "home", warm=False) as memory:
        memory.remember("Ada is allergic to walnuts")
    with Memory.open(tmp_path / "home") as memory:
        found = memory.recall("which food must we keep away from her?", min_confidence=0)
        assert [hit.text for hit in found] == ["Ada is allergic to walnuts"]
        assert not found.degraded


@pytest.mark.promise("recall.timeout")
@pytest.mark.parametrize("kept", [0, 100], ids=["empty", "full"])
def test_while_meaning_is_loading_the_nearest_come(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words answer at once, nothing is held back as unlikely, and every answer says so."""
    asked = "which test runner does the user prefer"
    with Memory.open(tmp_path) as memory:
        memory.remember_many(f"The heron number {n} stands in reed {n * 7}" for n in range(kept))
        memory.conversations.append_user("herons", "The herons left on Sunday")
        assert memory.ready()
    spec, gate = spec_for("minilm"), threading.Event()

    def load() -> Embedder:
        gate.wait()
        return spec.load()

    monkeypatch.setattr(
        "anaphora.embed.service.spec_for", lambda *_, **__: replace(spec, load=load)
    )
    with Memory.open(tmp_path) as memory:
        memory.remember("The user prefers vitest over jest")
        memory.conversations.append_user("tools", "The user prefers vitest over jest")
        for answer in (
            memory.recall(asked, timeout=0.2),
            memory.search(asked, timeout=0.2),
            memory.recall_conversation(None, asked, timeout=0.2),
            memory.recall_conversation("tools", asked, timeout=0.2),
        ):
            assert [hit.text for hit in answer.hits] == ["The user prefers vitest over jest"]
            assert "meaning is still loading" in str(answer.degraded)
        gate.set()
        assert memory.ready()
        assert memory.search(asked).hits[0].text == "The user prefers vitest over jest"
