"""What the user and the assistant of a coding agent said, wherever a transcript has it: once."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.imported import read

from anaphora import ImportedConversation, ImportedTurn

from .conftest import Home

Record = dict[str, Any]
NOTICE = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was "
    "a file edit, the new_string was NOT written to the file). "
)
SAID = f"{REFUSED}To tell you how to proceed, the user said:\n"
NOTE = "\n\nNote: The user's next message may contain a correction or preference. Pay attention."
PLAN = "1. Mount the share.\n" + "2. Copy every upload, oldest first.\n" * 20


def write(path: Path, records: Iterable[Record]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def at(number: int) -> str:
    return f"2026-09-08T15:{number // 60:02}:{number % 60:02}Z"


def said(
    kind: str, uuid: str, parent: str | None, content: Any, number: int, **more: Any
) -> Record:
    return {
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "cwd": "/w/app",
        "timestamp": at(number), "message": {"role": kind, "content": content}, **more,
    }  # fmt: skip


def moved(operation: str, number: int, content: str | None = None, **more: Any) -> Record:
    """A movement of the queue."""
    words = {} if content is None else {"content": content}
    return {
        "type": "queue-operation", "operation": operation, "sessionId": "s1",
        "timestamp": at(number), **words, **more,
    }  # fmt: skip


def absorbed(uuid: str, parent: str, prompt: Any, number: int, **command: Any) -> Record:
    """A queued prompt that went into the work under way."""
    attachment = {"type": "queued_command", "prompt": prompt, **command}
    return {
        "type": "attachment", "uuid": uuid, "parentUuid": parent, "sessionId": "s1",
        "isSidechain": False, "timestamp": at(number), "attachment": attachment,
    }  # fmt: skip


def conversation(path: Path) -> ImportedConversation:
    (item,) = read(path)
    assert isinstance(item, ImportedConversation)
    return item


def spoken(path: Path) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in conversation(path).turns]


HUMAN: Record = {"commandMode": "prompt", "origin": {"kind": "human"}}
PURPLE = "It must be purple."
QUEUES: dict[str, tuple[list[Record], list[str], int]] = {
    "absorbed, its record after the queue's": (
        [
            moved("enqueue", 3, PURPLE),
            moved("remove", 4, PURPLE, reason="absorbed_mid_turn"),
            absorbed("q1", "a1", PURPLE, 5, **HUMAN),
        ],
        [PURPLE],
        0,
    ),
    "absorbed by an older version, blocks": (
        [
            moved("enqueue", 3, PURPLE),
            absorbed("q1", "a1", [{"type": "text", "text": PURPLE}], 4),
            moved("remove", 5, PURPLE),
        ],
        [PURPLE],
        0,
    ),
    "absorbed, in the queue alone": (
        [moved("enqueue", 3, PURPLE), moved("remove", 4, PURPLE, reason="absorbed_mid_turn")],
        [PURPLE],
        0,
    ),
    "the next prompt, in the queue alone": (
        [moved("enqueue", 3, PURPLE), moved("dequeue", 4)],
        [PURPLE],
        0,
    ),
    "the next prompt": (
        [
            moved("enqueue", 3, f"{PURPLE} "),
            moved("dequeue", 4),
            said("user", "u2", "a1", PURPLE, 4),
        ],
        [PURPLE],
        0,
    ),
    "two that became one prompt": (
        [
            moved("enqueue", 3, PURPLE),
            moved("enqueue", 3, "And round."),
            moved("dequeue", 4),
            moved("dequeue", 4),
            said("user", "u2", "a1", f"{PURPLE}\nAnd round.", 4),
        ],
        [f"{PURPLE}\nAnd round."],
        0,
    ),
    "said twice": (
        [
            moved("enqueue", 3, "go on"),
            absorbed("q1", "a1", "go on", 4, **HUMAN),
            moved("remove", 4, "go on", reason="absorbed_mid_turn"),
            moved("enqueue", 5, "go on"),
            moved("dequeue", 6),
        ],
        ["go on", "go on"],
        0,
    ),
    "the same message as a prompt": (
        [
            absorbed("q1", "a1", PURPLE, 4, **HUMAN, source_uuid="u2"),
            said("user", "u2", "a1", PURPLE, 5),
        ],
        [PURPLE],
        0,
    ),
    "taken back": ([moved("enqueue", 3, PURPLE), moved("popAll", 4, PURPLE)], [], 1),
    "all taken back": (
        [moved("enqueue", 3, PURPLE), moved("enqueue", 3, "And round."), moved("popAll", 4)],
        [],
        2,
    ),
    "removed": ([moved("enqueue", 3, PURPLE), moved("remove", 4, PURPLE)], [], 1),
    "still waiting": ([moved("enqueue", 3, PURPLE)], [], 1),
    "notices and commands": (
        [
            moved("enqueue", 3, NOTICE),
            moved("dequeue", 4),
            moved("enqueue", 4, "/compact"),
            moved("dequeue", 5),
            absorbed("q1", "a1", NOTICE, 5, commandMode="task-notification"),
            absorbed("q2", "a1", NOTICE, 5),
            absorbed(
                "q3", "a1", "Tests are green.", 5, commandMode="prompt", origin={"kind": "peer"}
            ),
            absorbed("q4", "a1", "Go on.", 5, **HUMAN, isMeta=True),
            absorbed("q5", "a1", "ls", 5, commandMode="bash"),
            said("user", "u5", "a1", "I am done.", 6, origin={"kind": "peer"}),
        ],
        [],
        0,
    ),
}


@pytest.mark.promise("import.formats")
@pytest.mark.parametrize("case", QUEUES)
def test_claude_code_has_what_was_typed_while_it_worked(case: str, tmp_path: Path) -> None:
    """A prompt that was queued is said once, at its place, if it went to the model."""
    between, expected, not_sent = QUEUES[case]
    # A prompt is answered below itself; what went into the work may be a leaf beside it.
    above = next((one["uuid"] for one in between if one.get("uuid") == "u2"), "a1")
    path = write(
        tmp_path / "s.jsonl",
        [
            said("user", "u1", None, "Add the export button.", 1),
            said("assistant", "a1", "u1", [{"type": "text", "text": "Looking."}], 2),
            *between,
            said("assistant", "a2", above, [{"type": "text", "text": "Done."}], 9),
        ],
    )
    item = conversation(path)
    texts = [turn.text for turn in item.turns]
    assert texts == ["Add the export button.", "Looking.", *expected, "Done."]
    assert [turn.role for turn in item.turns[2:-1]] == ["user"] * len(expected)
    # One line: nobody went back.
    assert [turn.parent for turn in item.turns] == [None, *(turn.key for turn in item.turns[:-1])]
    assert item.left_out.get("queued prompt that was taken back or not sent", 0) == not_sent


ASKED = {"questions": [{"question": "Where do uploads live?"}, {"question": "Which quota?"}]}
ANSWERED: tuple[tuple[str, Any, Record, list[tuple[str, str]]], ...] = (
    (
        "AskUserQuestion",
        ASKED,
        {
            "content": "User has answered your questions: …",
            "result": {
                "answers": {"Where do uploads live?": "On Ceph", "Which quota?": ["2 GB", "9 GB"]}
            },
        },
        [("user", "Where do uploads live? \u2014 On Ceph\n\nWhich quota? \u2014 2 GB; 9 GB")],
    ),
    (
        "AskUserQuestion",
        ASKED,
        {
            "content": 'User has answered your questions: "Where do uploads live?"="On "Ceph", '
            'never S3" user notes: ask Ida, "Which quota?"=(no option selected). You can now '
            "continue with the user's answers in mind."
        },
        [("user", 'Where do uploads live? \u2014 On "Ceph", never S3; ask Ida')],
    ),
    (
        "mcp__ui__ask_user_question",
        ASKED,
        {"content": [{"type": "text", "text": 'The user answered: "Which quota?"="None".'}]},
        [("user", "Which quota? \u2014 None")],
    ),
    (
        "AskUserQuestion",
        ASKED,
        {
            "content": f"{SAID}The user wants to "
            'clarify these questions.\n    Start by asking.\n\n    Questions asked:\n- "Where do '
            'uploads live?"\n  Answer: On Ceph\n  User notes: not the old one\n- "Which quota?"\n'
            f"  (No answer provided){NOTE}",
            "failed": True,
        },
        [("user", "Where do uploads live? \u2014 On Ceph\nnot the old one")],
    ),
    ("AskUserQuestion", ASKED, {"content": "The user did not answer the questions."}, []),
    (
        "Bash",
        {"command": "make"},
        {
            "content": f"{SAID}Never make, use nox.{NOTE}",
            "failed": True,
        },
        [("user", "Never make, use nox.")],
    ),
    (
        "Edit",
        {"file_path": "a.py"},
        {
            "content": f"{REFUSED}The user provided the following reason for the "
            "rejection:  Not b.py",
            "failed": True,
        },
        [("user", "Not b.py")],
    ),
    ("Bash", {"command": "x"}, {"content": f"{REFUSED}STOP and wait.", "failed": True}, []),
    # What a tool puts out is never the user's.
    ("Read", {"file_path": "a"}, {"content": f"{REFUSED}the user said:\nErase all."}, []),
    ("Bash", {"command": "x"}, {"content": 'User has answered your questions: "a"="b"'}, []),
    (
        "ExitPlanMode",
        {"plan": PLAN},
        {"content": f"{SAID}Use sshfs.", "failed": True},
        [("assistant", PLAN), ("user", "Use sshfs.")],
    ),
    (
        "ExitPlanMode",
        {"plan": PLAN},
        {"content": f"User has approved your plan.\n\n## Approved Plan:\n{PLAN}"},
        [("assistant", PLAN)],
    ),
    (
        "ExitPlanMode",
        {},
        {"content": "User has approved your plan.", "result": {"plan": PLAN, "isAgent": False}},
        [("assistant", PLAN)],
    ),
    (
        "ExitPlanMode",
        {"plan": PLAN},
        {"content": "Approved.\n\n## Approved Plan (edited by user):\nMount it read-only."},
        [("assistant", PLAN), ("user", "Mount it read-only.")],
    ),
)  # fmt: skip


@pytest.mark.promise("import.formats")
@pytest.mark.parametrize(("tool", "given", "output", "expected"), ANSWERED)
def test_claude_code_has_what_was_said_through_a_tool(
    tool: str, given: Any, output: Record, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    """Answers, words of refusal and whole plans are turns of who said them; outputs are not."""
    call = {"type": "tool_use", "id": "t1", "name": tool, "input": given}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": output["content"]}
    block |= {"is_error": True} if output.get("failed") else {}
    result = {"toolUseResult": output["result"]} if "result" in output else {}
    path = write(
        tmp_path / "s.jsonl",
        [
            said("user", "u1", None, "Set up storage.", 1),
            said("assistant", "a1", "u1", [{"type": "text", "text": "One moment."}, call], 2),
            said("user", "r1", "a1", [block], 3, **result),
            said("assistant", "a2", "r1", [{"type": "text", "text": "Understood."}], 4),
        ],
    )
    item = conversation(path)
    assert [(turn.role, turn.text) for turn in item.turns] == [
        ("user", "Set up storage."),
        ("assistant", "One moment."),
        *expected,
        ("assistant", "Understood."),
    ]
    assert [turn.parent for turn in item.turns] == [None, *(turn.key for turn in item.turns[:-1])]
    assert (len(item.calls), item.left_out["tool output"]) == (1, 1)


@pytest.mark.promise("import.idempotent")
def test_a_transcript_that_came_in_earlier_gets_what_it_lacked(home: Home, tmp_path: Path) -> None:
    """What an older version passed over comes in beside what it kept, and nothing doubles."""
    records = [
        said("user", "u1", None, "Add the button.", 1),
        said("assistant", "a1", "u1", [{"type": "text", "text": "Looking."}], 2),
        absorbed("q1", "a1", PURPLE, 3, **HUMAN),
        said("assistant", "a2", "q1", [{"type": "text", "text": "Done."}], 9),
    ]
    path = tmp_path / "s.jsonl"
    assert (
        home.take(write(path, [one for one in records if one["type"] != "attachment"])).added == 3
    )
    again = home.take(write(path, records))
    assert (again.added, again.known) == (1, 3)
    assert home.take(path).added == 0
    assert sorted(text for turns in home.everything().values() for _, text in turns) == sorted(
        ["Add the button.", "Looking.", PURPLE, "Done."]
    )


def copied(session: str, *more: Record) -> list[Record]:
    """A session as it stands in its own file, or in that of a copy that goes on."""
    common = [
        said("user", "u1", None, "Where is the crane's log?", 1),
        said("assistant", "a1", "u1", [{"type": "text", "text": "In crane.txt."}], 2),
    ]
    return [{**one, "sessionId": session} for one in (*common, *more)]


NEXT = said("user", "u3", "a1", "Who empties it?", 9)
OTHER = said("user", "u4", "a1", "Is it on paper?", 9)


@pytest.mark.promise("import.copies")
@pytest.mark.parametrize("order", list(itertools.permutations(("one", "two", "three")))[::2])
@pytest.mark.parametrize("together", [True, False])
def test_a_copy_of_a_session_is_its_continuation(
    order: tuple[str, ...], together: bool, home: Home, tmp_path: Path
) -> None:
    """The same messages under other session ids come in once, in any order and in any imports."""
    files = {"one": copied("S-1"), "two": copied("S-2", NEXT), "three": copied("S-3", OTHER)}
    paths = [write(tmp_path / name / "s.jsonl", files[name]) for name in order]
    reports = [home.take(*paths)] if together else [home.take(path) for path in paths]
    assert sum(report.added for report in reports) == 4
    assert {ids for report in reports for ids in report.conversation_ids} == set(home.everything())
    # The one that came second went on in the thread, the third beside it.
    assert sorted(map(len, home.everything().values())) == [1, 3]
    assert home.take(*paths).added == 0


@pytest.mark.promise("import.copies")
def test_what_was_forgotten_stays_out_of_copies_too(home: Home, tmp_path: Path) -> None:
    """A redacted turn does not come back under the id of a copy."""
    home.take(write(tmp_path / "one.jsonl", copied("S-1")))
    home.store.redact("claude_code_S-1", 0)
    report = home.take(write(tmp_path / "two.jsonl", copied("S-2", NEXT)))
    assert (report.added, report.known, report.forgotten) == (1, 1, 1)
    assert [text for _, text in home.said("claude_code_S-1")][1:] == [
        "In crane.txt.",
        "Who empties it?",
    ]
    other = [said("user", "u1", None, "Something else.", 1, sessionId="S-4")]
    home.take(write(tmp_path / "four.jsonl", [{**one, "uuid": "u9"} for one in other]))
    assert home.said("claude_code_S-4") == [("user", "Something else.")]


def rollout(path: Path, *records: tuple[str, Record]) -> Path:
    head = {"type": "session_meta", "payload": {"id": "c1", "cwd": "/w/app", "timestamp": at(0)}}
    rest = ({"type": kind, "payload": payload} for kind, payload in records)
    return write(path, ({**one, "timestamp": at(n)} for n, one in enumerate([head, *rest])))


def item(role: str, *texts: str) -> tuple[str, Record]:
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text} for text in texts]
    return "response_item", {"type": "message", "role": role, "content": content}


def event(role: str, text: str) -> tuple[str, Record]:
    kind = "user_message" if role == "user" else "agent_message"
    return "event_msg", {"type": kind, "message": text}


def completed(role: str, text: str, kind: str = "") -> tuple[str, Record]:
    user = role == "user"
    content = [{"type": "text" if user else "Text", "text": text}]
    told = {
        "type": kind or ("UserMessage" if user else "AgentMessage"),
        "id": "i",
        "content": content,
    }
    if kind == "Plan":
        told = {"type": kind, "id": "i", "text": text}
    return "event_msg", {"type": "item_completed", "item": told}


WAYS = [
    way
    for count in (1, 2, 3)
    for some in itertools.combinations((item, event, completed), count)
    for way in itertools.permutations(some)
]


@pytest.mark.promise("import.formats")
@pytest.mark.parametrize("ways", WAYS, ids=lambda ways: "-".join(one.__name__ for one in ways))
def test_codex_says_each_thing_once_in_whatever_records(ways: Any, tmp_path: Path) -> None:
    """A message in any of the records is one; the same words said twice are two."""
    messages = [("user", "continue"), ("assistant", "Noted."), ("user", "continue")]
    records = [way(role, text) for role, text in messages for way in ways]
    assert spoken(rollout(tmp_path / "rollout.jsonl", *records)) == messages


@pytest.mark.parametrize("parts_first", [True, False])
def test_codex_says_a_plan_once(parts_first: bool, tmp_path: Path) -> None:
    """A plan stands in its message, and alone as a completed item."""
    parts = [completed("assistant", "I suggest:"), completed("assistant", "1. Mount.", "Plan")]
    whole = item("assistant", "I suggest:\n<proposed_plan>\n1. Mount.\n</proposed_plan>")
    records = [*parts, whole] if parts_first else [whole, *parts]
    texts = " ".join(text for _, text in spoken(rollout(tmp_path / "r.jsonl", *records)))
    assert texts.count("1. Mount.") == 1
    assert spoken(rollout(tmp_path / "p.jsonl", parts[1])) == [("assistant", "1. Mount.")]


BROWSER = "<in-app-browser-context source='ui'>\nA tab.\n</in-app-browser-context>"
WRAPPED = [
    ("<recommended_plugins>\n- Figma\n</recommended_plugins>", ""),
    ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>", ""),
    ("<user_instructions>\nBe brief.\n</user_instructions>", ""),
    ("<some_new_context kind='x'>\nstate\n</some_new_context>", ""),
    ("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>", ""),
    (f"{BROWSER}\n\nWhy blue?", "Why blue?"),
    (f"{BROWSER}\n\n## My request for Codex:\nWhy?", "Why?"),
    (f"Why?\n\n{BROWSER}", "Why?"),
    ("# Context from my IDE setup:\n\n## Active file: a\n\n## My request:\nRename.", "Rename."),
    ("<div>is this valid?</div>", "<div>is this valid?</div>"),
    ("What is <environment_context> for?", "What is <environment_context> for?"),
]


@pytest.mark.promise("import.formats")
@pytest.mark.parametrize(
    ("way", "text", "typed"),
    [
        # What an event tells was typed, whatever it looks like.
        (way, text, typed if way is item or not text.startswith("<some_new") else text)
        for way in (item, event, completed)
        for text, typed in WRAPPED
    ],
)
def test_what_a_program_puts_into_codex_is_no_word_of_the_user(
    way: Any, text: str, typed: str, tmp_path: Path
) -> None:
    """Context is counted as instructions, and never said; what was typed beside it stays."""
    path = rollout(tmp_path / "r.jsonl", way("user", text), item("user", "Go."))
    assert [words for _, words in spoken(path)] == [*([typed] if typed else []), "Go."]
    if way is item:
        assert conversation(path).left_out.get("instructions", 0) == (typed != text)


def test_codex_has_answers_to_its_questions(tmp_path: Path) -> None:
    """An answer stands with its question, options and notes in the user's words."""
    asked = {
        "questions": [{"id": "store", "question": "Where?"}, {"id": "q", "question": "How much?"}]
    }
    answers = {"store": {"answers": ["Disk", "user_note: never S3"]}, "q": {"answers": []}}
    call = {"type": "function_call", "name": "request_user_input", "call_id": "c"}
    output = {
        "type": "function_call_output",
        "call_id": "c",
        "output": json.dumps({"answers": answers}),
    }
    path = rollout(
        tmp_path / "r.jsonl",
        item("user", "Set up storage."),
        ("response_item", call | {"arguments": json.dumps(asked)}),
        ("response_item", output),
        item("assistant", "Understood."),
    )
    assert spoken(path)[1] == ("user", "Where? \u2014 Disk; never S3")
    assert len(spoken(path)) == 3


