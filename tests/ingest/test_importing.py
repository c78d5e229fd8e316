"""Importing into threads: every message once, however often and from however many processes."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.commands import python
from tests.sqlite_driver import dbapi2

from anaphora import ImportedConversation, ImportedTurn
from anaphora.errors import InvalidInput, StoreError, UnknownFormat

from .conftest import Home


def line(*names: str, key: str = "k", title: str = "") -> ImportedConversation:
    """A conversation without branches: each message answers the one before."""
    parents = (None, *names)
    turns = tuple(
        ImportedTurn(name, parent, "user", f"text of {name}")
        for name, parent in zip(names, parents, strict=False)
    )
    return ImportedConversation("test", key, f"test_{key}", turns, title)


def tree(*pairs: tuple[str, str | None]) -> ImportedConversation:
    turns = tuple(ImportedTurn(name, parent, "user", f"text of {name}") for name, parent in pairs)
    return ImportedConversation("test", "k", "test_k", turns)


def names(said: list[tuple[str, str]]) -> str:
    return "".join(text.removeprefix("text of ") for _, text in said)


@pytest.mark.promise("import.idempotent")
def test_the_same_files_again_add_nothing(home: Any, fixtures: Path) -> None:
    """A second import of every format finds each turn known, and changes no file."""
    first = home.take(fixtures)
    before = home.everything()
    second = home.take(fixtures)
    assert first.added > 30
    assert first.problems == ()
    assert (second.added, second.known) == (0, first.added)
    assert second.conversations == first.conversations
    assert second.left_out == first.left_out
    assert second.branches == 0
    assert set(second.conversation_ids) == set(first.conversation_ids) == set(before)
    assert home.everything() == before


@pytest.mark.promise("import.idempotent")
def test_a_newer_export_adds_only_what_is_new(home: Any, tmp_path: Path, fixtures: Path) -> None:
    """New turns of known chats and new chats come in, even when another branch is on show now."""
    file = tmp_path / "conversations.json"
    shutil.copy(fixtures / "chatgpt.json", file)
    first = home.take(file)
    chats = json.loads(file.read_text())
    tomato = chats[1]
    said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Thanks!"]}}
    tomato["mapping"]["u3"] = {"id": "u3", "parent": "a2", "children": [], "message": said}
    tomato["current_node"] = "u3"
    file.write_text(json.dumps([{**chats[0], "id": "new", "conversation_id": "new"}, *chats]))
    second = home.take(file)
    assert (second.added, second.known) == (3, first.added)
    assert second.branches == 0
    assert home.said("chatgpt_6a0d-tomato~1")[-1] == ("user", "Thanks!")
    assert len(home.said("chatgpt_6a0d-tomato")) == 6


@pytest.mark.promise("import.branches")
def test_branches_are_threads_of_what_differs(home: Any, fixtures: Path) -> None:
    """A branch holds its own turns alone, and a note says where it leaves."""
    report = home.take(fixtures / "chatgpt.json")
    assert report.branches == 1
    branch = home.said("chatgpt_6a0d-tomato~1")
    assert [role for role, _ in branch] == ["user", "assistant"]
    notes = home.origins()
    note, main = notes["chatgpt_6a0d-tomato~1"], notes["chatgpt_6a0d-tomato"]
    assert (note["branch_of"], note["branch_at"]) == ("chatgpt_6a0d-tomato", 1)
    assert (main["source"], main["source_key"]) == ("chatgpt", "6a0d-tomato")
    assert "branch_of" not in main


@pytest.mark.promise("import.branches")
def test_a_branch_may_leave_a_branch_or_the_very_start(home: Any) -> None:
    """Branches of branches and second first messages are threads too."""
    home.take(tree(("a", None), ("b", "a"), ("c", "a"), ("d", "c"), ("e", "c"), ("f", None)))
    found = {name: names(said) for name, said in home.everything().items()}
    assert found == {"test_k": "ab", "test_k~1": "cd", "test_k~2": "e", "test_k~3": "f"}
    notes = home.origins()
    assert (notes["test_k~2"]["branch_of"], notes["test_k~2"]["branch_at"]) == ("test_k~1", 0)
    assert notes["test_k~3"]["branch_of"] == "test_k"
    assert "branch_at" not in notes["test_k~3"]


def test_titles_speakers_and_times_are_kept(home: Any, fixtures: Path) -> None:
    """What the source says of a chat and its turns is in the store."""
    home.take(fixtures)
    assert home.store.get("chatgpt_6a0e-bike").title == "Bicycle tube"
    ferry = home.store.get("jsonl_plain")
    assert [turn.speaker for turn in ferry.turns] == [None, None, "Noor", "Sam", None]
    assert {turn.source for turn in ferry.turns} == {"jsonl"}
    rent = home.store.get("conv_5d21c0ffee5d21c0ffee")
    assert (rent.title, rent.turns[1].intent_id) == ("Rent & deposit", "int_7")
    assert rent.turns[1].ts_text == "2026-01-05T09:00:04.5Z"


def test_a_title_that_was_set_here_is_kept(home: Any) -> None:
    """A newer export does not undo the title that the user gave."""
    home.take(line("a", title="Theirs"))
    home.store.set_title("test_k", "Mine")
    home.take(line("a", "b", title="Theirs"))
    assert home.store.get("test_k").title == "Mine"


def test_edited_messages_are_kept_in_both_versions(home: Any) -> None:
    """A source that changes the words under one id loses neither version, and nothing doubles."""
    old = line("a", "b")
    new = replace(old, turns=(old.turns[0], replace(old.turns[1], text="text of B")))
    home.take(old)
    assert home.take(new).added == 1
    assert home.take(new).added == 0
    assert home.take(old).added == 0
    assert sorted(map(names, home.everything().values())) == ["B", "ab"]


def test_the_agent_may_go_on_in_an_imported_thread(home: Any) -> None:
    """Turns appended here stay where they are; newer ones of the source come beside them."""
    home.take(line("a", "b"))
    home.store.append("test_k", "user", "text of x")
    home.take(line("a", "b", "c"))
    home.take(line("a", "b", "c", "d"))
    assert {k: names(v) for k, v in home.everything().items()} == {
        "test_k": "abx",
        "test_k~1": "cd",
    }


@pytest.mark.promise("import.forgotten")
def test_what_was_redacted_stays_redacted(home: Any) -> None:
    """A redacted turn is not imported again, its followers are, and `again` brings it back."""
    home.take(line("a", "b"))
    home.store.redact("test_k", 1)
    report = home.take(line("a", "b", "c"))
    assert (report.added, report.known, report.forgotten) == (1, 1, 1)
    assert names(home.said("test_k")) == "a[redacted]c"
    brought = home.take(line("a", "b", "c"), again=True)
    assert (brought.added, brought.forgotten) == (1, 0)
    assert names(home.said("test_k~1")) == "b"
    assert home.take(line("a", "b", "c")).added == 0


@pytest.mark.promise("import.forgotten")
def test_what_was_deleted_stays_deleted(home: Any) -> None:
    """A deleted chat does not come back; what is new in it does, and stays known."""
    home.take(line("a", "b"))
    home.store.delete("test_k")
    assert home.take(line("a", "b")).forgotten == 2
    assert home.everything() == {}
    report = home.take(line("a", "b", "c", "d"))
    assert (report.added, report.forgotten) == (2, 2)
    again = home.take(line("a", "b", "c", "d"))
    assert (again.added, again.known, again.forgotten) == (0, 2, 2)
    back = home.take(line("a", "b", "c", "d"), again=True)
    assert back.added == 2
    assert sorted(map(names, home.everything().values())) == ["ab", "cd"]


def test_an_identity_without_its_turn_is_not_believed(home: Any, tmp_path: Path) -> None:
    """A crash after the identities were written and before the file was loses no turn."""
    home.take(line("a"))
    with Home(tmp_path / "whole") as whole:
        whole.take(line("a", "b", "c"))
    with closing(dbapi2.connect(str(tmp_path / "home" / "anaphora.db"))) as truth:
        truth.execute("ATTACH ? AS theirs", (str(tmp_path / "whole" / "anaphora.db"),))
        truth.execute(
            "INSERT INTO main.turn_note SELECT * FROM theirs.turn_note WHERE position IN (1, 2)"
        )
        truth.commit()
    # Meanwhile another turn took the place of the first that never came.
    home.store.append("test_k", "user", "text of x")
    assert home.take(line("a", "b", "c")).added == 2
    assert home.take(line("a", "b", "c")).added == 0
    assert sorted("".join(map(names, home.everything().values()))) == ["a", "b", "c", "x"]


def test_turns_that_are_there_already_are_adopted(home: Any, fixtures: Path) -> None:
    """Threads of Neo imported where they lie, or after the sidecar was lost, do not double."""
    thread = json.loads((fixtures / "neo" / "conv_5d21c0ffee5d21c0ffee.json").read_text())
    home.store.append(thread["conversation_id"], "user", thread["turns"][0]["text"])
    report = home.take(fixtures / "neo")
    assert (report.known, report.added) == (1, 1)
    assert len(home.said(thread["conversation_id"])) == 2
    assert home.take(fixtures / "neo").known == 2


def test_a_lost_sidecar_doubles_nothing(tmp_path: Path, fixtures: Path) -> None:
    """With the database gone, importing again finds every turn in its thread."""
    place = tmp_path / "home"
    with Home(place) as home:
        first = home.take(fixtures)
    for file in place.glob("anaphora.db*"):
        file.unlink()
    with Home(place) as home:
        second = home.take(fixtures)
    assert (second.added, second.known) == (0, first.added)


def test_a_mistake_in_a_name_imports_nothing(home: Any, tmp_path: Path, fixtures: Path) -> None:
    """Paths and formats are looked at before the first conversation is written."""
    for sources, form, error in (
        ([fixtures, tmp_path / "none"], None, InvalidInput),
        ([fixtures], "papyrus", UnknownFormat),
    ):
        with pytest.raises(error):
            home.take(*sources, format=form)
    assert home.everything() == {}


def test_a_conversation_with_an_impossible_id_costs_only_itself(home: Any) -> None:
    """One that the store refuses is a problem, and the next one goes in."""
    bad = replace(line("a", key="bad"), conversation_id="../up")
    report = home.take(bad, line("a", key="good"))
    assert (report.added, len(report.problems)) == (1, 1)


def test_progress_moves_to_the_end_of_every_file(home: Any, fixtures: Path) -> None:
    """The callback gets bytes read of the file's size, growing, and ends at the whole."""
    calls: list[tuple[str, int, int]] = []
    home.take(fixtures, progress=lambda *call: calls.append(call))
    labels = dict.fromkeys(label for label, _, _ in calls)
    assert len(labels) == 12
    for label in labels:
        steps = [(done, total) for name, done, total in calls if name == label]
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert steps[-1][0] == steps[-1][1] == steps[0][1]


