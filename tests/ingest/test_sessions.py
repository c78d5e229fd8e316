"""What is kept of an agent's session beside its words: where it was, and what its tools did."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.imported import read

from anaphora import ImportedConversation, Memory, SearchKind, SessionPlace

CALLS: tuple[SearchKind, ...] = ("tool_call",)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A new home."""
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


def session(
    path: Path, session_id: str, directory: str, said: str, *calls: tuple[str, Any]
) -> Path:
    """A transcript of Claude Code: a prompt, an answer, and calls after it."""
    common = {"sessionId": session_id, "cwd": directory, "gitBranch": "main"}
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": f"{session_id}-u", "message": {"role": "user", "content": said}},
        {
            "type": "assistant",
            "uuid": f"{session_id}-a",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Done so."},
                    *(
                        {
                            "type": "tool_use",
                            "id": f"{session_id}-{n}",
                            "name": name,
                            "input": given,
                        }
                        for n, (name, given) in enumerate(calls)
                    ),
                ],
            },
        },
    ]
    path.write_text(
        "".join(
            json.dumps({**line, **common, "timestamp": f"2026-06-01T10:00:0{n}Z"}) + "\n"
            for n, line in enumerate(lines)
        )
    )
    return path


def found(memory: Memory, question: str) -> list[str]:
    """The lines of tool calls that match."""
    return [hit.text for hit in memory.search(question, kinds=CALLS)]


@pytest.mark.promise("import.formats")
def test_gemini_cli_keeps_what_stood_last_and_where_the_user_went_back(fixtures: Path) -> None:
    """A message that grew is read once; going back makes a branch; calls are lines."""
    (item,) = read(fixtures / "session-2026-05-04T09-00-gemini.jsonl")
    assert isinstance(item, ImportedConversation)
    assert item.source == "gemini_cli"
    assert {turn.key: (turn.parent, turn.role, turn.text) for turn in item.turns} == {
        "g1": (None, "user", "Which cone do we fire the blue glaze at?"),
        "g2": ("g1", "assistant", "Cone 6, as glazes.md says."),
        "g4": ("g2", "user", "Write that on the wall chart."),
        "g5": ("g2", "user", "Run the kiln check instead."),
        "g6": ("g5", "assistant", "It fails."),
    }
    assert [(call.line, call.after) for call in item.calls] == [
        ("read_file glazes.md: ok", "g2"),
        ("run_shell_command make kiln-check: failed: No such target", "g6"),
    ]
    assert item.place == SessionPlace("gemini", "/home/kim/kiln")


@pytest.mark.promise("import.formats")
def test_cursor_takes_prompts_out_of_their_tags(fixtures: Path) -> None:
    """What the user typed is kept, not what the program put around it."""
    (item,) = read(fixtures / "7d2c-cursor.jsonl")
    assert isinstance(item, ImportedConversation)
    assert [(turn.role, turn.text) for turn in item.turns] == [
        ("user", "rename the ferry table to crossings"),
        ("assistant", "I will rename it."),
        ("assistant", "The table is called crossings now."),
    ]
    assert [call.line for call in item.calls] == [
        "StrReplace /home/kim/ferry/schema.sql",
        "Shell make migrate",
    ]


@pytest.mark.promise("sessions.calls")
def test_tool_calls_are_found_and_never_pass_for_words(memory: Memory, tmp_path: Path) -> None:
    """A call is a line of its own kind: no other lane knows anything of it."""
    calls = (("Edit", {"file_path": "/w/pay/retry.py"}), ("Bash", {"command": "pytest tests/pay"}))
    report = memory.import_(session(tmp_path / "s.jsonl", "s1", "/w", "Mend the retries.", *calls))
    assert report.tool_calls == 2
    assert found(memory, "retry.py") == ["Edit pay/retry.py"]
    assert found(memory, "pytest") == ["Bash pytest tests/pay"]
    assert {hit.kind for hit in memory.search("mend the retries", min_confidence=0)} == {"turn"}
    assert not memory.search("pytest tests", min_confidence=0)
    assert not memory.recall("retry.py", min_score=0)
    assert memory.import_(tmp_path / "s.jsonl").tool_calls == 0


