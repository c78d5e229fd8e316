"""Damaged and strange files: a clear problem with its place, and the rest goes in."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ingest.imported import read

from anaphora import ImportedConversation, ImportProblem
from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.ingest.importers.base import FAILED
from anaphora.values.imports import ImportedElse

CONVERSATION_FORMATS = ("chatgpt", "claude_ai", "claude_code", "codex", "sharegpt", "neo", "jsonl")


def split(
    path: Path, form: str | None = None
) -> tuple[list[ImportedConversation], list[ImportProblem]]:
    found = list(read(path, form))
    return (
        [item for item in found if isinstance(item, ImportedConversation) and item.turns],
        [item for item in found if isinstance(item, ImportProblem)],
    )


def chat(number: int, text: str = "What is 2 + 2?") -> dict[str, object]:
    return {
        "id": f"c{number}",
        "conversations": [{"from": "human", "value": text}, {"from": "gpt", "value": f"{number}"}],
    }


@pytest.mark.promise("import.malformed")
def test_a_broken_line_is_named_and_the_others_go_in(tmp_path: Path) -> None:
    """The line number is in the problem, and every other line is a turn."""
    file = tmp_path / "notes.jsonl"
    file.write_text(
        '{"role":"user","text":"a"}\n{"role":"user",\n[]\n{"role":"assistant","text":"b"}\n'
    )
    (conversation,), problems = split(file)
    assert [turn.text for turn in conversation.turns] == ["a", "b"]
    assert [problem.place.split(",")[0] for problem in problems] == ["line 2", "line 3"]
    assert all(problem.path == str(file) for problem in problems)


@pytest.mark.promise("import.malformed")
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("big", [10, 100_000])
def test_an_array_goes_on_behind_its_damage(tmp_path: Path, indent: int | None, big: int) -> None:
    """Elements before and after a damaged one go in; the damage has its line and column."""
    chats = [chat(n, "x" * big) for n in range(5)]
    text = json.dumps(chats, indent=indent)
    damaged = text.replace(
        '"gpt", "value": "2"' if indent is None else '"value": "2"', '"value" "2"'
    )
    assert damaged != text
    file = tmp_path / "chats.json"
    file.write_text(damaged)
    conversations, problems = split(file)
    assert [c.key for c in conversations] == ["c0", "c1", "c3", "c4"]
    (problem,) = problems
    assert problem.place.startswith("element 3, line ")


def test_a_cut_off_array_gives_what_is_whole(tmp_path: Path, fixtures: Path) -> None:
    """An export whose download broke off gives every complete conversation."""
    whole = (fixtures / "chatgpt.json").read_text()
    file = tmp_path / "conversations.json"
    file.write_text(whole[: len(whole) - 700])
    conversations, problems = split(file)
    assert [c.key for c in conversations] == ["6a0e-bike"]
    assert len(problems) == 1


def test_a_damaged_first_conversation_does_not_hide_the_format(
    tmp_path: Path, fixtures: Path
) -> None:
    """Objects inside a damaged conversation are not taken for messages of another format."""
    text = (fixtures / "claude_ai.json").read_text()
    damaged = text.replace('"uuid": "b7c1-rota",', '"uuid" "b7c1-rota",').rstrip("] \n")
    good = {"uuid": "good", "chat_messages": [{"uuid": "g1", "sender": "human", "text": "Hi"}]}
    file = tmp_path / "conversations.json"
    file.write_text(f"{damaged},\n{json.dumps(good)}]")
    conversations, problems = split(file)
    assert [(c.source, c.key) for c in conversations] == [("claude_ai", "good")]
    assert problems


def test_wrong_types_deep_inside_cost_one_message(tmp_path: Path) -> None:
    """A message of the wrong shape is reported, and those around it go in, on the right parent."""
    nodes = {
        "a": {
            "parent": None,
            "message": {"author": {"role": "user"}, "content": {"parts": ["one"]}},
        },
        "b": {"parent": "a", "message": {"author": {"role": "user"}, "content": {"parts": [7]}}},
        "c": {"parent": "b", "message": {"author": "me", "content": {"parts": ["x"]}}},
        "d": {
            "parent": "c",
            "message": {"author": {"role": "user"}, "content": {"parts": ["two"]}},
        },
        "e": 5,
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([{"id": "k", "mapping": nodes, "create_time": "never"}]))
    (conversation,), problems = split(file)
    assert [(t.text, t.parent) for t in conversation.turns] == [("one", None), ("two", "a")]
    assert len(problems) == 4


def test_rings_and_lost_parents_lose_no_message(tmp_path: Path) -> None:
    """A tree whose parents go round in circles, or are missing, still gives every message once."""

    def node(parent: str | None, text: str) -> dict[str, object]:
        return {
            "parent": parent,
            "message": {"author": {"role": "user"}, "content": {"parts": [text]}},
        }

    mapping = {
        "a": node("b", "A"),
        "b": node("a", "B"),
        "c": node("gone", "C"),
        "d": node("d", "D"),
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([{"id": "k", "mapping": mapping, "current_node": "b"}]))
    (conversation,), _ = split(file)
    assert sorted(turn.text for turn in conversation.turns) == ["A", "B", "C", "D"]
    seen: set[str | None] = {None, "gone"}
    for turn in conversation.turns:
        assert turn.parent in seen
        seen.add(turn.key)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_unicode_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    """A byte order mark or UTF-16 makes no difference to the words."""
    file = tmp_path / "c.json"
    file.write_bytes(json.dumps([chat(1, "naïve 中文 🎉")], ensure_ascii=False).encode(encoding))
    (conversation,), problems = split(file)
    assert conversation.turns[0].text == "naïve 中文 🎉"
    assert problems == []


def test_bytes_that_are_not_utf8_are_read_and_reported(tmp_path: Path) -> None:
    """A Windows-1252 file gives its words, and the report says how they were read."""
    file = tmp_path / "c.jsonl"
    line = json.dumps({"role": "user", "text": "café – 5 €"}, ensure_ascii=False)
    file.write_bytes(f'{{"role":"user","text":"ok"}}\n{line}\n'.encode("cp1252"))
    (conversation,), (problem,) = split(file)
    assert [turn.text for turn in conversation.turns] == ["ok", "café – 5 €"]
    assert problem.place == "line 2"
    assert "3 bytes" in problem.reason


def test_lone_surrogates_and_nul_come_through(tmp_path: Path) -> None:
    """Text that JSON can write and UTF-8 cannot is kept as it is."""
    file = tmp_path / "c.jsonl"
    file.write_text(r'{"role":"user","text":"half \ud83d nul \u0000"}' + "\n")
    (conversation,), problems = split(file)
    assert conversation.turns[0].text == "half \ud83d nul \0"
    assert problems == []


def test_times_that_say_nothing_are_reported_and_filled(tmp_path: Path) -> None:
    """A message with a senseless time goes in with the time before it."""
    file = tmp_path / "c.jsonl"
    rows = [
        {"role": "user", "text": "a", "ts": "2026-01-01 10:00:00"},
        {"role": "user", "text": "b", "ts": "soon"},
        {"role": "user", "text": "c", "ts": 1e300},
        {"role": "user", "text": "d", "ts": [1]},
        {"role": "user", "text": "e"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (conversation,), problems = split(file)
    assert len(conversation.turns) == 5
    assert len({turn.ts for turn in conversation.turns}) == 1
    assert [problem.place for problem in problems] == ["line 2", "line 3", "line 4"]


def test_what_nobody_knows_is_refused_by_name_and_reported_in_a_walk(tmp_path: Path) -> None:
    """An unknown file raises when named; in a directory it is a problem beside the others."""
    (tmp_path / "recipe.json").write_text('{"flour": 2}')
    (tmp_path / "chats.json").write_text(json.dumps([chat(1)]))
    with pytest.raises(UnknownFormat):
        read(tmp_path / "recipe.json")
    with pytest.raises(UnknownFormat):
        read(tmp_path / "chats.json", "papyrus")
    with pytest.raises(InvalidInput):
        read(tmp_path / "missing.json")
    conversations, problems = split(tmp_path)
    assert len(conversations) == 1
    assert [Path(problem.path).name for problem in problems] == ["recipe.json"]


def test_a_broken_zip_file_is_a_problem(tmp_path: Path, fixtures: Path) -> None:
    """A zip file that is damaged, in its table or within a member, never raises."""
    good = tmp_path / "export.zip"
    with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(fixtures / "chatgpt.json", "conversations.json")
    data = bytearray(good.read_bytes())
    data[200:260] = b"\xff" * 60
    good.write_bytes(bytes(data))
    (tmp_path / "other.zip").write_text("no zip at all")
    conversations, problems = split(tmp_path)
    assert conversations == []
    assert len(problems) == 2


@pytest.mark.promise("import.malformed")
@pytest.mark.parametrize("form", [None, *CONVERSATION_FORMATS])
def test_broken_json_never_crashes(broken: Path, form: str | None) -> None:
    """Every document that is no JSON, as any format, gives problems or nothing, and no error."""
    conversations, problems = split(broken, form)
    assert conversations == []
    assert all(problem.reason for problem in problems)
    deep = [p for p in problems if "100000_opening_arrays" in p.path]
    assert "nested too deeply" in deep[0].reason


FIELDS = (
    "id uuid mapping parent message author role content parts type text sender chat_messages"
    " payload conversations from value turns conversation_id messages ts"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS.split()),
            inner | st.sampled_from(["user", "assistant", "message", "response_item", "text"]),
            max_size=6,
        )
    ),
    max_leaves=30,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(JSON, st.sampled_from(CONVERSATION_FORMATS), st.booleans())
def test_any_json_is_read_or_reported(
    tmp_path: Path, value: object, form: str, lines: bool
) -> None:
    """Whatever the shape of a file, a reader gives conversations and problems, never an error."""
    file = tmp_path / "any.json"
    file.write_text("\n".join([json.dumps(value)] * (3 if lines else 1)))
    items = list(read(file, form))
    assert items, "a file of which nothing is told"
    for item in items:
        assert isinstance(item, ImportedConversation | ImportProblem | ImportedElse)
        assert not isinstance(item, ImportProblem) or not item.reason.startswith(FAILED)


def test_a_file_that_nobody_knows_is_told_what_would_be(tmp_path: Path) -> None:
    """The error lists what is recognised, and the lines that it shows are themselves read."""
    (tmp_path / "recipe.json").write_text('{"flour": 2}')
    with pytest.raises(UnknownFormat) as refused:
        read(tmp_path / "recipe.json")
    said = str(refused.value)
    assert all(name in said for name in ("ChatGPT", "Claude.ai", "Codex", "ShareGPT", "Neo"))
    shown = [line for line in said.splitlines() if line.startswith("{")]
    (tmp_path / "shown.jsonl").write_text("\n".join(shown))
    (conversation,), problems = split(tmp_path / "shown.jsonl")
    assert (len(conversation.turns), problems) == (2, [])
