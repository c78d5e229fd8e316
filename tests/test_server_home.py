"""A home whose truth is a PostgreSQL server: everything works, and moves out and in again."""

from __future__ import annotations

from pathlib import Path

import pytest

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
