"""What a thing is called is searched: file names, titles, paths, tags."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_command

from anaphora import Memory, NewTurn, SearchKind

OTHERS = (
    "The coffee machine on the second floor was descaled.",
    "Lunch on Fridays is at the noodle place.",
    "Ida keeps the spare keys of the archive room.",
    "Ben's train leaves at 6:05.",
    "Die Heizung im Keller wurde entlüftet.",
    "Freitags essen wir beim Italiener.",
)

NAMED = [
    ("Dentist appointment", "Moved to the 14th, gate 3.", "when is the dentist appointment?"),
    ("2023 Japan Trip", "Kyoto first, then a week by the sea.", "when did we go to Japan?"),
    (
        "Boiler manual 2024-05-02",
        "Hold the red knob for ten seconds.",
        "how do I reset the boiler?",
    ),
    ("Zahnarzttermin", "Verschoben auf den 14., Tor 3.", "Wann ist der Zahnarzttermin?"),
    ("Mülltonnen", "Immer am zweiten Dienstag.", "Wann werden die Mülltonnen geleert?"),
]
FOREIGN = ("what is the weather on Mars?", "who painted the Sistine Chapel?")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A home with facts and turns about other things."""
    with Memory.open(tmp_path / "home") as opened:
        for place, text in enumerate(OTHERS):
            opened.remember(text)
            opened.conversations.append(f"other-{place}", "user", f"{text} I noted it.")
        yield opened


def check_first(memory: Memory, question: str, text: str, kind: SearchKind) -> None:
    """The first hit of a search has the text, and says that its title matched.

    The bundled model knows little of German: there it is the first of its own kind.
    """
    assert memory.ready(60)
    german = question.startswith(("Wann", "Wo"))
    hit = (memory.search(question, kinds=[kind]) if german else memory.search(question))[0]
    assert (hit.text.strip(), hit.kind) == (text, kind)
    assert hit.factors["title"] > 0
    for foreign in FOREIGN:
        assert not any(text in other.text for other in memory.search(foreign))


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize(("title", "text", "question"), NAMED)
def test_a_note_is_found_by_its_file(
    memory: Memory, tmp_path: Path, title: str, text: str, question: str
) -> None:
    """The name of a file is the title of a note, and is not repeated in it."""
    vault = tmp_path / "Vault"
    (vault / "Life").mkdir(parents=True)
    (vault / "Life" / f"{title}.md").write_text(text, "utf-8")
    (vault / "Garden.md").write_text("Tomatoes by the south wall.", "utf-8")
    memory.import_(vault)
    check_first(memory, question, text, "memory")


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize("name", ["title: Dentist appointment", "aliases: [Dentist appointment]"])
def test_a_note_is_found_by_the_names_it_gives_itself(
    memory: Memory, tmp_path: Path, name: str
) -> None:
    """The title and the other names in a note's properties."""
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "2026-03-01 0912.md").write_text(f"---\n{name}\n---\nMoved to the 14th, gate 3.\n")
    memory.import_(vault)
    check_first(memory, "when is the dentist appointment?", "Moved to the 14th, gate 3.", "memory")


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize(("title", "text", "question"), NAMED)
@pytest.mark.parametrize("named", ["name", "title"])
def test_a_document_is_found_by_its_name_or_title(
    memory: Memory, title: str, text: str, question: str, named: str
) -> None:
    """A document's file name, or the title that was given with it."""
    if named == "name":
        memory.add_document(text.encode(), name=f"{title}.txt")
    else:
        memory.add_document(text.encode(), name="scan0041.txt", title=title)
    check_first(memory, question, text, "document")


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize(("title", "text", "question"), NAMED)
@pytest.mark.parametrize("way", ["extend", "import", "set_title"])
def test_a_turn_is_found_by_the_title_of_its_conversation(
    memory: Memory, tmp_path: Path, title: str, text: str, question: str, way: str
) -> None:
    """The title that a conversation began with, was imported with, or was given later."""
    turns = [NewTurn("user", text), NewTurn("assistant", "All right.")]
    if way == "import":
        file = tmp_path / "chat.jsonl"
        said = [{"role": one.role, "content": one.text} for one in turns]
        file.write_text(json.dumps({"title": title, "messages": said}) + "\n", "utf-8")
        memory.import_(file)
    elif way == "extend":
        memory.conversations.extend("chat", turns, title=title)
    else:
        memory.conversations.extend("chat", turns, title="Untitled")
        memory.search(question)
        memory.conversations.set_title("chat", title)
    check_first(memory, question, text, "turn")
    assert memory.search(question)[0].title == title


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize(
    ("path", "text", "question"),
    [
        ("dentist.appointment", "Moved to the 14th, gate 3.", "when is the dentist appointment?"),
        ("staging.database.port", "6432", "staging database port"),
        ("staging.database.port", "6432", "what is the port of the staging database?"),
        ("user.homeAddress", "Canal street 5", "what is my home address?"),
        ("build_server_ip", "10.0.4.17", "what is the ip of the build server?"),
        ("team/releaseDay", "Every second Thursday.", "which day is our release?"),
        ("auto.winterReifen", "Liegen bei Jonas.", "Wo sind die Winterreifen vom Auto?"),
    ],
)
def test_a_memory_is_found_by_its_path(memory: Memory, path: str, text: str, question: str) -> None:
    """A path is cut at dots, underscores, slashes and humps."""
    memory.remember(text, path=path)
    check_first(memory, question, text, "memory")
    environ = {**os.environ, "ANAPHORA_HOME": str(memory.home)}
    shown = json.loads(run_command("recall", question, "--json", environ=environ).stdout)
    assert text in {hit["text"] for hit in shown["hits"]}


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize("labels", [{"tags": ("stopcock", "water")}, {"category": "stopcock"}])
def test_a_memory_is_found_by_its_labels(memory: Memory, labels: dict[str, object]) -> None:
    """Tags and the category, those too that it was given later."""
    memory.remember("It is behind the boiler.", **labels)  # type: ignore[arg-type]
    later = memory.remember("Turn it twice to the left.")
    memory.ready(60)
    memory.update(later.id, tags=("radiator",))
    check_first(memory, "where is the stopcock?", "It is behind the boiler.", "memory")
    check_first(memory, "what about the radiator?", "Turn it twice to the left.", "memory")


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize(
    "question", ["Wann ist mein Termin beim Zahnarzt?", "Wann geht es zum Zahnarzt?"]
)
def test_a_word_in_a_longer_one_is_found(memory: Memory, question: str) -> None:
    """German writes names together; the text is too short to tell its language."""
    memory.remember("14. Mai, 9:30", path="Zahnarzttermin")
    memory.conversations.extend("chat", [NewTurn("user", "15. Mai, 8:00")], title="Zahnarzttermin")
    assert memory.ready(60)
    hits = memory.search(question)
    assert {"14. Mai, 9:30", "15. Mai, 8:00"} <= {h.text for h in hits if "title" in h.factors}


