"""What other memories have comes in as memories: their words, dates, tags and source; once."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.exported import exported
from tests.ingest import memory_sources as made
from tests.ingest.imported import read
from tests.sync.devices import devices, settle

from anaphora import ImportedConversation, ImportProblem, Memory, MemoryRecord, NewMemory
from anaphora.errors import UnknownFormat
from anaphora.features.importing.formats import detect
from anaphora.features.importing.values import ImportedMemory

FIXTURES = made.FIXTURES
SOURCES = {
    "mem0.json": "mem0",
    "history.db": "mem0",
    "memory.json": "mcp_memory",
    "claude-mem.db": "claude_mem",
    "zep.json": "zep",
    "agent.af": "letta",
    "agent-first.af": "letta",
    "archival.json": "letta",
    "MyActivity.json": "gemini_takeout",
    "MyActivity.html": "gemini_takeout",
    "conversation_1.txt": "gemini_takeout",
    "copilot.json": "vscode_copilot",
    "copilot-log.jsonl": "vscode_copilot",
    "vscode.vscdb": "vscode_copilot",
    "state.vscdb": "cursor",
    "claude-web.json": "claude_code",
    "vault": "markdown",
    "basic": "basic_memory",
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


def source(name: str, folder: Path) -> Path:
    """One of `SOURCES`, as a file or folder."""
    if name in made.BUILT:
        path = folder / name
        return path if path.exists() else made.BUILT[name](path)
    return FIXTURES / name


def memories(name: str, folder: Path) -> list[NewMemory]:
    return given(source(name, folder))


def given(path: Path) -> list[NewMemory]:
    return [item.memory for item in read(path) if isinstance(item, ImportedMemory)]


def conversations(name: str, folder: Path) -> list[ImportedConversation]:
    found = read(source(name, folder))
    return [item for item in found if isinstance(item, ImportedConversation)]


def problems(name: str, folder: Path) -> list[tuple[str, str]]:
    found = read(source(name, folder))
    return [(item.place, item.reason) for item in found if isinstance(item, ImportProblem)]


def held(memory: Memory) -> list[MemoryRecord]:
    """Every memory, those in history too."""
    return [memory.get(line["id"]) for line in exported(memory, "memory")]


def said(conversation: ImportedConversation) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in conversation.turns]


@pytest.mark.promise("import.formats")
@pytest.mark.promise("import.memories")
@pytest.mark.parametrize(("name", "form"), SOURCES.items())
def test_each_source_is_recognised(name: str, form: str, tmp_path: Path) -> None:
    """A file or folder of each program is told from its contents."""
    assert detect(source(name, tmp_path)) == form


@pytest.mark.promise("import.memories_twice")
def test_everything_comes_in_once(memory: Memory, tmp_path: Path) -> None:
    """A second import of everything adds, changes and reinforces nothing."""
    paths = [source(name, tmp_path) for name in SOURCES]
    first = memory.import_(paths)
    assert first.memories_added > 20
    assert first.conversations > 10
    before = exported(memory, "memory")
    again = memory.import_(paths)
    assert again.added == again.memories_added == again.memories_changed == 0
    assert again.memories_ended == again.memories_forgotten == 0
    assert again.memories_known == first.memories_added + first.memories_known + (
        first.memories_changed
    )
    assert again.problems == first.problems
    assert exported(memory, "memory") == before


def test_mem0_brings_every_value_and_leaves_out_what_was_deleted(
    memory: Memory, tmp_path: Path
) -> None:
    """JSON and history tell the same memories; a value that was replaced is in history."""
    memory.import_(FIXTURES / "mem0.json")
    report = memory.import_(source("history.db", tmp_path))
    assert report.left_out == {"deleted memory": 1}
    (porto,) = [one for one in held(memory) if "Porto" in one.text]
    assert porto.created_at == datetime(2026, 3, 20, 8, 30, tzinfo=UTC)
    assert porto.tags == ("user:noor", "agent:travel", "mem0")
    assert porto.sources == ("mem0:6f0c1f0a-93f5-4a53-8f4c-3a1d2f7b9c02",)
    lisbon, current = memory.history("mem0/6f0c1f0a-93f5-4a53-8f4c-3a1d2f7b9c02")
    assert (lisbon.text, lisbon.superseded_by) == ("Lives in Lisbon", porto.id)
    assert current == porto
    assert not [one for one in held(memory) if "parrot" in one.text]
    assert memory.conversations.list()[0].turn_count == 2


def test_a_memory_of_mem0_that_changed_there_is_a_new_value(memory: Memory, tmp_path: Path) -> None:
    """A later export with other words under the same id supersedes what came before."""
    export = json.loads((FIXTURES / "mem0.json").read_text("utf-8"))
    memory.import_(FIXTURES / "mem0.json")
    export["results"][1] |= {"memory": "Lives in Braga", "updated_at": "2026-06-01T00:00:00Z"}
    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps(export))
    report = memory.import_(newer)
    assert (report.memories_changed, report.memories_known, report.memories_added) == (1, 2, 0)
    assert [hit.text for hit in memory.recall("lives in Braga", top_k=1)] == ["Lives in Braga"]
    assert len(memory.history("mem0/6f0c1f0a-93f5-4a53-8f4c-3a1d2f7b9c02")) == 2


def test_the_graph_of_the_mcp_server_is_facts(tmp_path: Path) -> None:
    """Observations carry the name of their entity, relations are sentences; damage is told."""
    found = memories("memory.json", tmp_path)
    assert [one.text for one in found] == [
        "Mara_Lindqvist: Leads the billing team",
        "Mara_Lindqvist: Prefers pull requests under 300 lines",
        "billing-api: Deploys every Thursday at 10:00 UTC",
        "Mara_Lindqvist owns billing-api",
    ]
    assert found[0].tags == ("person",)
    assert [place for place, _ in problems("memory.json", tmp_path)] == [
        "line 2, observation 2",
        "line 4, column 25",
    ]


def test_the_answer_of_read_graph_is_the_same_graph(tmp_path: Path) -> None:
    """What the server's own tool gives has the same keys as its file."""
    lines = (FIXTURES / "memory.json").read_text("utf-8").splitlines()[:3]
    values = [json.loads(line) for line in lines]
    graph = {"entities": [v for v in values if v["type"] == "entity"], "relations": values[2:]}
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph, indent=1))
    keys = [item.key for item in read(path) if isinstance(item, ImportedMemory)]
    file = source("memory.json", tmp_path)
    assert keys == [item.key for item in read(file) if isinstance(item, ImportedMemory)]


