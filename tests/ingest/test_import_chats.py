"""Imports of chats: their formats by name and by content, and what comes of each."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.conftest import Home
from tests.ingest.imported import read
from tests.ingest.memory_sources import vscode_state

from anaphora import ImportedConversation, ImportProblem
from anaphora.errors import UnknownFormat
from anaphora.features.importing.formats import FORMATS, detect
from anaphora.features.importing.formats.tools import described_target, outcome_of
from anaphora.features.importing.values import ImportedElse


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


CHATS = "workbench.panel.aichat.view.aichat.chatdata"
AIDER = ".aider.chat.history.md"


def chats(path: Path, form: str | None = None) -> list[ImportedConversation]:
    """The conversations of a file in which nothing is broken."""
    items = list(read(path, form))
    assert not [item for item in items if isinstance(item, ImportProblem)]
    return [item for item in items if isinstance(item, ImportedConversation)]


def said(chat: ImportedConversation) -> list[tuple[str, str]]:
    return [(turn.speaker or turn.role, turn.text) for turn in chat.turns]


def saved(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def state(path: Path, **tables: dict[str, Any]) -> Path:
    """A state.vscdb with these values by their keys, table by table."""
    with closing(sqlite3.connect(path)) as connection:
        for name, values in tables.items():
            connection.execute(
                f"CREATE TABLE {name} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
            )
            for key, value in values.items():
                connection.execute(f"INSERT INTO {name} VALUES (?, ?)", (key, json.dumps(value)))
        connection.commit()
    return path


def tab(*texts: str) -> dict[str, Any]:
    """Chats as Cursor's first versions kept them."""
    kinds = ("user", "ai")
    bubbles = [{"type": kinds[n % 2], "id": f"b{n}", "text": t} for n, t in enumerate(texts)]
    return {"tabs": [{"tabId": "t1", "chatTitle": "Crane", "bubbles": bubbles}]}


# Telegram


@pytest.mark.promise("import.formats")
def test_telegram_keeps_texts_as_they_stand(fixtures: Path) -> None:
    """Runs of bold, links and mentions join; what stands beside the words is told in words."""
    items = list(read(fixtures / "telegram.json"))
    ola, own, house = (item for item in items if isinstance(item, ImportedConversation))
    assert [chat.title for chat in (ola, own, house)] == ["Ola", "Saved Messages", "House"]
    assert said(ola) == [
        ("Ola", "The flat is at Dluga 17, ask for @marek."),
        ("Jan", "[reply to Ola: The flat is at Dluga 17, ask for @marek.]\nI will come at noon."),
        ("Deleted account 7003", "Bring the spare key."),
        ("Ola", "The lease, page two."),
        ("Jan", "See the plan."),
    ]
    assert ola.left_out == {"sticker": 1, "photo": 1, "address behind a link": 1}
    assert ola.turns[0].ts == datetime(2026, 1, 5, 9, 1, tzinfo=UTC)
    assert said(house) == [
        ("Ola", "[poll: When do we paint? / Saturday / Sunday]"),
        ("Jan", "[forwarded from deleted account]\nThe landlord wants white walls."),
        ("Jan", "[file: offer.pdf]"),
        ("Jan", "[reply to Ola: voice message]\nToo loud, write it please."),
    ]
    assert house.left_out == {"service message": 1, "voice message": 1, "attachment": 1}
    assert [i.kind for i in items if isinstance(i, ImportedElse)] == ["contact"]


