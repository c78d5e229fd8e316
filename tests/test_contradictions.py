"""Memories that contradict each other: told, listed, settled, taken back; nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from starlette.testclient import TestClient
from tests.as_json import as_json
from tests.conftest import Clock
from tests.mcp_client import call, connected

from anaphora import Memory, Vector, Vectors
from anaphora.errors import EmbeddingError, InvalidInput, NotFound
from anaphora.testing import server_app

OLD = "The team deploys on Wednesday mornings."
NEW = "Since July the team deploys on Thursdays."
ASKED = "on which day does the team deploy?"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", clock=clock) as opened:
        assert opened.ready(60)
        yield opened


def keep_both(memory: Memory, clock: Clock) -> tuple[str, str]:
    """The ids of the older and of the newer memory."""
    old = memory.remember(OLD)
    clock.advance(days=30)
    return old.id, memory.remember(NEW).id


def texts(memory: Memory) -> list[str]:
    return [hit.text for hit in memory.recall(ASKED, top_k=10)]


@pytest.mark.promise("contradictions.told")
def test_who_keeps_a_memory_is_told_what_says_otherwise(memory: Memory, clock: Clock) -> None:
    """`remember` answers with words, date and id of what is close and differs; both stay."""
    first = memory.remember(OLD)
    assert first.conflicts == ()
    at = clock()
    clock.advance(days=30)
    done = memory.remember(NEW)
    assert [(one.id, one.text, one.created_at) for one in done.conflicts] == [(first.id, OLD, at)]
    # Said again, it is told again; what says the same, or another thing, is no conflict.
    assert [one.id for one in memory.remember(NEW).conflicts] == [first.id]
    for other in (
        "Rafi owns the deploy script.",
        "The design team meets on Mondays.",
        "Which day does the team deploy on?",
        "On Wednesday mornings the team deploys.",
    ):
        assert memory.remember(other).conflicts == (), other
    happened = memory.remember("On 3 June the team deployed twice.", type="episodic")
    assert happened.conflicts == ()
    assert set(texts(memory)) >= {OLD, NEW}


@pytest.mark.promise("contradictions.told")
def test_a_change_that_is_nearly_sure_is_told(memory: Memory, clock: Clock) -> None:
    """A value that took the place of another one is told, though neither names the other's."""
    first = memory.remember("Standup is at 9:30")
    clock.advance(days=10)
    assert [one.id for one in memory.remember("Standup moved to 10:00").conflicts] == [first.id]


@pytest.mark.promise("contradictions.told")
def test_many_at_once_are_told_as_one_by_one(tmp_path: Path) -> None:
    """`remember_many` names the conflicts of each, whether they came together or before."""
    items = [OLD, "Rafi owns the deploy script.", NEW, "The office is in Graz."]
    with Memory.open(tmp_path / "many") as many, Memory.open(tmp_path / "single") as single:
        many.ready(60)
        single.ready(60)
        done = many.remember_many(items)
        by_one = [single.remember(text) for text in items]
        assert [one.text for one in done[2].conflicts] == [OLD]
        assert [one.text for one in by_one[2].conflicts] == [OLD]
        pairs = [(one.older.text, one.newer.text) for one in many.contradictions()]
        assert pairs == [(OLD, NEW)]
        assert [(one.older.text, one.newer.text) for one in single.contradictions()] == pairs


@pytest.mark.promise("contradictions.settled")
def test_a_value_that_was_replaced_is_history(memory: Memory, clock: Clock) -> None:
    """ "replaces" ends the older one where the newer began; taken back, it holds again."""
    old, new = keep_both(memory, clock)
    before = memory.get(old)
    (found,) = memory.contradictions()
    assert (found.older.id, found.newer.id, found.verdict) == (old, new, None)
    assert found.holds == (old, new)
    done = memory.settle_contradiction(new, old, "replaces")
    assert (done.verdict, done.holds) == ("replaces", (new,))
    assert texts(memory) == [NEW]
    ended = memory.get(old)
    assert (ended.superseded_by, ended.valid_to) == (new, memory.get(new).valid_from)
    assert memory.contradictions() == ()
    assert memory.contradictions(settled=True) == (done,)
    past = memory.recall(ASKED, as_of=clock() - timedelta(days=15))
    assert [hit.text for hit in past] == [OLD]
    assert memory.reopen_contradiction(old, new).verdict is None
    assert set(texts(memory)) == {OLD, NEW}
    again = memory.get(old)
    assert (again.valid_to, again.superseded_by) == (None, None)
    assert memory.get(new).supersedes is None
    assert (again.text, again.created_at) == (before.text, before.created_at)
    assert memory.contradictions() == (found,)