def test_claude_mem_keeps_the_words_of_observations(tmp_path: Path) -> None:
    """Title, narrative and facts are kept as they are; prompts are the session's conversation."""
    observation, summary = memories("claude-mem.db", tmp_path)
    assert observation.text == (
        "Cart totals were rounded twice\nThe second rounding is gone\n\n"
        "CartTotals rounded each line and then the sum. Lines are kept in cents.\n\n"
        "- Totals use integer cents now"
    )
    assert observation.created_at == datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert observation.tags == ("webshop", "problem-solution")
    assert (observation.category, summary.category) == ("bugfix", "session_summary")
    assert observation.payload == {
        "files_read": ["src/cart.ts"],
        "files_modified": ["src/totals.ts"],
    }
    assert summary.text.startswith("Request: Fix the cart totals\n")
    (session,) = conversations("claude-mem.db", tmp_path)
    assert session.title == "Cart totals"
    assert said(session) == [("user", "The cart shows 10.01 instead of 10.00, fix it.")]


def test_the_first_schema_of_claude_mem_is_read(tmp_path: Path) -> None:
    """Memories and overviews of its first release come in too."""
    columns = (
        "id INTEGER PRIMARY KEY, session_id TEXT, text TEXT, document_id TEXT, keywords TEXT, "
        "created_at TEXT, created_at_epoch INTEGER, project TEXT, title TEXT, facts TEXT"
    )
    at = "2025-09-01T00:00:00Z"
    path = made.database(
        tmp_path / "first.db",
        {
            "memories": (
                columns,
                [(1, "s", "Uses pnpm", "d", "", at, 1756684800, "shop", None, None)],
            ),
            "overviews": (
                "id INTEGER, session_id TEXT, content TEXT, created_at TEXT, created_at_epoch "
                "INTEGER, project TEXT",
                [(1, "s", "Set up the shop", at, 1756684800, "shop")],
            ),
        },
    )
    assert [(one.text, one.type) for one in given(path)] == [
        ("Uses pnpm", "semantic"),
        ("Set up the shop", "episodic"),
    ]


