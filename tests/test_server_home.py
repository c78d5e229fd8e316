"""A home whose truth is a PostgreSQL server: everything works, and moves out and in again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.deep.asking import TEA, Script
from tests.ops.lanes_desk import NUTS, live, notes_of, opened, project_at, said

from anaphora import Memory
from anaphora.errors import StoreError

FACT = "Rafi owns the staging database."


def open_server(home: Path, url: str) -> Memory:
    return Memory.open(home, database=url, embedder="hashing")


@pytest.mark.promise("threads.servers")
def test_two_servers_see_each_others_writes_at_once(tmp_path: Path, postgresql_url: str) -> None:
    """A turn and a memory acknowledged by one server are recalled by the other, and forgotten."""
    with (
        open_server(tmp_path / "one", postgresql_url) as one,
        open_server(tmp_path / "two", postgresql_url) as two,
    ):
        assert len(two.recall_conversation(None, "staging")) == 0
        one.conversations.append("chat", "user", "Staging listens on 5433.", speaker="Ines")
        hit = two.recall_conversation("chat", "where does staging listen?")[0]
        assert (hit.text, hit.speaker) == ("Staging listens on 5433.", "Ines")

        kept = one.remember(FACT, tags=("people",))
        assert two.recall("who owns the staging database?")[0].id == kept.id
        forgotten = two.forget(kept.id)
        assert forgotten.count == 1
        assert not any(hit.id == kept.id for hit in one.recall("who owns the staging database?"))

        one.conversations.redact("chat", 0)
        left = two.recall_conversation("chat", "staging", mode="vector")
        assert [hit.text for hit in left] == ["[redacted]"]


def test_a_server_home_moves_to_files_and_back(tmp_path: Path, postgresql_url: str) -> None:
    """An export of a server's namespace fills a home of files, and that one's fills a server."""
    with open_server(tmp_path / "server", postgresql_url) as server:
        server.conversations.append("chat", "user", "Staging listens on 5433.", speaker="Ines")
        server.conversations.append("chat", "assistant", "Noted.")
        server.remember(FACT, path="staging.owner", tags=("people",))
        server.export(tmp_path / "server.jsonl")
        before = server.conversations.get("chat")
        assert all(check.ok for check in server.doctor())
    with Memory.open(tmp_path / "files", embedder="hashing") as files:
        report = files.import_(tmp_path / "server.jsonl")
        assert (report.added, report.memories_added, report.problems) == (2, 1, ())
        assert files.conversations.get("chat") == before
        files.export(tmp_path / "files.jsonl")
    with open_server(tmp_path / "again", postgresql_url) as again:
        other = again.scoped("elsewhere")
        other.import_(tmp_path / "files.jsonl")
        assert other.conversations.get("chat") == before
        assert other.import_(tmp_path / "files.jsonl").added == 0
        assert other.recall("who owns staging?")[0].path == "staging.owner"


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A wrong address gives a StoreError without the password, when it is first needed."""
    url = f"postgresql+psycopg://user:hidden@/none?host={tmp_path}"
    with open_server(tmp_path / "home", url) as memory:
        with pytest.raises(StoreError) as caught:
            memory.remember(FACT)
        assert "hidden" not in str(caught.value)


@pytest.mark.promise("truth.servers")
def test_two_servers_share_projects_notes_and_answers(
    tmp_path: Path, postgresql_url: str, clock: Clock
) -> None:
    """What one server noted, indexed, answered or could not answer is the other's at once."""
    script = Script()
    root = project_at(tmp_path / "kestrel")

    def server(name: str) -> Memory:
        return opened(tmp_path / name, clock, script, database=postgresql_url)

    with server("one") as one, server("two") as two:
        assert two.recall_context("refill the inkwell").primary_targets == ()
        ids = live(one, root, script, clock)
        assert [project.name for project in two.projects()] == ["kestrel"]
        assert said(two) == said(one)
        assert two.recall_context("Inkwell").primary_targets[0].path == "src/kestrel/quillbook.py"
        fresh = two.observe("Quills come from `flight.py`", kind="fact", project="kestrel")
        found = one.recall_context("where do quills come from", project="kestrel")
        assert fresh.id in {memory.id for memory in found.memories}

        (root / "src/kestrel/moulting.py").write_text("def shed_feathers():\n    return 7\n")
        two.index_project(root)
        assert one.recall_context("shed_feathers").primary_targets[0].path.endswith("moulting.py")

        answer = two.deep_recall(TEA)
        assert (answer.cached, answer.trace_id) == (True, ids["trace"])
        assert [gap.id for gap in two.gaps()] == [ids["gap"]]
        assert two.deep_recall(NUTS, scope="all_sessions").gap_id == ids["gap"]
        assert [gap.asked for gap in one.gaps()] == [2]
        assert one.end_session("tea") == 2
        assert two.stats().jobs == 2

        other = two.scoped("other")
        assert other.projects() == ()
        assert other.gaps(None) == ()
        assert not other.recall_context("refill the inkwell").primary_targets
        assert not other.deep_recall(TEA).sources

        assert two.forget(ids["rule"]).count == 1
        assert one.warm_up().constraints == ()
        two.conversations.delete("tea")
        assert one.traces() == ()


def test_a_server_home_with_every_lane_is_backed_up(
    tmp_path: Path, postgresql_url: str, clock: Clock
) -> None:
    """A backup of a server fills a home of one file, which answers the same."""
    script = Script()
    with opened(tmp_path / "server", clock, script, database=postgresql_url) as server:
        ids = live(server, project_at(tmp_path / "kestrel"), script, clock)
        before = said(server), notes_of(server), server.trace(ids["trace"])
        assert all(check.ok for check in server.doctor())
        server.backup(tmp_path / "all.zip")
    Memory.restore(tmp_path / "all.zip", tmp_path / "files")
    with opened(tmp_path / "files", clock) as files:
        assert (said(files), notes_of(files), files.trace(ids["trace"])) == before