def test_one_chat_of_telegram_is_the_same_as_among_all(fixtures: Path, tmp_path: Path) -> None:
    """A chat that is exported alone has the identities that it has in an export of all."""
    account = json.loads((fixtures / "telegram.json").read_text("utf-8"))
    alone = saved(tmp_path / "result.json", account["chats"]["list"][0])
    assert detect(alone) == "telegram"
    assert chats(alone) == chats(fixtures / "telegram.json")[:1]
    bot = {"name": "Tides", "type": "bot_chat", "id": 5, "messages": [
        {"id": 1, "type": "message", "date": "2026-01-05T10:00:00", "from": "Jan",
         "from_id": "user7002", "text": "", "text_entities": [
             {"type": "bot_command", "text": "/tide"}, {"type": "plain", "text": " Hel"}]},
        {"id": 2, "type": "message", "date": "2026-01-05T10:00:01", "from": "Tides",
         "from_id": "user5", "text": "High water at 14:10."},
    ]}  # fmt: skip
    (talk,) = chats(saved(tmp_path / "bot.json", bot))
    assert [turn.role for turn in talk.turns] == ["user", "assistant"]
    assert talk.turns[0].text == "/tide Hel"
    # Old exports have the machine's time alone.
    assert talk.turns[0].ts == datetime(2026, 1, 5, 10).astimezone()


@pytest.mark.parametrize(
    "message",
    [
        {"id": 2, "type": "message", "from": "A", "text": {"type": "bold"}},
        {"id": 2, "type": "message", "from": "A", "text": ["a", 7]},
        {"id": 2, "type": "message", "from": "A", "text_entities": [{"type": "bold"}]},
        ["no message"],
    ],
)
def test_a_broken_message_of_telegram_is_told(tmp_path: Path, message: Any) -> None:
    """The others come in, and the problem says where it is."""
    whole = {"id": 1, "type": "message", "from": "A", "from_id": "user1", "text": "The pier."}
    chat = {"name": "A", "type": "personal_chat", "id": 1, "messages": [message, whole]}
    items = list(read(saved(tmp_path / "result.json", chat)))
    assert [said(i) for i in items if isinstance(i, ImportedConversation)] == [[("A", "The pier.")]]
    places = [item.place for item in items if isinstance(item, ImportProblem)]
    assert len(places) == 1
    assert places[0].endswith("message 1")


# Plain messages


