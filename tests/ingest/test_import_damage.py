"""Damaged files and huge ones: each is read or reported, and imports stay within their bounds."""

from __future__ import annotations

import json
import os
import socket
import tracemalloc
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ingest.imported import read

from anaphora import ImportedConversation, ImportProblem, Memory
from anaphora.errors import DamagedBackup, InvalidInput, StoreError, UnknownFormat
from anaphora.features.importing.formats.base import FAILED
from anaphora.features.importing.values import ImportedElse
from anaphora.ingest.bounds import Bounds
from anaphora.ops.backup.archive import MANIFEST, opened
from anaphora.testing import run_cli

pytestmark = pytest.mark.internal

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
    """An unknown file is a problem beside the others; a name that is wrong raises."""
    (tmp_path / "recipe.jsonl").write_text('{"flour": 2}')
    (tmp_path / "chats.json").write_text(json.dumps([chat(1)]))
    with pytest.raises(UnknownFormat):
        read(tmp_path / "chats.json", "papyrus")
    with pytest.raises(InvalidInput):
        read(tmp_path / "missing.json")
    conversations, problems = split(tmp_path)
    assert len(conversations) == 1
    assert [Path(problem.path).name for problem in problems] == ["recipe.jsonl"]


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
    """The command lists what is recognised, and the lines that it shows are themselves read."""
    (tmp_path / "recipe.jsonl").write_text('{"flour": 2}')
    done = run_cli("import", tmp_path / "recipe.jsonl", home=tmp_path / "home")
    assert done.exit_code == 2
    names = "ChatGPT Claude.ai Codex ShareGPT Neo mem0 basic-memory claude-mem Zep Letta Takeout"
    assert all(name in done.stderr for name in names.split())
    shown = [line for line in done.stderr.splitlines() if line.startswith("{")]
    (tmp_path / "shown.jsonl").write_text("\n".join(shown))
    (conversation,), problems = split(tmp_path / "shown.jsonl")
    assert (len(conversation.turns), problems) == (2, [])


SMALL = Bounds(
    characters=1_000, parts=200, unpacked=1 << 20, messages=50, conversations=20, problems=10
)
MEGABYTE = b"a" * (1 << 20)


def taken(
    path: Path, bounds: Bounds = SMALL, form: str | None = None
) -> tuple[list[str], list[ImportProblem]]:
    items = list(read(path, form, bounds))
    turns = [t.text for i in items if isinstance(i, ImportedConversation) for t in i.turns]
    return turns, [i for i in items if isinstance(i, ImportProblem)]


def line(text: str, role: str = "user") -> str:
    return json.dumps({"role": role, "text": text}) + "\n"


def thread(number: int, text: str) -> dict[str, object]:
    said = [{"from": "human", "value": text}, {"from": "gpt", "value": f"answer {number}"}]
    return {"id": f"c{number}", "conversations": said}