def test_a_long_log_comes_in_pieces_that_go_on(home: Any, tmp_path: Path) -> None:
    """A log too long to be held at once is still one conversation, in order, and known again."""
    file = tmp_path / "long.jsonl"
    with file.open("w") as out:
        for n in range(20_500):
            out.write(json.dumps({"role": "user", "text": f"turn {n}"}) + "\n")
    report = home.take(file)
    assert (report.conversations, report.added, report.branches) == (1, 20_500, 0)
    assert [text for _, text in home.said("jsonl_long")] == [f"turn {n}" for n in range(20_500)]
    assert home.take(file).known == 20_500


def test_a_place_that_cannot_be_locked_is_a_store_error(home: Any) -> None:
    """What the disk refuses comes out as a typed error, not as the system's own."""
    conversations = home.memory.home / "conversations"
    conversations.mkdir(parents=True)
    (conversations / ".locks").write_text("in the way")
    with pytest.raises(StoreError):
        home.take(line("a"))


CHILD = """
import sys
from anaphora import Memory
def tell(*call):
    if len(sys.argv) > 3:
        print(*call, flush=True)
with Memory.open(sys.argv[1], embedder="hashing", warm=False) as memory:
    print(memory.import_(sys.argv[2], embed=False, progress=tell).added)
"""