def test_zep_facts_have_their_time(memory: Memory) -> None:
    """A fact holds from its own time on, and one that was invalidated is not recalled."""
    memory.import_(FIXTURES / "zep.json")
    hits = memory.recall("who services the boiler of Ines?")
    assert hits[0].text == "The boiler of Ines is serviced by Hallworth."
    assert hits[0].created_at == datetime(2026, 2, 1, tzinfo=UTC)
    assert not [hit for hit in hits if "Caldas" in hit.text]
    assert [one.text for one in held(memory) if "Caldas" in one.text]
    thread = memory.conversations.get("zep_s-41")
    assert thread is not None
    assert [turn.speaker for turn in thread.turns] == ["Ines", "HomeBot"]


def test_a_fact_that_zep_has_ended_meanwhile_ends_here(memory: Memory, tmp_path: Path) -> None:
    """A later export with an end for a known fact ends it, and says that it changed."""
    memory.import_(FIXTURES / "zep.json")
    graph = json.loads((FIXTURES / "zep.json").read_text("utf-8"))
    graph["graph"]["edges"][1]["invalid_at"] = "2026-06-01T00:00:00Z"
    newer = tmp_path / "zep.json"
    newer.write_text(json.dumps(graph))
    assert memory.import_(newer).memories_changed == 1
    assert memory.import_(newer).memories_changed == 0
    assert not [hit for hit in memory.recall("boiler Hallworth") if "is serviced" in hit.text]


def test_letta_agents_bring_blocks_passages_and_what_was_said(tmp_path: Path) -> None:
    """What an agent sent is what it said; envelopes and notices of the program are not."""
    (block,) = memories("agent.af", tmp_path)
    assert (block.path, block.text[:9]) == ("letta/sommelier/human", "Teo hosts")
    (chat,) = conversations("agent.af", tmp_path)
    assert said(chat) == [
        ("user", "Something dry for Friday, no Riesling please."),
        ("assistant", "Then a Muscadet, from the lower shelf."),
    ]
    (first,) = memories("agent-first.af", tmp_path)
    assert first.created_at == datetime(2025, 9, 10, 9, tzinfo=UTC)
    assert [role for role, _ in said(conversations("agent-first.af", tmp_path)[0])] == [
        "user",
        "assistant",
    ]
    (passage,) = memories("archival.json", tmp_path)
    assert passage.tags == ("group",)


@pytest.mark.promise("import.formats")
def test_gemini_activity_is_a_conversation_a_day(tmp_path: Path) -> None:
    """Prompts and answers come in their order, as words; other activity is left out."""
    february, march = conversations("MyActivity.json", tmp_path)
    assert said(february) == [("user", "name a starter"), ("assistant", "Clint Yeastwood.")]
    assert [text for _, text in said(march)] == [
        "How much flour for four loaves?",
        "About one kilo & a handful for the board.",
        "And for twelve people?",
        "Three kilos of flour, then:\n\n- 1.9 l of water\n- 60 g of salt",
    ]
    (page,) = conversations("MyActivity.html", tmp_path)
    assert said(page) == [
        ("user", "Which tide table covers Aveiro?"),
        ("assistant", "The one of Leixões, with a correction:\n\n- high water +12 min"),
    ]
    at = page.turns[0].ts
    assert at is not None
    assert at.astimezone(UTC) == datetime(2026, 3, 3, 14, 25, 5, tzinfo=UTC)
    assert [place for place, _ in problems("MyActivity.html", tmp_path)] == ["entry 3"]
    (kiln,) = conversations("conversation_1.txt", tmp_path)
    assert (kiln.title, kiln.left_out) == ("Kiln schedule", {"thinking": 1})


def test_a_time_zone_that_is_not_known_says_what_to_do(tmp_path: Path) -> None:
    """Its abbreviation is named, and the format that has times without one."""
    page = tmp_path / "MyActivity.html"
    text = source("MyActivity.html", tmp_path).read_text("utf-8")
    page.write_text(text.replace("AM PST", "AM QQT"), "utf-8")
    reasons = [item.reason for item in read(page) if isinstance(item, ImportProblem)]
    assert any("the time zone 'QQT' is not known: ask Takeout for JSON" in why for why in reasons)