@pytest.mark.promise("sessions.calls")
def test_a_call_goes_with_the_turn_that_it_came_after(memory: Memory, tmp_path: Path) -> None:
    """Redacting a turn or deleting a session takes its calls, and importing brings none back."""
    one = session(tmp_path / "1.jsonl", "s1", "/w", "Say mink.", ("Bash", {"command": "echo mink"}))
    two = session(tmp_path / "2.jsonl", "s2", "/w", "Say newt.", ("Bash", {"command": "echo newt"}))
    memory.import_([one, two])
    assert memory.conversations.redact("claude_code_s1", 1)
    assert memory.conversations.delete("claude_code_s2")
    assert found(memory, "echo mink") == found(memory, "echo newt") == []
    memory.import_([one, two])
    assert found(memory, "echo mink") == found(memory, "echo newt") == []
    held = b"".join(p.read_bytes() for p in memory.home.rglob("*") if p.is_file())
    assert b"echo mink" not in held
    assert b"echo newt" not in held


@pytest.mark.promise("sessions.calls")
def test_secrets_are_taken_out_of_calls(memory: Memory, tmp_path: Path) -> None:
    """A command line with a key is kept without it."""
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    given = {"command": f"curl -H 'Authorization: token {key}' api.example.com"}
    memory.import_(session(tmp_path / "s.jsonl", "s1", "/w", "Fetch it.", ("Bash", given)))
    (line,) = found(memory, "curl api.example.com")
    assert key not in line
    assert "[redacted:" in line


@pytest.mark.promise("sessions.places")
def test_a_search_keeps_to_a_project_or_prefers_it(memory: Memory, tmp_path: Path) -> None:
    """Two projects say the same of their ports; where one asks decides which comes first."""
    shop, boat = tmp_path / "shop", tmp_path / "boat"
    for folder, remote in ((shop, "git@github.com:acme/shop.git"), (boat, "")):
        subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
        if remote:
            subprocess.run(["git", "-C", folder, "remote", "add", "origin", remote], check=True)
    memory.import_(session(tmp_path / "1.jsonl", "s1", str(shop), "The staging port is 5433."))
    memory.import_(session(tmp_path / "2.jsonl", "s2", str(boat), "The staging port is 8461."))
    asked = "Which port is staging on?"

    def first(**chosen: Any) -> list[str]:
        return [hit.text for hit in memory.search(asked, min_confidence=0, **chosen)][:1]

    assert first(directory=shop) == ["The staging port is 5433."]
    assert first(directory=boat) == ["The staging port is 8461."]
    (shop / "src").mkdir()
    assert first(directory=shop / "src") == ["The staging port is 5433."]
    for project in ("shop", "github.com/acme/shop", str(shop), str(shop / "src")):
        texts = {hit.text for hit in memory.search(asked, project=project, min_confidence=0)}
        assert texts == {"The staging port is 5433.", "Done so."}
    assert len(memory.search(asked, min_confidence=0)) > 2


@pytest.mark.promise("sessions.places")
def test_places_and_calls_leave_with_an_export_and_come_back(
    memory: Memory, tmp_path: Path
) -> None:
    """An export brings where a session was, and what was done in it, to another home."""
    call = ("Edit", {"file_path": "/w/shop/prices.py"})
    memory.import_(session(tmp_path / "s.jsonl", "s1", "/w/shop", "Round the prices up.", call))
    memory.export(tmp_path / "out.jsonl")
    with Memory.open(tmp_path / "other", embedder="hashing") as other:
        other.import_(tmp_path / "out.jsonl")
        other.import_(tmp_path / "out.jsonl")
        assert found(other, "prices.py") == ["Edit prices.py"]
        hits = other.search("round the prices", project="shop", min_confidence=0)
        assert hits[0].text == "Round the prices up."


@pytest.mark.promise("sessions.calls")
def test_forgetting_names_tool_calls_that_still_say_it(memory: Memory, tmp_path: Path) -> None:
    """A forgotten memory's number that a line of a tool call holds is told, and only that."""
    place = session(
        tmp_path / "s.jsonl", "s1", "/w", "look it up",
        ("Bash", {"command": "grep KX-4711-B tickets.txt"}), ("Bash", {"command": "ls"}),
    )  # fmt: skip
    memory.import_(place)
    kept = memory.remember("The pilot's ticket is KX-4711-B.").id
    gone = memory.forget(kept)
    assert [(one.kind, one.id) for one in gone.surviving] == [("tool_call", "claude_code_s1")]