def test_two_processes_import_the_same_file_once(tmp_path: Path) -> None:
    """Imports of one file at the same time add every turn once between them."""
    file = tmp_path / "chats.jsonl"
    with file.open("w") as out:
        for n in range(200):
            row = {"conversation_id": f"c{n % 20}", "role": "user", "text": f"turn {n}"}
            out.write(json.dumps(row) + "\n")
    place = tmp_path / "home"
    children = [
        subprocess.Popen(
            [*python(), "-c", CHILD, str(place), str(file)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    added = [int(child.communicate()[0]) for child in children]
    assert sum(added) == 200
    with Home(place) as home:
        said = home.everything()
    assert sorted(text for turns in said.values() for _, text in turns) == sorted(
        f"turn {n}" for n in range(200)
    )


@pytest.mark.parametrize("after", [1, 3, 8])
def test_an_import_that_was_killed_is_finished_by_the_next(
    tmp_path: Path, fixtures: Path, after: int
) -> None:
    """kill -9 in the middle of an import: the next one brings each message exactly once."""
    chats = json.loads((fixtures / "chatgpt.json").read_text())
    file = tmp_path / "conversations.json"
    many = [{**chats[1], "conversation_id": f"k{n}"} for n in range(15)]
    file.write_text(json.dumps(many))
    place = tmp_path / "home"
    child = subprocess.Popen(
        [*python(), "-c", CHILD, str(place), str(file), "tell"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    for _ in range(after):
        child.stdout.readline()
    child.kill()
    child.communicate()
    with Home(place) as home:
        report = home.take(file)
        said = home.everything()
    assert report.added + report.known == 15 * 8
    assert report.problems == ()
    assert len(said) == 30
    for n in range(15):
        words = said[f"chatgpt_k{n}"] + said[f"chatgpt_k{n}~1"]
        assert len(words) == len(set(words)) == 8