@pytest.mark.promise("import.formats")
def test_chats_of_editors(tmp_path: Path) -> None:
    """Copilot's sessions, logs of changes to them, and the chats in databases of editors."""
    (session,) = conversations("copilot.json", tmp_path)
    assert said(session) == [
        ("user", "Why does the uploader retry forever?"),
        ("assistant", "The loop in `uploader.ts` never counts its attempts: `attempt` stays 0."),
    ]
    assert [call.line for call in session.calls] == ["copilot_readFile Reading uploader.ts"]
    (log,) = conversations("copilot-log.jsonl", tmp_path)
    assert (log.title, said(log)[1][1]) == ("Cache flag", "`--no-cache`, since 2.4.")
    assert [place for place, _ in problems("copilot-log.jsonl", tmp_path)] == ["line 6"]
    (stored,) = conversations("vscode.vscdb", tmp_path)
    assert said(stored) == said(session)
    chats = {chat.title: said(chat) for chat in conversations("state.vscdb", tmp_path)}
    assert chats["Dark mode"] == [
        ("user", "Make dark mode follow the system."),
        ("assistant", "Done: it reads prefers-color-scheme."),
    ]
    assert chats[""][1] == ("assistant", "Renamed in four files.")
    assert chats["Locale"][1] == ("assistant", "pt-PT, from the env.")


def test_a_session_of_copilot_knows_its_folder(tmp_path: Path) -> None:
    """The workspace beside a session says in which folder it took place."""
    sessions = tmp_path / "ws" / "chatSessions"
    sessions.mkdir(parents=True)
    shutil.copy(FIXTURES / "copilot.json", sessions)
    (tmp_path / "ws" / "workspace.json").write_text('{"folder": "file:///work/my%20shop"}')
    items = list(read(tmp_path / "ws"))
    (session,) = [item for item in items if isinstance(item, ImportedConversation)]
    assert session.place is not None
    assert session.place.directory == "/work/my shop"
    assert not [item for item in items if isinstance(item, ImportProblem)]


@pytest.mark.promise("import.formats")
def test_a_session_on_the_web_is_one_of_claude_code(tmp_path: Path) -> None:
    """The records of a session on the web are read in both forms that its service answers."""
    (session,) = conversations("claude-web.json", tmp_path)
    assert session.title == "Move the changelog"
    whole = json.loads((FIXTURES / "claude-web.json").read_text("utf-8"))
    events = [
        {k: v for k, v in line.items() if k != "timestamp"}
        | {"created_at": line["timestamp"], "session_id": "session_01ABCDEF"}
        for line in whole["loglines"]
    ]
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"data": events, "has_more": False}))
    (same,) = [item for item in read(path) if isinstance(item, ImportedConversation)]
    assert [(t.key, t.text, t.ts) for t in same.turns] == [
        (t.key, t.text, t.ts) for t in session.turns
    ]


@pytest.mark.promise("import.memories_forgotten")
@pytest.mark.parametrize(("soft", "sealed"), [(False, False), (True, False), (False, True)])
def test_what_was_forgotten_here_stays_out(tmp_path: Path, soft: bool, sealed: bool) -> None:
    """Neither an import nor a newer one brings it back, unless that is asked for."""
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing", encrypt="file" if sealed else None) as memory:
        forgotten_stays_out(memory, soft)


def forgotten_stays_out(memory: Memory, soft: bool) -> None:
    memory.import_(FIXTURES / "memory.json")
    (wanted,) = [one for one in held(memory) if "Thursday" in one.text]
    memory.forget(wanted.id, soft=soft)
    report = memory.import_(FIXTURES / "memory.json")
    assert (report.memories_forgotten, report.memories_added, report.memories_known) == (1, 0, 3)
    assert not [hit for hit in memory.recall("deploys every Thursday") if "Thursday" in hit.text]
    report = memory.import_(FIXTURES / "memory.json", again=True)
    assert report.memories_added + report.memories_changed == 1
    assert memory.recall("deploys every Thursday")[0].text.endswith("Thursday at 10:00 UTC")
    assert memory.import_(FIXTURES / "memory.json").memories_known == 4


@pytest.mark.promise("import.memories_twice")
def test_what_was_imported_is_known_in_another_home(memory: Memory, tmp_path: Path) -> None:
    """An export carries what imports go by: importing the source there adds nothing."""
    memory.import_(FIXTURES / "mem0.json")
    target = io.BytesIO()
    memory.export(target)
    export = tmp_path / "export.jsonl"
    export.write_bytes(target.getvalue())
    with Memory.open(tmp_path / "other", embedder="hashing") as other:
        other.import_(export)
        before = exported(other, "memory")
        report = other.import_(FIXTURES / "mem0.json")
        assert (report.memories_added, report.memories_known) == (0, 3)
        assert exported(other, "memory") == before


