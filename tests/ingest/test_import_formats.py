"""What each format gives: the words that were said, in order, and nothing else."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.ingest.imported import read

from anaphora import ImportedConversation, ImportProblem
from anaphora.ingest.importers import FORMATS, detect


def conversations(path: Path) -> list[ImportedConversation]:
    found = list(read(path))
    assert not [item for item in found if isinstance(item, ImportProblem)]
    return [item for item in found if isinstance(item, ImportedConversation) and item.turns]


def texts(conversation: ImportedConversation) -> list[str]:
    return [turn.text for turn in conversation.turns]


@pytest.mark.promise("import.formats")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chatgpt.json", "chatgpt"),
        ("claude_ai.json", "claude_ai"),
        ("claude_code.jsonl", "claude_code"),
        ("rollout-2026-03-11T07-00-00-0198-codex.jsonl", "codex"),
        ("session-2026-05-04T09-00-gemini.jsonl", "gemini_cli"),
        ("7d2c-cursor.jsonl", "cursor"),
        ("sharegpt.json", "sharegpt"),
        ("neo", "neo"),
        ("plain.jsonl", "jsonl"),
        ("telegram.json", "telegram"),
        ("deepseek.json", "deepseek"),
        (".aider.chat.history.md", "aider"),
    ],
)
def test_each_format_is_recognised(fixtures: Path, name: str, expected: str) -> None:
    """A file of each format is told from its contents."""
    assert detect(fixtures / name) == expected
    assert expected in FORMATS


@pytest.mark.promise("import.tool_output")
def test_chatgpt_keeps_both_branches_and_counts_tools(fixtures: Path) -> None:
    """The branch on show comes first; tools, thinking and pictures are counted, not kept."""
    tomato = conversations(fixtures / "chatgpt.json")[1]
    assert tomato.conversation_id == "chatgpt_6a0d-tomato"
    assert tomato.title == "Yellow tomato leaves"
    assert [turn.key for turn in tomato.turns] == [
        "u1",
        "a1",
        "u2b",
        "a2b",
        "u3b",
        "a3b",
        "u2",
        "a2",
    ]
    parents = {turn.key: turn.parent for turn in tomato.turns}
    assert parents["u1"] is None
    assert parents["u2"] == parents["u2b"] == "a1"
    assert parents["a2b"] == "u2b"
    assert tomato.turns[4].text == "Here is a leaf from this morning."
    assert tomato.turns[5].text.endswith("<b>& firm</b>.")
    assert tomato.left_out == {
        "instructions": 1,
        "thinking": 1,
        "tool call": 1,
        "tool output": 1,
        "attachment": 1,
    }
    # The last answer has no time of its own: it gets that of what it answers.
    assert tomato.turns[5].ts == tomato.turns[4].ts
    assert tomato.turns[0].ts == datetime(2026, 3, 5, 8, 40, 0, 250000, tzinfo=UTC)


def test_claude_ai_keeps_text_blocks_and_branches(fixtures: Path) -> None:
    """Text blocks are kept without the placeholders of the plain text; edits are branches."""
    (rota,) = conversations(fixtures / "claude_ai.json")
    assert rota.turns[1].text == (
        "Ana takes Monday, Ben Tuesday, Cleo Wednesday, and so on in turn.\n\n"
        "The rota is in the table beside this."
    )
    assert [turn.key for turn in rota.turns] == ["m1", "m2", "m3b", "m4b", "m3", "m4"]
    assert rota.left_out == {"attachment": 1, "thinking": 1, "tool call": 1, "tool output": 1}


@pytest.mark.promise("import.tool_output")
def test_claude_code_forks_only_where_the_user_went_back(fixtures: Path) -> None:
    """Tools that run side by side make no branch; a prompt asked anew makes one."""
    (session,) = conversations(fixtures / "claude_code.jsonl")
    assert session.title == "Checkout fails on Mondays"
    parents = {turn.key: turn.parent for turn in session.turns}
    assert parents == {
        "p1": None,
        "a2": "p1",
        "a5": "a2",
        "p2b": "a5",
        "a6b": "p2b",
        "p3": "a6b",
        "p2": "a5",
        "a6": "p2",
    }
    assert "/review only the price table" in texts(session)
    assert [call.line for call in session.calls] == [
        "Read test_checkout.py: ok",
        "Read prices.py: ok",
    ]
    assert session.left_out["tool output"] == 3
    assert session.left_out["sidechain"] == 2
    assert session.left_out["thinking"] == 1


def test_codex_says_each_thing_once(fixtures: Path) -> None:
    """One message as item and as event is one; the same words said twice are two."""
    (rollout,) = conversations(fixtures / "rollout-2026-03-11T07-00-00-0198-codex.jsonl")
    assert texts(rollout) == [
        "Which port does the tide server listen on?",
        "It listens on 8461, set in tide.env.",
        "continue",
        "The start script reads the same file.",
        "continue",
    ]
    assert rollout.left_out["instructions"] == 2


def test_sharegpt_tells_chats_without_ids_apart(fixtures: Path) -> None:
    """Conversations that begin alike stay two, and a system prompt keeps its role."""
    knots, hitch, first, second = conversations(fixtures / "sharegpt.json")
    assert [turn.role for turn in knots.turns] == ["system", "user", "assistant"]
    assert hitch.left_out == {"tool call": 1, "tool output": 1}
    assert first.key != second.key
    assert texts(first) == ["Hello", "Ahoy."]


def test_neo_threads_keep_their_id_and_intents(fixtures: Path) -> None:
    """A thread of Neo comes in under its own id, with titles and intents."""
    (thread,) = conversations(fixtures / "neo")
    assert thread.conversation_id == "conv_5d21c0ffee5d21c0ffee"
    assert thread.title == "Rent & deposit"
    assert thread.turns[1].intent_id == "int_7"
    assert thread.turns[1].text == "On the first of March, with the rent <in full>."


def test_plain_lines_are_read_in_all_their_spellings(fixtures: Path) -> None:
    """Roles, names and times are found under the usual field names, times always with a zone."""
    (ferry,) = conversations(fixtures / "plain.jsonl")
    assert [turn.speaker for turn in ferry.turns] == [None, None, "Noor", "Sam", None]
    assert [turn.ts.astimezone(UTC).isoformat() for turn in ferry.turns if turn.ts] == [
        "2026-01-05T08:00:00+00:00",
        "2026-01-05T08:00:09.500000+00:00",
        "2026-01-05T09:00:00+00:00",
        "2026-01-05T09:05:00+00:00",
        "2026-01-05T09:05:00+00:00",
    ]
    assert ferry.left_out == {"tool output": 1}


def test_openai_messages_are_conversations(tmp_path: Path) -> None:
    """One {"messages": […]} a line is one conversation a line; a plain array is one of all."""
    chats = tmp_path / "chats.jsonl"
    lines = [
        {
            "messages": [
                {"role": "user", "content": f"Question {n}"},
                {"role": "assistant", "content": "Yes."},
            ]
        }
        for n in range(3)
    ]
    chats.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [len(c.turns) for c in conversations(chats)] == [2, 2, 2]
    array = tmp_path / "array.json"
    array.write_text(json.dumps(lines[0]["messages"], indent=2))
    assert [texts(c) for c in conversations(array)] == [["Question 0", "Yes."]]


def test_lines_of_several_chats_are_sorted_out(tmp_path: Path) -> None:
    """Lines that name their conversation and parent are put together by these names."""
    log = tmp_path / "log.jsonl"
    rows = [
        {"conversation_id": "a", "id": 1, "role": "user", "text": "one"},
        {"conversation_id": "b", "id": 1, "role": "user", "text": "eins"},
        {"conversation_id": "a", "id": 2, "parent": 1, "role": "assistant", "text": "two"},
        {"conversation_id": "a", "id": 3, "parent": 1, "role": "assistant", "text": "other two"},
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    a, b = conversations(log)
    assert [(turn.key, turn.parent) for turn in a.turns] == [("1", None), ("3", "1"), ("2", "1")]
    assert texts(b) == ["eins"]


def test_zip_files_and_directories_are_opened(tmp_path: Path, fixtures: Path) -> None:
    """An export is read as it was downloaded; what lies beside the conversations is passed over."""
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w") as archive:
        archive.write(fixtures / "chatgpt.json", "conversations.json")
        archive.writestr("user.json", "{}")
        archive.writestr("chat.html", "<html>")
    assert detect(export) == "chatgpt"
    assert len(conversations(export)) == 2
    everything = conversations(fixtures)
    assert len({c.source for c in everything}) == 12
    assert [c.conversation_id for c in everything] == [
        c.conversation_id for c in conversations(fixtures)
    ]


def test_samples_with_damage_are_read(transcripts: Path) -> None:
    """Transcripts of four programs give their conversations, and their damage is reported."""
    found = list(read(transcripts))
    turns = {c.conversation_id: len(c.turns) for c in found if isinstance(c, ImportedConversation)}
    assert turns["claude_code_edges"] == 6
    assert turns["claude_code_second"] == 6
    assert turns["codex_11111111-1111-4111-8111-111111111111"] == 2
    assert turns["codex_66666666-6666-4666-8666-666666666666"] == 1
    assert sum(name.startswith("chatgpt_") for name in turns) == 5
    assert sum(name.startswith("sharegpt_") for name in turns) == 40
    places = [(Path(p.path).name[:7], p.place) for p in found if isinstance(p, ImportProblem)]
    assert ("rollout", "line 3, column 2") in places
    assert len(places) == 5