def bomb(path: Path, megabytes: int = 300) -> Path:
    """A zip file of a few hundred kilobytes with one very long line, beside an honest member."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("good.jsonl", line("an honest turn"))
        with archive.open("long.jsonl", "w") as member:
            member.write(b'{"role":"user","text":"')
            for _ in range(megabytes):
                member.write(MEGABYTE)
            member.write(b'"}\n')
    return path


@pytest.mark.promise("import.bounded")
def test_what_a_zip_file_would_become_is_bounded_and_the_rest_goes_in(tmp_path: Path) -> None:
    """A member of hundreds of megabytes out of some kilobytes is named, and never unpacked."""
    path = bomb(tmp_path / "export.zip")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.import_(path, embed=False)
        tracemalloc.start()
        report = memory.import_(path, embed=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (report.conversations, report.known) == (1, 1)
    (problem,) = report.problems
    assert (problem.path, problem.place) == (f"{path}/long.jsonl", "file")
    assert "would become 314,572,8" in problem.reason
    assert peak < 32 << 20


@pytest.mark.promise("import.bounded")
def test_a_long_line_is_left_out_and_the_others_go_in(tmp_path: Path) -> None:
    """A line beyond the bound costs itself alone, at the end of a file and without one too."""
    path = tmp_path / "log.jsonl"
    for end in ("\n", ""):
        path.write_text(line("one") + line("x" * 90_000) + line("two") + line("y" * 900).rstrip())
        turns, problems = taken(path)
        assert turns == ["one", "two", "y" * 900]
        assert [(p.path, p.place) for p in problems] == [(str(path), "line 2")]
        path.write_text(line("one") + line("x" * 90_000).rstrip() + end)
        turns, problems = taken(path)
        assert (turns, [p.place for p in problems]) == (["one"], ["line 2"])


@pytest.mark.promise("import.bounded")
@pytest.mark.parametrize("indent", [None, 1])
def test_a_long_element_is_left_out_and_the_others_go_in(
    tmp_path: Path, indent: int | None
) -> None:
    """A conversation beyond the bound is passed over as it is read, whatever its strings hold."""
    path = tmp_path / "conversations.json"
    hostile = '\\"]}, {"id": "c9", "conversations": [{"from": "human", "value": "no"}]}' * 3_000
    chats = [
        thread(1, "one"),
        thread(2, hostile),
        thread(3, "three"),
        thread(4, "z" * 70_000),
    ]
    path.write_text(json.dumps(chats, indent=indent))
    turns, problems = taken(path)
    assert turns == ["one", "answer 1", "three", "answer 3"]
    assert [p.place.split(",")[0] for p in problems] == ["element 2", "element 4"]
    assert all("1,000 characters" in p.reason for p in problems)


@pytest.mark.promise("import.bounded")
def test_too_many_values_in_one_are_left_out(tmp_path: Path) -> None:
    """A line or an element that is made of very many values is not built."""
    path = tmp_path / "crowd.jsonl"
    bounds = Bounds(parts=10_000)
    crowd = json.dumps({"role": "user", "text": "x", "more": [{}] * 200_000})
    path.write_text(line("one") + crowd + "\n" + line("two"))
    turns, problems = taken(path, bounds)
    assert (turns, [p.place for p in problems]) == (["one", "two"], ["line 2"])
    elements = tmp_path / "conversations.json"
    chats = [
        thread(1, "one"),
        thread(2, "two") | {"more": [{}] * 200_000},
        thread(3, "three"),
    ]
    elements.write_text(json.dumps(chats))
    turns, problems = taken(elements, bounds)
    assert turns == ["one", "answer 1", "three", "answer 3"]
    assert [p.place.split(",")[0] for p in problems] == ["element 2"]


PIECES = st.sampled_from(["a", '"', "\\", "{", "}", "[", "]", ",", "\n", "é", "🎉", "\\u0041", " "])
TEXTS = st.builds(lambda piece, times: piece * times, PIECES, st.integers(1, 3_000)) | st.text()


@pytest.mark.promise("import.bounded")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=4), min_size=1, max_size=8), st.booleans())
def test_what_is_within_the_bound_goes_in_whatever_lies_beside_it(
    tmp_path: Path, said: Sequence[Sequence[str]], ascii_only: bool
) -> None:
    """Of any array, the elements within the bound come out whole, each other one is reported."""
    chats = [thread(number, "|".join(texts) + "!") for number, texts in enumerate(said)]
    written = [json.dumps(one, ensure_ascii=ascii_only) for one in chats]
    # Read-ahead is 64 Ki characters: only elements beyond that are ever too long or not.
    pad = " " * 70_000
    path = tmp_path / "conversations.json"
    path.write_text(f"[{pad}{f',{pad}'.join(written)}]", encoding="utf-8", errors="surrogatepass")
    bounds = Bounds(characters=1_000)
    turns, problems = taken(path, bounds, "sharegpt")
    lost = {p.place.split(",")[0] for p in problems}
    for number, one in enumerate(chats, start=1):
        value = one["conversations"][0]["value"]  # type: ignore[index]
        if f"element {number}" not in lost:
            assert value in turns
        else:
            assert len(written[number - 1]) > bounds.characters
    assert len(lost) == len(problems)


NESTED = st.recursive(
    st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.promise("import.bounded")
@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(NESTED, st.sampled_from([1, 30, 7_000]), st.booleans())
def test_what_is_passed_over_ends_where_the_value_ends(
    tmp_path: Path, nested: object, times: int, spaced: bool
) -> None:
    """Conversations beside one that is beyond the bounds come out whole, whatever nests in it."""
    crowd = thread(2, "x" * 2_000) | {"more": [nested] * times}
    pad = " " * 70_000 if spaced else ""
    written = json.dumps([thread(1, "one"), crowd, thread(3, "three")]).replace(
        ', {"id', f',{pad}{{"id'
    )
    path = tmp_path / "conversations.json"
    path.write_text(written, encoding="utf-8", errors="surrogatepass")
    turns, _ = taken(path, Bounds(characters=1_000, parts=1_000), "sharegpt")
    assert [turn for turn in turns if "x" * 99 not in turn][:1] == ["one"]
    assert turns[-2:] == ["three", "answer 3"]


@pytest.mark.promise("import.bounded")
def test_messages_conversations_and_problems_of_a_file_are_bounded(tmp_path: Path) -> None:
    """What is kept of every message is kept of so many, and the rest is counted, not listed."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line(f"turn {n}") for n in range(80)))
    turns, problems = taken(path)
    assert len(turns) == SMALL.messages
    assert problems[0].place == f"line {SMALL.messages + 1}"
    assert (len(problems), problems[-1].place) == (SMALL.problems + 1, "further on")
    assert problems[-1].reason.startswith("20 more problems")
    rows = [{"role": "user", "text": "a", "conversation_id": f"c{n}"} for n in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    turns, problems = taken(path)
    assert len(turns) == SMALL.conversations
    assert len(problems) == 10


@pytest.mark.promise("import.bounded")
@pytest.mark.parametrize("form", ["jsonl", "claude_code", "codex"])
def test_a_long_conversation_comes_in_pieces_that_go_on(tmp_path: Path, form: str) -> None:
    """More than is held at once is given in pieces, and the thread is one and in order."""
    rows: list[dict[str, object]] = []
    for n in range(120):
        role, text = ("user", "assistant")[n % 2], f"turn {n}"
        if form == "codex":
            kind = "input_text" if role == "user" else "output_text"
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            rows.append({"type": "response_item", "payload": item})
        elif form == "claude_code":
            message = {"role": role, "content": text}
            above = f"u{n - 1}" if n else None
            known = {"uuid": f"u{n}", "parentUuid": above, "sessionId": "s"}
            rows.append({"type": role, "message": message, **known})
        else:
            rows.append({"role": role, "text": text})
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = [i for i in read(path, form, Bounds(characters=40_000)) if i.turns]  # type: ignore[union-attr]
    assert len(items) > 5
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        conversations = [i for i in items if isinstance(i, ImportedConversation)]
        report = memory.import_(conversations, embed=False)
        assert (report.added, report.branches) == (120, 0)
        (summary,) = memory.conversations.list()
        thread = memory.conversations.get(summary.conversation_id)
        assert thread is not None
        assert [turn.text for turn in thread.turns] == [f"turn {n}" for n in range(120)]


@pytest.mark.promise("import.bounded")
def test_words_of_a_file_do_not_make_a_problem_long(tmp_path: Path) -> None:
    """A name of a hundred kilobytes in a file is not repeated whole by what is said of it."""
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"id": "c", "mapping": {"n" * 100_000: 5}}]))
    _, problems = taken(path, Bounds())
    assert problems
    assert all(len(p.place) <= 300 and len(p.reason) <= 300 for p in problems)