@pytest.mark.promise("contradictions.settled")
def test_what_was_wrong_never_held(memory: Memory, clock: Clock) -> None:
    """ "wrong" takes a memory out of every moment; "both_hold" leaves both, and is remembered."""
    old, new = keep_both(memory, clock)
    assert memory.settle_contradiction(new, old, "wrong").holds == (old,)
    clock.advance(days=1)
    assert texts(memory) == [OLD]
    for days in (0, 1, 40):
        past = memory.recall(ASKED, top_k=9, as_of=clock() - timedelta(days=days))
        assert NEW not in [hit.text for hit in past]
    memory.reopen_contradiction(new, old)
    assert memory.settle_contradiction(new, old, "both_hold").holds == (old, new)
    assert set(texts(memory)) == {OLD, NEW}
    # Neither another restatement nor a dream asks again.
    memory.remember(NEW)
    memory.dream(model=False)
    assert memory.contradictions() == ()
    assert memory.remember(NEW).conflicts == ()


@pytest.mark.promise("contradictions.settled")
def test_what_cannot_be_settled_says_why(memory: Memory, clock: Clock) -> None:
    """Unknown ids, pairs that are none, verdicts that are none, and settling twice are refused."""
    old, new = keep_both(memory, clock)
    other = memory.remember("Rafi owns the deploy script.").id
    with pytest.raises(NotFound, match="memory"):
        memory.settle_contradiction(new, "nothing", "replaces")
    with pytest.raises(NotFound, match="contradiction"):
        memory.settle_contradiction(new, other, "replaces")
    with pytest.raises(InvalidInput, match="verdict"):
        memory.settle_contradiction(new, old, "perhaps")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not settled"):
        memory.reopen_contradiction(new, old)
    memory.settle_contradiction(new, old, "replaces")
    with pytest.raises(InvalidInput, match="reopen"):
        memory.settle_contradiction(new, old, "wrong")
    memory.reopen_contradiction(new, old)
    # Replaced in the ordinary way meanwhile: there is nothing left to settle.
    memory.remember("The team deploys whenever it is ready.", supersedes=new)
    assert old not in {
        end.id for one in memory.contradictions() for end in (one.older, one.newer)
    } or (new not in {end.id for one in memory.contradictions() for end in (one.older, one.newer)})
    with pytest.raises(InvalidInput, match="replaced"):
        memory.settle_contradiction(new, old, "replaces")
    memory.forget(old)
    assert all(old not in (one.older.id, one.newer.id) for one in memory.contradictions())


def bundled_model(tmp_path: Path) -> str:
    """The name that vectors of the bundled model have."""
    with Memory.open(tmp_path / "other", warm=False) as memory:
        return memory.stats().embedder


class Missing:
    """The bundled model, which cannot be had."""

    dimensions = 384

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        raise EmbeddingError("not to be had")

    def embed_query(self, text: str) -> Vector:
        raise EmbeddingError("not to be had")

    def query_key(self, text: str) -> str:
        return text


@pytest.mark.promise("contradictions.told")
def test_a_dream_proposes_and_decides_nothing(tmp_path: Path, clock: Clock) -> None:
    """Memories that were kept without a model are compared by a dream; both go on holding."""
    with Memory.open(
        tmp_path / "home", clock=clock, embedder=Missing(bundled_model(tmp_path))
    ) as memory:
        keep_both(memory, clock)
        assert memory.contradictions() == ()
    with Memory.open(tmp_path / "home", clock=clock) as memory:
        memory.ready(60)
        memory.dream(model=False)
        (found,) = memory.contradictions()
        assert len(found.holds) == 2
        assert set(texts(memory)) == {OLD, NEW}