def block(text: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": text}


@pytest.mark.parametrize(
    ("content", "text", "left_out"),
    [
        (["At ", {"type": "bold", "text": "Dluga 17"}, "."], "At Dluga 17.", {}),
        ([block("Ask ", "plain"), block("@marek", "mention")], "Ask @marek", {}),
        ([block("Look:"), block("A pier.")], "Look:\n\nA pier.", {}),
        ([block("Gate "), block("nine.")], "Gate nine.", {}),
        ([{"type": "text", "text": {"value": "Pier 4", "annotations": []}}], "Pier 4", {}),
        ([{"type": "refusal", "refusal": "I cannot."}], "I cannot.", {}),
        ([{"type": "input_audio", "transcript": "Pier 4", "audio": "AA"}], "Pier 4", {}),
        ([{"type": "thinking", "thinking": "hm"}, block("Yes.")], "Yes.", {"thinking": 1}),
        ([block("hm", "reasoning"), block("Yes.")], "Yes.", {"thinking": 1}),
        ([block("See:"), {"type": "image_url", "image_url": {}}], "See:", {"attachment": 1}),
    ],
)
def test_a_plain_message_is_kept_whole(
    tmp_path: Path, content: object, text: str, left_out: dict[str, int]
) -> None:
    """A block with a text keeps it whatever its type; runs of one text join as they stand."""
    (chat,) = chats(saved(tmp_path / "chat.json", [{"role": "user", "content": content}]))
    assert [turn.text for turn in chat.turns] == [text]
    assert chat.left_out == left_out


def test_an_empty_field_does_not_hide_the_words(tmp_path: Path) -> None:
    """Where one field for the words is empty, the next is read."""
    rows = [{"role": "user", "text": "", "content": "The pier is closed."}]
    (chat,) = chats(saved(tmp_path / "chat.json", rows))
    assert chat.turns[0].text == "The pier is closed."


@pytest.mark.promise("import.formats")
def test_deepseek_is_read_as_what_it_is(fixtures: Path) -> None:
    """Its fragments say who spoke; in earlier exports the two speak in turn."""
    kiln, glaze = chats(fixtures / "deepseek.json")
    assert said(kiln) == [
        ("user", "How hot is cone 6?"),
        ("assistant", "1222 degrees Celsius."),
        ("assistant", "About 1222 degrees."),
    ]
    assert {turn.parent for turn in kiln.turns[1:]} == {"1"}
    assert kiln.left_out == {"attachment": 1, "tool output": 1, "thinking": 1}
    assert said(glaze) == [
        ("user", "Is this glaze food safe?"),
        ("assistant", "Only after a leach test."),
    ]


# Claude.ai and ChatGPT


def claude(path: Path, *messages: dict[str, Any]) -> ImportedConversation:
    kept = [
        {"uuid": f"m{n}", "sender": "human", "text": "", "content": [], **message}
        for n, message in enumerate(messages)
    ]
    (chat,) = chats(saved(path / "conversations.json", [{"uuid": "k", "chat_messages": kept}]))
    return chat


def test_claude_ai_keeps_what_was_pasted(tmp_path: Path) -> None:
    """A paste belongs to its message, under the name of its file; alone it is a message."""
    chat = claude(
        tmp_path,
        {"text": "Who holds it?", "attachments": [
            {"file_name": "lease.txt", "extracted_content": "The notary holds the deposit."},
            {"file_name": "plan.png"}]},
        {"attachments": [{"file_name": "", "extracted_content": "I agree to all\n\nbut nine."}]},
        {"content": [{"type": "voice_note", "title": "v", "text": "Call the notary."}]},
        {"files": [{"file_name": "photo.jpg"}]},
    )  # fmt: skip
    assert [turn.text for turn in chat.turns] == [
        "Who holds it?\n\nlease.txt:\nThe notary holds the deposit.",
        "I agree to all\n\nbut nine.",
        "Call the notary.",
    ]
    assert chat.left_out == {"attachment": 2}


def test_claude_ai_keeps_what_was_written_for_the_user(tmp_path: Path) -> None:
    """An artifact comes whole, a change of it with the passage around; other tools are counted."""

    def use(name: str = "artifacts", **given: str) -> dict[str, Any]:
        return {"type": "tool_use", "name": name, "input": {"id": "a1", **given}}

    letter = "Dear Ms Kern,\n\nI pay 500 a month.\n\nJan"
    chat = claude(
        tmp_path,
        {"sender": "assistant", "content": [
            {"type": "text", "text": "Here it is."},
            use(command="create", title="Letter", content=letter),
            {"type": "text", "text": "Sign below."}]},
        {"sender": "assistant", "content": [use(command="update", old_str="500", new_str="700")]},
        {"sender": "assistant", "content": [use(command="update", old_str="gone", new_str="Ola")]},
        {"sender": "assistant", "content": [use(command="rewrite", content="I pay 800.")]},
        {"sender": "assistant", "content": [
            use("create_file", path="/mnt/user-data/outputs/rota.md", file_text="Ana: Monday"),
            use("create_file", path="/home/claude/build.py", file_text="print()"),
            use("web_search", query="rent")]},
    )  # fmt: skip
    assert [turn.text for turn in chat.turns] == [
        f"Here it is.\n\nLetter:\n{letter}\n\nSign below.",
        "Letter:\nI pay 700 a month.",
        "Letter:\nOla",
        "Letter:\nI pay 800.",
        "rota.md:\nAna: Monday",
    ]
    assert chat.left_out == {"tool call": 2}


def test_chatgpt_keeps_canvases_and_reports(tmp_path: Path) -> None:
    """The text of a canvas, changes and comments, and reports of deep research are its words."""

    def message(role: str, text: str, recipient: str = "all", **more: Any) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        name = more.pop("name", None)
        author = {"role": role, "name": name}
        return {"author": author, "content": content, "recipient": recipient, "metadata": more}

    def canvas(call: str, **given: Any) -> dict[str, Any]:
        return message("assistant", json.dumps(given), f"canmore.{call}")

    letter = "Dear Ms Kern,\n\nI pay 500 (net).\n\nJan"
    report = {
        "status": "completed",
        "report_message": {"content": {"parts": ["Gulls nest in May."]}},
    }
    code = canvas("create_textdoc", name="tide", type="code/python", content="print(4)")
    code["content"] = {"content_type": "code", "text": code["content"]["parts"][0]}
    whole = {"pattern": ".*", "multiple": False, "replacement": "I pay 800."}
    messages = [
        message("user", "Write to Ms Kern.", attachments=[{"name": "lease.pdf"}]),
        canvas("create_textdoc", name="Letter", type="document", content=letter),
        message("tool", "Successfully created", name="canmore.create_textdoc"),
        canvas("update_textdoc", updates=[{"pattern": r"500 \(net\)", "replacement": "700"}]),
        canvas("update_textdoc", updates=[whole]),
        canvas("comment_textdoc", comments=[{"pattern": "800", "comment": "Say by when."}]),
        message("assistant", '{"updates": [', "canmore.update_textdoc"),
        code,
        message("tool", "Which gulls?", name="research_kickoff_tool.clarify_with_text"),
        message("tool", "Herring gulls nest in May.", is_async_task_result_message=True),
        message("tool", "state", chatgpt_sdk={"widget_state": json.dumps(report)}),
    ]
    mapping: dict[str, Any] = {"root": {"parent": None, "message": None}}
    for number, one in enumerate(messages):
        mapping[f"n{number}"] = {"parent": f"n{number - 1}" if number else "root", "message": one}
    export = [{"id": "c1", "title": "Rent", "mapping": mapping}]
    (chat,) = chats(saved(tmp_path / "conversations.json", export))
    assert said(chat) == [
        ("user", "Write to Ms Kern."),
        ("assistant", f"Letter:\n{letter}"),
        ("assistant", "Letter:\nI pay 700."),
        ("assistant", "Letter:\nI pay 800."),
        ("assistant", "Say by when."),
        ("assistant", "tide:\nprint(4)"),
        ("assistant", "Which gulls?"),
        ("assistant", "Herring gulls nest in May."),
        ("assistant", "Gulls nest in May."),
    ]
    assert chat.left_out == {"attachment": 1, "tool output": 1, "tool call": 1}


# Cursor


COMPOSERS, PROMPTS = "composer.composerData", "aiService.prompts"
ASKED = "Where is\nthe crane manual?"
TYPED = {"type": 1, "bubbleId": "b", "text": ""}
RICH = json.dumps(
    {
        "root": {
            "children": [
                {"type": "paragraph", "children": [{"type": "text", "text": line}]}
                for line in ASKED.split("\n")
            ]
        }
    }
)


@pytest.mark.promise("import.formats")
@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ({"interactive.sessions": [], CHATS: tab(ASKED, "Red cabinet.")}, [ASKED, "Red cabinet."]),
        ({"workbench.panel.chat.view.chat.chatdata": tab(ASKED)}, [ASKED]),
        ({CHATS: {"tabs": [{"bubbles": [TYPED | {"initText": RICH}]}]}}, [ASKED]),
        ({CHATS: {"tabs": [{"bubbles": [TYPED | {"delegate": {"a": ASKED}}]}]}}, [ASKED]),
        ({COMPOSERS: {"allComposers": [{"conversation": [TYPED | {"richText": RICH}]}]}}, [ASKED]),
        ({PROMPTS: [{"text": ASKED, "commandType": 4}]}, [ASKED]),
        ({PROMPTS: [{"text": ASKED}], CHATS: tab(ASKED)}, [ASKED]),
        (
            {
                PROMPTS: [{"text": ASKED}],
                "aiService.generations": [
                    {"unixMs": 1731816000000, "type": "cmdk", "textDescription": "Rename it."},
                    {"unixMs": 1731816060000, "type": "composer", "textDescription": ASKED},
                ],
            },
            [ASKED, "Rename it."],
        ),
    ],
)
def test_a_database_of_a_workspace_is_known_by_its_keys(
    tmp_path: Path, items: dict[str, Any], expected: list[str]
) -> None:
    """Chats of every earlier version, and what was typed that stands in no chat, once."""
    path = state(tmp_path / "state.vscdb", ItemTable=items | {"telemetry.firstSessionDate": "x"})
    assert detect(path) == "cursor"
    assert [turn.text for chat in chats(path) for turn in chat.turns] == expected