@pytest.mark.promise("import.bounded")
def test_a_zip_file_is_opened_as_often_with_many_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many members there are, the list of them is read as often as for one."""
    real, counts = zipfile.ZipFile, []

    class Counted(real):  # type: ignore[misc, valid-type]
        def __init__(self, *given: object, **named: object) -> None:
            counts.append(1)
            super().__init__(*given, **named)

    looks = []
    for members in (1, 300):
        path = tmp_path / f"{members}.zip"
        with real(path, "w") as archive:
            for n in range(members):
                archive.writestr(f"s{n}.jsonl", line(f"turn {n}"))
        counts.clear()
        monkeypatch.setattr(zipfile, "ZipFile", Counted)
        turns, problems = taken(path)
        monkeypatch.undo()
        assert (len(turns), problems) == (members, [])
        looks.append(len(counts))
    assert looks[0] == looks[1] <= 2


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Path]:
    """A folder with what is no file among what is."""
    folder = tmp_path / "odd"
    folder.mkdir()
    os.mkfifo(folder / "pipe.json")
    os.mkfifo(folder / "pipe.zip")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "good.jsonl").write_text(line("an honest turn"))
    (folder / "linked.jsonl").symlink_to(folder / "good.jsonl")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        listening.bind("socket.json")
        os.chdir(here)
        yield folder


@pytest.mark.promise("import.regular_files")
def test_pipes_devices_and_sockets_are_reported_and_never_waited_for(odd: Path) -> None:
    """In a folder they are problems, and links are followed as ever."""
    turns, problems = taken(odd)
    assert turns == ["an honest turn"] * 2
    assert {(Path(p.path).name, p.reason) for p in problems} == {
        ("pipe.json", "it is a named pipe, not a regular file"),
        ("pipe.zip", "it is a named pipe, not a regular file"),
        ("socket.json", "it is a socket, not a regular file"),
        ("zero.jsonl", "it is a device, not a regular file"),
    }


def said_of(memory: Memory, path: Path, form: str | None) -> str:
    """What an import says of a file that cannot be read, as an error or as its only problem."""
    try:
        (problem,) = memory.import_(path, format=form).problems
    except (UnknownFormat, StoreError) as error:
        return str(error)
    return problem.reason


@pytest.mark.promise("import.regular_files")
@pytest.mark.parametrize("form", [None, "chatgpt", "sharegpt", "anaphora"])
def test_what_is_no_file_is_refused_by_name(odd: Path, tmp_path: Path, form: str | None) -> None:
    """A pipe or device that is named itself ends at once, in our words."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for name in ("pipe.json", "pipe.zip", "zero.jsonl", "socket.json"):
            assert "not a regular file" in said_of(memory, odd / name, form)
    with pytest.raises(StoreError, match="not a regular file"):
        Memory.restore(odd / "pipe.zip", tmp_path / "other")