@pytest.mark.promise("search.everything")
def test_words_of_a_text_stand_before_those_of_a_title(memory: Memory) -> None:
    """A title is a share of the evidence: a text that holds the words comes first."""
    memory.remember("Ask Jonas about it.", path="dentist.appointment")
    memory.remember("The dentist appointment was moved to the 14th.")
    turns = [NewTurn("user", f"Item {n} is done, what is next?") for n in range(30)]
    memory.conversations.extend("chat", turns, title="Dentist appointment")
    memory.conversations.append("plain", "user", "My dentist appointment is at gate 3.")
    memory.ready(60)
    hits = memory.search("when is the dentist appointment?")
    assert {hit.text for hit in hits[:2]} == {
        "The dentist appointment was moved to the 14th.",
        "My dentist appointment is at gate 3.",
    }


@pytest.mark.promise("search.everything")
def test_a_title_that_was_taken_away_finds_nothing(memory: Memory) -> None:
    """What a conversation was called is gone from the index with the title."""
    turns = [NewTurn("user", "Moved to the 14th, gate 3.")]
    memory.conversations.extend("chat", turns, title="Xanthippe appointment")
    question = "when is the Xanthippe appointment?"
    check_first(memory, question, "Moved to the 14th, gate 3.", "turn")
    memory.conversations.set_title("chat", "")
    assert all("title" not in hit.factors for hit in memory.search(question))
    files = [path for path in Path(memory.home).rglob("*") if path.is_file()]
    assert not [path for path in files if b"Xanthippe" in path.read_bytes()]


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize("sealed", [False, True])
def test_titles_are_searched_after_an_opening(tmp_path: Path, sealed: bool) -> None:
    """What was indexed in an earlier program is found, in a sealed home too, which holds no word of
    it in the clear."""
    home = tmp_path / "home"
    with Memory.open(home, encrypt="file" if sealed else None) as memory:
        for place, text in enumerate(OTHERS):
            memory.conversations.append(f"other-{place}", "user", text)
        turns = [NewTurn("user", "Moved to the 14th, gate 3.")]
        memory.conversations.extend("chat", turns, title="Xanthippe appointment")
        memory.remember("6432", path="staging.zanzibar.port")
        assert memory.ready(60)
        memory.search("when is the Xanthippe appointment?")
    with Memory.open(home) as memory:
        check_first(
            memory, "when is the Xanthippe appointment?", "Moved to the 14th, gate 3.", "turn"
        )
        check_first(memory, "what is the zanzibar port?", "6432", "memory")
    if sealed:
        for path in home.rglob("*"):
            data = path.read_bytes().lower() if path.is_file() else b""
            assert b"xanthippe" not in data
            assert b"zanzibar" not in data