def test_chats_of_both_editors_in_one_database_are_read(tmp_path: Path) -> None:
    """A workspace that was opened with Cursor has its chats and those of Copilot."""
    path = vscode_state(tmp_path / "state.vscdb")
    assert detect(path) == "vscode_copilot"
    with closing(sqlite3.connect(path)) as connection:
        value = json.dumps(tab(ASKED, "In the red cabinet."))
        connection.execute("INSERT INTO ItemTable VALUES (?, ?)", (CHATS, value))
        connection.commit()
    sources = {i.source for i in read(path) if isinstance(i, ImportedConversation)}
    assert sources == {"cursor", "vscode_copilot"}


def test_a_database_without_chats_is_refused(tmp_path: Path) -> None:
    """Every editor has such tables: without a key of a chat there is nothing in them."""
    path = state(tmp_path / "state.vscdb", ItemTable={"a": 1}, cursorDiskKV={"checkpointId:1": {}})
    with pytest.raises(UnknownFormat):
        detect(path)


def test_prompts_of_chats_elsewhere_come_in_once(tmp_path: Path) -> None:
    """A workspace lists its chats whose messages are in the database of all workspaces."""
    (tmp_path / "globalStorage").mkdir()
    workspace = tmp_path / "workspaceStorage" / "w1"
    workspace.mkdir(parents=True)
    (workspace / "workspace.json").write_text('{"folder": "file:///work/crane"}')
    bubbles = {"bubbleId:c1:b1": {"type": 1, "text": ASKED}}
    state(tmp_path / "globalStorage" / "state.vscdb", cursorDiskKV=bubbles)
    prompts = [{"text": ASKED}, {"text": "Rename it."}]
    lists = {"composer.composerData": {"allComposers": [{"composerId": "c1", "name": "Crane"}]}}
    state(workspace / "state.vscdb", ItemTable=lists | {"aiService.prompts": prompts})
    items = list(read(tmp_path))
    texts = [t.text for i in items if isinstance(i, ImportedConversation) for t in i.turns]
    assert sorted(texts) == ["Rename it.", ASKED]
    (typed,) = [i for i in items if isinstance(i, ImportedConversation) and i.title == "Prompts"]
    assert typed.left_out == {"repeated message": 1}
    assert typed.place is not None
    assert typed.place.directory == "/work/crane"
    kinds = [item.kind for item in items if isinstance(item, ImportedElse)]
    assert kinds == ["chat whose messages are in globalStorage/state.vscdb"]