@pytest.mark.promise("import.regular_files")
def test_files_that_say_they_are_empty_are_not_read(tmp_path: Path) -> None:
    """A file of the kernel that would wait for its reader is an empty one."""
    (item,) = read("/proc/kmsg")
    assert isinstance(item, ImportedElse)
    assert (item.kind, item.names) == ("empty file", ("kmsg",))


@pytest.mark.promise("import.bounded")
def test_a_backup_is_not_unpacked_beyond_what_it_says(tmp_path: Path) -> None:
    """A member longer than the manifest has it, or a manifest that is packed, is refused."""
    said = {"anaphora": "backup", "version": 1}
    said |= {"members": {"anaphora.db": {"sha256": "0" * 64, "bytes": 10}}}
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(said))
        archive.writestr("anaphora.db", MEGABYTE * 40)
    written: list[int] = []
    with pytest.raises(DamagedBackup), opened(path) as unpacker:
        unpacker.read("anaphora.db", lambda data: written.append(len(data)))
    assert sum(written) <= 1 << 20
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(said | {"blank": " " * (70 << 20)}))
    with pytest.raises(DamagedBackup, match="no valid manifest"), opened(path):
        pass


@pytest.mark.promise("import.bounded")
def test_a_line_of_an_export_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line beyond any turn's length is left out with its number, and the others go in."""
    monkeypatch.setattr("anaphora.ops.transfer.load._MOST_LINE", 5_000)
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.remember("The heron is grey.")
        memory.export(tmp_path / "export.jsonl")
        whole = (tmp_path / "export.jsonl").read_bytes().splitlines(keepends=True)
        changed = tmp_path / "changed.jsonl"
        changed.write_bytes(whole[0] + b" " * 100_000 + b"\n" + b"".join(whole[1:]).rstrip())
        other = memory.scoped("other")
        report = other.import_(changed)
        assert [p.place for p in report.problems] == ["line 2"]
        assert [one.text for one in other.list()] == ["The heron is grey."]