@pytest.mark.promise("contradictions.settled")
@pytest.mark.parametrize("sealed", [False, True])
def test_verdicts_survive_export_and_backup(tmp_path: Path, clock: Clock, sealed: bool) -> None:
    """An export, a backup and encryption keep what is open and what was settled."""
    with Memory.open(tmp_path / "home", clock=clock, encrypt="file" if sealed else False) as memory:
        memory.ready(60)
        old, new = keep_both(memory, clock)
        memory.settle_contradiction(new, old, "both_hold")
        memory.remember("The office is in Graz.")
        clock.advance(days=1)
        memory.remember("The office is in Vienna.")
        # What features leave open is found behind the write.
        assert memory.ready(60)
        told = (memory.contradictions(), memory.contradictions(settled=True))
        assert [len(part) for part in told] == [1, 1]
        memory.export(tmp_path / "all.jsonl")
        memory.backup(tmp_path / "all.backup")
        # What was settled here stays settled when an older export comes back in.
        memory.import_(tmp_path / "all.jsonl")
        assert (memory.contradictions(), memory.contradictions(settled=True)) == told
    with Memory.open(tmp_path / "other", clock=clock) as other:
        other.import_(tmp_path / "all.jsonl")
        assert (other.contradictions(), other.contradictions(settled=True)) == told


@pytest.mark.promise("contradictions.settled")
def test_a_server_keeps_verdicts(tmp_path: Path, clock: Clock, postgresql_url: str) -> None:
    """On PostgreSQL contradictions are found, settled, listed and taken back as on SQLite."""
    with Memory.open(tmp_path / "home", clock=clock, database=postgresql_url) as memory:
        assert memory.ready(60)
        old, new = keep_both(memory, clock)
        note = memory.observe("Decided: the team deploys from Graz.", kind="decision")
        assert memory.settle_contradiction(new, old, "replaces").holds == (new,)
        assert NEW in texts(memory)
        assert OLD not in texts(memory)
        assert [one.verdict for one in memory.contradictions(settled=True)] == ["replaces"]
        assert len(memory.reopen_contradiction(new, old).holds) == 2
        assert len(memory.contradictions()) == 1
        assert note.id in [hit.id for hit in memory.recall("where does the team deploy from?")]


@pytest.mark.promise("contradictions.settled")
def test_every_surface_lists_settles_and_reopens(tmp_path: Path, clock: Clock) -> None:
    """REST and MCP give the JSON of the facade, and do what it does."""
    home = tmp_path / "user" / "home"
    with Memory.open(home) as memory:
        memory.ready(60)
        old, new = memory.remember(OLD).id, memory.remember(NEW).id
        wanted = as_json(list(memory.contradictions()))
    ends = {"id": new, "other_id": old}
    with (
        Memory.open(home) as memory,
        TestClient(server_app(memory, page=None), base_url="http://127.0.0.1:7411") as client,
    ):
        assert client.get("/v1/contradictions").json() == wanted
        done = client.post("/v1/contradictions/settle", json={**ends, "verdict": "replaces"})
        assert (done.status_code, done.json()["holds"]) == (200, [new])
        assert client.get("/v1/contradictions").json() == []
        assert len(client.get("/v1/contradictions?settled=true").json()) == 1
        assert client.post("/v1/contradictions/reopen", json=ends).json() == wanted[0]
        assert client.post("/v1/contradictions/reopen", json=ends).status_code == 422
        lost = client.post("/v1/contradictions/reopen", json={**ends, "id": "nobody"})
        assert lost.status_code == 404

    async def scenario() -> None:
        async with connected(home, "--tools", "all", embedder="minilm") as session:
            assert (await call(session, "contradictions"))["data"] == wanted
            given = {"id": new, "otherId": old}
            done = await call(session, "settle_contradiction", **given, verdict="wrong")
            assert done["data"]["holds"] == [old]
            listed = await call(session, "contradictions", settled=True)
            assert [one["verdict"] for one in listed["data"]] == ["wrong"]
            assert (await call(session, "reopen_contradiction", **given))["data"] == wanted[0]
            # A question waits for the model; what is kept before it is there is compared later.
            await call(session, "recall_memory", question=ASKED)
            kept = await call(session, "store_memory", content="The team deploys on Mondays.")
            told = {one["id"] for one in kept["data"]["conflicts"]}
            assert told <= {old, new}
            assert told

    anyio.run(scenario)