def test_prompts_that_rolled_off_a_list_change_nothing(home: Home, tmp_path: Path) -> None:
    """Cursor keeps the latest only: what follows is added, what came before stays."""
    for number, asked in enumerate((["one?", "two?"], ["two?", "three?"])):
        path = tmp_path / str(number) / "state.vscdb"
        path.parent.mkdir()
        prompts = {"aiService.prompts": [{"text": text} for text in asked]}
        assert home.take(state(path, ItemTable=prompts)).added == 2 - number
    assert list(home.everything().values()) == [
        [("user", "one?"), ("user", "two?"), ("user", "three?")]
    ]


# aider


@pytest.mark.promise("import.formats")
def test_each_chat_of_aider_is_a_conversation(fixtures: Path) -> None:
    """ "####" is the user's, ">" is left out; headings, quotations and code of an answer stay."""
    first, second = chats(fixtures / AIDER)
    assert said(first) == [
        ("user", "/add src/webhook.py"),
        ("user", "add a retry to the webhook\n\nno more than three times, please"),
        (
            "assistant",
            "I'll add backoff to the handler.\n\n#### Plan\n\n"
            "> Retries must be idempotent, says the guide.\n\n"
            "```python\n#### not a prompt\ndelays = (1, 2, 4)\n```",
        ),
    ]
    assert first.left_out == {"log record": 4, "command": 1, "blank message": 1}
    assert first.turns[0].ts == datetime(2026, 6, 9, 14, 1).astimezone()
    assert [turn.role for turn in second.turns] == ["user", "assistant"]