@pytest.mark.promise("import.idempotent")
def test_a_rollout_that_came_in_earlier_gets_what_it_lacked(home: Home, tmp_path: Path) -> None:
    """Keys are those of readers that kept program text and passed over completed items."""
    plugins = "<recommended_plugins>\n- Figma\n</recommended_plugins>"
    browser = "<in-app-browser-context>\nA tab.\n</in-app-browser-context>\nWhy blue?"
    records = [
        item("user", plugins),
        completed("user", "The gate closes at nine."),
        completed("assistant", "Noted."),
        event("assistant", "Noted."),
        item("assistant", "Noted."),
        item("user", browser),
        item("assistant", "By the theme."),
    ]
    before = [
        ("user", plugins),
        ("assistant", "Noted."),
        ("user", browser),
        ("assistant", "By the theme."),
    ]
    turns: list[ImportedTurn] = []
    chain = digest("codex", "c1")
    for role, text in before:
        chain = digest(chain, role, text)
        turns.append(ImportedTurn(chain, turns[-1].key if turns else None, role, text))
    home.take(ImportedConversation("codex", "c1", "codex_c1", tuple(turns)))
    report = home.take(rollout(tmp_path / "r.jsonl", *records))
    assert (report.added, report.known) == (1, 3)
    assert home.take(tmp_path / "r.jsonl").added == 0


def digest(*parts: str) -> str:
    """The key of a turn that has none of its own, as homes hold it."""
    framed = [len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts]
    return hashlib.sha256(b"".join(framed)).hexdigest()[:32]