@pytest.mark.promise("import.memories_twice")
@pytest.mark.promise("import.memories_forgotten")
def test_devices_know_what_one_of_them_imported(tmp_path: Path) -> None:
    """What came by sync is known to an import, and what another device forgot stays out."""
    with devices(tmp_path, 2, lambda n: 0.0) as made_here:
        one, other = made_here
        one.import_(FIXTURES / "mem0.json")
        settle(made_here)
        assert other.import_(FIXTURES / "mem0.json").memories_known == 3
        (wanted,) = [line for line in exported(one, "memory") if "hazelnuts" in line["text"]]
        one.forget(wanted["id"])
        settle(made_here)
        report = other.import_(FIXTURES / "mem0.json")
        assert (report.memories_known, report.memories_forgotten) == (2, 1)


def test_secrets_do_not_come_in(memory: Memory, tmp_path: Path) -> None:
    """A secret in a memory of another program is taken out, and the report says of which kind."""
    path = tmp_path / "memory.json"
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    line = {"type": "entity", "name": "ci", "entityType": "x", "observations": [f"token {token}"]}
    path.write_text(json.dumps(line) + "\n" + json.dumps(line | {"name": "cd"}))
    report = memory.import_(path)
    assert report.redacted
    assert all(token not in one.text for one in held(memory))
    assert memory.import_(path).memories_known == 2


def test_what_the_user_changed_here_stays(memory: Memory) -> None:
    """A memory that got another value here keeps it when its source is imported again."""
    memory.import_(FIXTURES / "agent.af")
    (block,) = held(memory)
    memory.update(block.id, text="Teo keeps 60 bottles.")
    assert memory.import_(FIXTURES / "agent.af").memories_known == 1
    current = [one for one in held(memory) if one.valid_to is None]
    assert [one.text for one in current] == ["Teo keeps 60 bottles."]


@pytest.mark.promise("import.databases")
def test_nothing_in_a_database_runs(tmp_path: Path) -> None:
    """A view under the name of a table is no table, however long it would take."""
    path = tmp_path / "trap.db"
    with closing(sqlite3.connect(path)) as connection:
        endless = "WITH RECURSIVE n(memory_id) AS (SELECT 1 UNION ALL SELECT memory_id + 1 FROM n)"
        connection.execute(
            "CREATE VIEW history AS " + endless + " SELECT memory_id, memory_id AS new_memory, "
            "'ADD' AS event FROM n"
        )
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(UnknownFormat, match="tables other"):
        detect(path)


@pytest.mark.promise("import.databases")
def test_a_damaged_database_is_told(memory: Memory, tmp_path: Path) -> None:
    """What can be read of it comes in or is refused in words; nothing else happens."""
    data = bytearray(made.mem0_history(tmp_path / "whole.db").read_bytes())
    data[1024:] = b"\xff" * len(data[1024:])
    broken = tmp_path / "broken.db"
    broken.write_bytes(data)
    (problem,) = memory.import_(broken, format="mem0").problems
    assert "malformed" in problem.reason


@pytest.mark.promise("import.malformed")
def test_a_database_whose_schema_is_no_text_is_told(memory: Memory, tmp_path: Path) -> None:
    """What SQLite says of a damaged schema repeats its bytes, which need not be UTF-8."""
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE told (text TEXT)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET name = CAST(X'BDBDBD' AS TEXT), sql = 'CREATE TABLE ('"
        )
        connection.commit()
    (problem,) = memory.import_(path).problems
    assert "malformed" in problem.reason


@pytest.mark.promise("import.databases")
def test_a_database_in_a_zip_file_is_read(tmp_path: Path) -> None:
    """It is unpacked for as long as it is read."""
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w") as archive:
        archive.write(made.mem0_history(tmp_path / "history.db"), "mem0/history.db")
    assert detect(export) == "mem0"
    assert [one.text for one in given(export)] == [
        "Lives in Lisbon",
        "Moved from Lisbon to Porto in March",
    ]


@pytest.mark.promise("import.databases")
def test_other_databases_of_a_folder_are_counted(memory: Memory, tmp_path: Path) -> None:
    """A program's folder holds databases of other things: that is no problem."""
    folder = tmp_path / "dot-claude-mem"
    folder.mkdir()
    made.claude_mem(folder / "claude-mem.db")
    made.database(folder / "chroma.sqlite3", {"embeddings": ("id INTEGER", [(1,)])})
    (folder / "settings.json").write_text("{}")
    report = memory.import_(folder)
    beside = "file beside an export, with no conversation in it"
    assert report.left_out_files == {
        "database of something else": ("chroma.sqlite3",),
        beside: ("settings.json",),
    }
    assert [one.reason for one in report.problems] == ["the observation has no words"]