def test_a_history_of_aider_without_its_spaces(tmp_path: Path) -> None:
    """An editor may have taken the spaces at the ends of lines away; code is still an answer's."""
    path = tmp_path / "history.md"
    path.write_text(
        "# aider chat started at 2026-06-09 14:01:00\n> Aider v0.86.2\n\n#### one\n#### two\n"
        "Here:\n```\n> a quote\n#### a comment\n```\n> Applied edit\n\n#### three\n"
        "Half a fence\n```\n#### four\n# aider chat started at some time\n#### five\n"
    )
    assert detect(path) == "aider"
    items = list(read(path))
    first, last = (item for item in items if isinstance(item, ImportedConversation))
    assert said(first) == [
        ("user", "one\ntwo"),
        ("assistant", "Here:\n```\n> a quote\n#### a comment\n```"),
        ("user", "three"),
        ("assistant", "Half a fence\n```"),
        ("user", "four"),
    ]
    assert said(last) == [("user", "five")]
    assert [item.place for item in items if isinstance(item, ImportProblem)] == ["line 17"]


@pytest.mark.promise("import.idempotent")
def test_exports_of_chats_come_in_once(home: Home, fixtures: Path, tmp_path: Path) -> None:
    """Again they add nothing; a history that went on adds what is new."""
    folder = tmp_path / "given"
    folder.mkdir()
    for name in ("telegram.json", "deepseek.json", AIDER):
        (folder / name).write_bytes((fixtures / name).read_bytes())
    state(folder / "state.vscdb", ItemTable={CHATS: tab(ASKED, "In the red cabinet.")})
    report = home.take(folder)
    assert (report.added, report.problems) == (22, ())
    assert home.take(folder).added == 0
    with (folder / AIDER).open("a") as history:
        history.write("\n#### and the fourth?  \n\nThere is none.\n")
    assert home.take(folder).added == 2


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ({"command": ["bash", "-lc", "make test"]}, "make test"),
        ('{"cmd": "rg -n port src"}', "rg -n port src"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n", "a.py, b.py"),
        ({"file_path": "/w/shop/a.py", "content": "x"}, "a.py"),
        ({"todos": [{"content": "x"}]}, ""),
        (None, ""),
    ],
)
def test_the_telling_part_of_a_call_is_kept(given: Any, target: str) -> None:
    """Of a call's arguments the file, command or question comes, paths within the project."""
    assert described_target(given, "/w/shop") == target


@pytest.mark.parametrize(
    ("said", "failed", "outcome"),
    [
        ("fine", False, "ok"),
        ([{"type": "text", "text": "\nno such file"}], True, "failed: no such file"),
        ('{"output": "boom", "metadata": {"exit_code": 2}}', None, "failed: boom"),
        ("Exit code: 0\nWall time: 1 s", None, "ok"),
        ("whatever", None, ""),
    ],
)
def test_an_outcome_is_told_where_the_transcript_tells(
    said: Any, failed: bool | None, outcome: str
) -> None:
    """Ended well, or failed with the first line of why; nothing where it cannot be known."""
    assert outcome_of(said, failed) == outcome
