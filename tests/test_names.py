"""Names are one however they were typed: NFC or NFD, small letters or capitals, here or on disk."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.conftest import Clock

from anaphora import Memory, NewMemory
from anaphora.errors import InvalidInput
from anaphora.testing import server_app

Form = Callable[[str], str]


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


BOTH = pytest.mark.parametrize(("first", "second"), [(nfc, nfd), (nfd, nfc)], ids=["c-d", "d-c"])
WORDS = pytest.mark.parametrize("word", ["café", "Größe", "naïve", "España", "ガギグ", "한글"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.open(home, clock=clock, embedder="hashing") as opened:
        yield opened


@BOTH
@WORDS
def test_a_path_is_one_in_every_form(
    memory: Memory, clock: Clock, word: str, first: Form, second: Form
) -> None:
    """A new value supersedes, the same one reinforces, and history has both under either form."""
    old = memory.remember("It opens at 7.", path=first(f"{word}.opens"))
    clock.advance(days=1)
    assert memory.remember("It opens at 7.", path=second(f"{word}.opens")).action == "reinforced"
    new = memory.remember("It opens at 8.", path=second(f"{word}.opens"))
    assert new.action == "superseded"
    for form in (first, second):
        assert [one.id for one in memory.history(form(f"{word}.opens"))] == [old.id, new.id]
        assert [one.id for one in memory.list({"path": form(f"{word}.opens")})] == [new.id]


@BOTH
@WORDS
def test_filters_compare_names_in_one_form(
    memory: Memory, word: str, first: Form, second: Form
) -> None:
    """Listing, recalling, searching and forgetting by category, tag, path, payload and source."""
    given = first(word)
    payload = {"place": given, given: 1, "many": [given]}
    kept = memory.remember(
        "It opens at 7.",
        path=f"{given}.opens",
        category=given,
        tags=[given],
        source=given,
        payload=payload,
    )
    asked = second(word)
    filters: list[dict[str, Any]] = [
        {"category": asked},
        {"category": {"in": [asked]}},
        {"tags": {"contains": asked}},
        {"tags": [asked]},
        {"path": {"startswith": asked}},
        {"source": asked},
        {"payload.place": asked},
        {"payload.many": {"contains": asked}},
        {f"payload.{asked}": 1},
        {"NOT": {"category": {"ne": asked}}},
    ]
    for one in filters:
        assert [record.id for record in memory.list(one)] == [kept.id], one
        assert [hit.id for hit in memory.recall("when does it open?", filters=one)] == [kept.id]
    assert [hit.id for hit in memory.search("it opens", tags=[asked])] == [kept.id]
    assert memory.get(kept.id).payload == payload, "what is kept beside it is nobody's name"
    assert memory.forget(filters={"category": asked}).count == 1


@BOTH
@WORDS
def test_a_conversation_is_one_in_every_form(
    memory: Memory, word: str, first: Form, second: Form
) -> None:
    """Turns under either form are one thread; reading, titles, redaction, deletion find it."""
    memory.conversations.append(first(word), "user", "We chose oak.", speaker=first(word))
    memory.conversations.append(second(word), "user", "We chose ash.", speaker=second(word))
    listed = memory.conversations.list()
    assert [one.conversation_id for one in listed] == [nfc(word)]
    for form in (first, second):
        thread = memory.conversations.get(form(word))
        assert thread is not None
        assert [turn.text for turn in thread.turns] == ["We chose oak.", "We chose ash."]
        assert {turn.speaker for turn in thread.turns} == {nfc(word)}
        found = memory.recall_conversation(form(word), "what did we choose?", speaker=form(word))
        assert len(found) == 2
        assert memory.resolve_id(form(word), "conversation") == nfc(word)
    assert memory.conversations.set_title(second(word), "Wood")
    assert memory.conversations.redact(second(word), 0)
    assert memory.conversations.delete(second(word))
    assert not memory.conversations.list()


@BOTH
@WORDS
def test_a_namespace_is_one_in_every_form(
    memory: Memory, home: Path, word: str, first: Form, second: Form
) -> None:
    """One namespace, however it is opened, asked for over HTTP by a token, exported, deleted."""
    kept = memory.scoped(first(word)).remember("One.")
    assert [one.id for one in memory.scoped(second(word)).list()] == [kept.id]
    assert memory.namespaces() == ("default", nfc(word))
    with Memory.open(home, namespace=second(word), embedder="hashing") as again:
        assert [one.id for one in again.list()] == [kept.id]
    secret = memory.tokens.create("one", namespaces=[first(word)]).secret
    asks = {"Anaphora-Namespace": second(word).encode(), "Authorization": f"Bearer {secret}"}
    app = server_app(memory, page=None)
    with TestClient(app, base_url="http://127.0.0.1:7411") as client:
        told = client.get("/v1/memories", headers=asks)  # type: ignore[arg-type]
    assert [one["id"] for one in told.json()["items"]] == [kept.id]
    assert memory.delete_namespace(second(word)).namespace == nfc(word)
    assert memory.namespaces() == ("default",)


@pytest.mark.skipif(sys.platform == "darwin", reason="its disks take both forms for one name")
def test_threads_of_another_program_stand(memory: Memory, home: Path) -> None:
    """A file whose name is in NFD is found by either form, goes on, and stays what it is."""
    memory.conversations.append("other", "user", "Begun.")
    folder = memory.conversations.directory
    assert folder is not None
    data = json.loads((folder / "other.json").read_text())
    data["conversationId" if "conversationId" in data else next(iter(data))] = nfd("réunion")
    (folder / f"{nfd('réunion')}.json").write_text(json.dumps(data, ensure_ascii=False))
    for form in (nfc, nfd):
        memory.conversations.append(form("réunion"), "user", f"{form.__name__} is said.")
        assert len(memory.recall_conversation(form("réunion"), "what is said?")) >= 1
    ids = {one.conversation_id for one in memory.conversations.list()}
    assert ids == {"other", nfd("réunion")}
    thread = memory.conversations.get(nfc("réunion"))
    assert thread is not None
    assert len(thread.turns) == 3
    # Another program's file in the other form is another thread, and each is found by its own.
    (folder / f"{nfc('réunion')}.json").write_bytes((folder / "other.json").read_bytes())
    for form, count in ((nfd, 3), (nfc, 1)):
        thread = memory.conversations.get(form("réunion"))
        assert thread is not None
        assert len(thread.turns) == count


@BOTH
def test_an_export_comes_into_the_thread_that_stands(
    memory: Memory, tmp_path: Path, clock: Clock, first: Form, second: Form
) -> None:
    """Memories and conversations of an export in another form are those that are here."""
    memory.remember("It opens at 7.", path="café.opens")
    memory.conversations.append("réunion", "user", "We chose oak.")
    file = tmp_path / "export.jsonl"
    memory.export(file)
    other = tmp_path / "other.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    other.write_text("".join(first(json.dumps(x, ensure_ascii=False)) + "\n" for x in lines))
    with Memory.open(tmp_path / "there", clock=clock, embedder="hashing") as there:
        there.remember("It opens at 6.", path=second("café.opens"))
        there.conversations.append(second("réunion"), "user", "We chose oak.", ts=clock())
        there.import_(other)
        assert len(there.conversations.list()) == 1
        assert len(list(there.list())) == 1
        assert len(there.history("café.opens")) == 2


CASES = pytest.mark.parametrize(
    ("path", "variants"),
    [
        ("user.editor", ["User.Editor", "USER.EDITOR"]),
        ("User.Home", ["user.home", "USER.HOME"]),
        ("größe.schuh", ["Größe.Schuh", nfd("GRÖSSE.schuh".replace("SS", "ß"))]),
    ],
)


@CASES
def test_a_path_in_another_case_is_the_one_that_stands(
    memory: Memory, clock: Clock, path: str, variants: list[str]
) -> None:
    """One value stands, under the path that was there; who keeps it is told."""
    assert memory.remember("The first one.", path=path).notices == ()
    for number, variant in enumerate(variants):
        clock.advance(days=1)
        done = memory.remember(f"Value {number}.", path=variant)
        assert done.action == "superseded"
        assert len(done.notices) == 1
        assert path in done.notices[0]
        assert nfc(variant) in done.notices[0]
    assert [one.path for one in memory.list()] == [path]
    assert len(memory.history(path)) == len(memory.history(variants[0])) == 1 + len(variants)
    many = memory.remember_many([{"text": "Again another.", "path": variants[0]}])
    assert many[0].action == "superseded"
    assert many[0].notices


def test_other_words_are_other_paths(memory: Memory) -> None:
    """Case alone is looked past: neither accents nor ß, and what is near is no prefix."""
    paths = ["masse", "maße", "mässe", "user", "user.a"]
    for path in paths:
        memory.remember(f"Of {path}.", path=path)
    assert {one.path for one in memory.list()} == set(paths)


@pytest.mark.promise("remember.bad_input")
@pytest.mark.parametrize("path", ["user.editor.", "user.", "user.editor..", "."])
def test_a_path_that_ends_in_a_dot_is_refused(memory: Memory, path: str) -> None:
    """It is a slip, and would be another path than the one that was meant."""
    with pytest.raises(InvalidInput, match=r"path: must not end with a dot"):
        memory.remember("The editor is vim.", path=path)
    kept = memory.remember("The editor is vim.", path="user.editor")
    with pytest.raises(InvalidInput, match="path"):
        memory.update(kept.id, path=path)
    assert len(list(memory.list())) == 1


def test_what_an_adapter_puts_keeps_its_case(memory: Memory) -> None:
    """A store of keys gives back each of them: there "A" and "a" are two."""
    for path in ("notes/A", "notes/a", "notes/a."):
        memory.remember_many([NewMemory(f"Of {path}.", path=path, dedupe=False)])
    assert {one.path for one in memory.list()} == {"notes/A", "notes/a", "notes/a."}
    assert [one.text for one in memory.history("notes/a")] == ["Of notes/a."]


@BOTH
@WORDS
def test_a_project_is_one_in_every_form(
    memory: Memory, tmp_path: Path, word: str, first: Form, second: Form
) -> None:
    """Its name is found in either form, for its notes too, and no other project can have it."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text("# Wood\n\nWe chose oak.\n")
    memory.index_project(tmp_path / "one", name=first(word))
    with pytest.raises(InvalidInput, match="name"):
        memory.index_project(tmp_path / "other", name=second(word))
    assert memory.recall_context("oak", project=second(word)).projects
    memory.observe("Oak is dear.", project=first(word))
    assert [one.text for one in memory.notes(project=second(word))] == ["Oak is dear."]
    assert len(memory.search("oak", project=second(word)).hits) >= 1
