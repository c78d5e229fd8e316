"""Notes of other programs: Markdown, and vaults with their settings, canvases and links."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.ingest.imported import read
from tests.ingest.memory_sources import FIXTURES

from anaphora import ImportProblem, ImportReport, Memory, NewMemory
from anaphora.features.importing.values import ImportedFile, ImportedMemory

LOG = "harbour/Projects/Log of the quay.md"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A vault of Obsidian."""
    return Path(shutil.copytree(FIXTURES / "vault", tmp_path / "harbour"))


def notes(path: Path, form: str | None = None) -> dict[str, NewMemory]:
    """What a folder gives, by key."""
    found = (item for item in read(path, form) if isinstance(item, ImportedMemory))
    return {item.key: item.memory for item in found}


def edited(path: Path, old: str, new: str, day: int) -> None:
    """Change words of a note, on a day of January 2027."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    at = datetime(2027, 1, day, tzinfo=UTC).timestamp()
    os.utime(path, (at, at))


@pytest.mark.promise("import.notes")
def test_a_vault_comes_in_by_note_and_section(vault: Path) -> None:
    """Short notes whole, long ones by heading; words verbatim, tags, links and dates beside."""
    found = notes(vault)
    assert list(found) == [
        "harbour/Daily/2026-02-14.md",
        "harbour/Projects/Harbour.md",
        f"{LOG}#Log of the quay",
        f"{LOG}#Log of the quay > Winch",
        f"{LOG}#Log of the quay > Brakes",
    ]
    harbour = found["harbour/Projects/Harbour.md"]
    text = (vault / "Projects" / "Harbour.md").read_text("utf-8")
    assert harbour.text == text.split("---\n")[2].strip("\n")
    assert harbour.tags == ("work", "crane", "maintenance")
    assert harbour.payload == {
        "title": "Harbour crane",
        "links": ["Marta Reis", "https://example.org/rules"],
        "properties": {"aliases": ["HC-2"], "status": "active"},
    }
    assert harbour.created_at == datetime(2026, 1, 15, tzinfo=UTC)
    assert found["harbour/Daily/2026-02-14.md"].created_at == datetime(2026, 2, 14, tzinfo=UTC)
    assert "# not a heading" in found[f"{LOG}#Log of the quay > Brakes"].text


@pytest.mark.promise("import.notes")
def test_an_edited_section_supersedes_its_old_words(memory: Memory, vault: Path) -> None:
    """Only what was edited is new, and its history stays; a date alone changes nothing."""
    memory.import_(vault)
    log = vault / "Projects" / "Log of the quay.md"
    os.utime(log, (1_800_000_000, 1_800_000_000))
    assert memory.import_(vault).memories_changed == 0
    edited(log, "28 mm, from Ropewerk", "30 mm, from Ropewerk", day=5)
    report = memory.import_(vault)
    assert (report.memories_changed, report.memories_added, report.memories_ended) == (1, 0, 0)
    old, new = memory.history(f"{LOG}#Log of the quay > Winch")
    assert "28 mm" in old.text
    assert "30 mm" in new.text
    assert old.superseded_by == new.id
    assert new.valid_from == datetime(2027, 1, 5, tzinfo=UTC)


@pytest.mark.promise("import.notes")
def test_a_section_that_is_gone_ends_and_may_come_back(memory: Memory, vault: Path) -> None:
    """It is recalled no more, stays in history, and holds again when it is written again."""
    memory.import_(vault)
    log = vault / "Projects" / "Log of the quay.md"
    before = log.read_text("utf-8")
    edited(log, "## Brakes", "## Pads", day=6)
    report = memory.import_(vault)
    assert (report.memories_added, report.memories_ended) == (1, 1)
    assert memory.recall("Nordbrems article 7714")[0].path == f"{LOG}#Log of the quay > Pads"
    (ended,) = memory.history(f"{LOG}#Log of the quay > Brakes")
    assert ended.expires_at == datetime(2027, 1, 6, tzinfo=UTC)
    log.write_text(before, "utf-8")
    report = memory.import_(vault)
    assert (report.memories_changed, report.memories_ended) == (1, 1)
    assert memory.import_(vault).memories_known == 5


@pytest.mark.promise("import.notes")
def test_a_note_that_is_gone_is_told_and_stays(memory: Memory, vault: Path) -> None:
    """Nothing is forgotten because a file is missing."""
    memory.import_(vault)
    (vault / "Projects" / "Harbour.md").unlink()
    report = memory.import_(vault)
    assert report.gone == ("harbour/Projects/Harbour.md",)
    assert report.memories_ended == 0
    assert memory.history("harbour/Projects/Harbour.md")[0].expires_at is None


@pytest.mark.promise("import.notes_safe")
def test_links_key_files_and_binaries_are_not_read(memory: Memory, vault: Path) -> None:
    """They are told of, as far as they look like notes; secrets in notes are taken out."""
    (vault / "out.md").symlink_to("/etc/hostname")
    (vault / "picture.md").write_bytes(b"\x89PNG\0\0")
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    (vault / "CI.md").write_text(f"The token is {token}.\n")
    report = memory.import_(vault)
    told = {Path(one.path).name: one.reason for one in report.problems}
    assert set(told) == {"picture.md"}
    assert "no text" in told["picture.md"]
    left_out = {kind.split()[0]: names for kind, names in report.left_out_files.items()}
    assert (left_out["link,"], left_out["file"]) == (("out.md",), (".env.md",))
    texts = [one.text for one in memory.list(limit=100)]
    assert not [text for text in texts if token in text or "Passwords" in text]
    assert report.redacted


@pytest.mark.promise("import.notes")
def test_a_zip_file_of_a_vault_is_the_same_vault(memory: Memory, vault: Path) -> None:
    """Its notes have the same keys; what is hidden in it is passed over."""
    memory.import_(vault)
    packed = shutil.make_archive(str(vault.parent / "packed"), "zip", vault.parent, "harbour")
    with zipfile.ZipFile(packed) as archive:
        assert "harbour/.obsidian/app.json" in archive.namelist()
    report = memory.import_(packed)
    assert (report.memories_known, report.memories_added, report.gone) == (5, 0, ())


@pytest.mark.promise("import.notes")
def test_notes_among_other_files_are_documents_unless_asked_for(tmp_path: Path) -> None:
    """A folder of transcripts does not bring the Markdown that lies in it as memories."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "chat.jsonl").write_text('{"role": "user", "text": "hello"}\n')
    (folder / "README.md").write_text("# Notes\n")
    (document,) = [item for item in read(folder) if isinstance(item, ImportedFile)]
    assert document.path == "README.md"
    assert list(notes(folder)) == []
    assert list(notes(folder, "markdown")) == ["mixed/README.md"]


@pytest.mark.promise("import.memories")
def test_basic_memory_brings_observations_and_relations() -> None:
    """Each is a fact with its category, tags and note; the rest of the note is kept as prose."""
    found = list(notes(FIXTURES / "basic").values())
    assert [(one.text, one.category) for one in found] == [
        ("Queue choice: Jobs go through NATS since March #queue (after the outage)", "decision"),
        ("Queue choice: Redis lost 214 jobs in the outage #incident", "fact"),
        ("Queue choice replaces Redis queue", "relation"),
        ("Queue choice decided_by Mara Lindqvist (platform lead)", "relation"),
        ("Queue choice links to Runbook", "relation"),
        (
            "# Queue choice\n\nWe weighed the three queues for a week.\n\n## Observations\n"
            "- [ ] write the runbook",
            None,
        ),
    ]
    assert found[0].tags == ("decision", "queue")
    assert found[0].created_at == datetime(2026, 3, 4, 11, tzinfo=UTC)
    assert found[0].payload == {"note": "Queue choice", "context": "after the outage"}


@pytest.mark.promise("import.memories")
def test_an_observation_that_was_taken_out_ends(memory: Memory, tmp_path: Path) -> None:
    """A fact that its note has no longer is not recalled, and stays in history."""
    folder = Path(shutil.copytree(FIXTURES / "basic", tmp_path / "basic"))
    memory.import_(folder)
    note = folder / "decisions" / "Queue choice.md"
    edited(note, "- [fact] Redis lost 214 jobs in the outage #incident\n", "", day=7)
    report = memory.import_(folder)
    assert (report.memories_ended, report.memories_known) == (1, 5)
    (ended,) = [one for one in memory.list(limit=50) if "214" in one.text]
    assert ended.expires_at == datetime(2027, 1, 7, tzinfo=UTC)


@pytest.mark.promise("import.notes")
def test_one_note_can_be_imported_alone(memory: Memory, tmp_path: Path) -> None:
    """A single file of Markdown is a document, and a note if that is asked for."""
    note = tmp_path / "Tides.md"
    note.write_text("---\ntags: sea\n---\nHigh water at Aveiro is 12 minutes late.\n")
    report = memory.import_(note)
    assert (report.memories_added, report.documents_added) == (0, 1)
    assert memory.import_(note, format="markdown").memories_added == 1
    assert memory.recall("high water at Aveiro")[0].tags == ("sea", "markdown")


def test_problems_of_a_large_note(tmp_path: Path) -> None:
    """A note of odd headings and endless lines is read in bounded pieces, nothing is lost."""
    note = tmp_path / "big.md"
    words = "word " * 4_000
    note.write_text(f"# A\n\n{words}\n\n# A\n\nmore {words}\n\n####### none\n")
    found = [item for item in read(note, "markdown") if isinstance(item, ImportedMemory)]
    assert len({one.key for one in found}) == len(found) >= 2
    assert not [item for item in read(note, "markdown") if isinstance(item, ImportProblem)]
    assert sum(one.memory.text.count("word") for one in found) == 8_000


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """A vault of films: settings, two films, templates, a canvas, files of other kinds."""
    root = tmp_path / "films"
    files: dict[str, object] = {
        ".obsidian/app.json": {},
        ".obsidian/templates.json": {"folder": "/Forms/"},
        ".obsidian/daily-notes.json": {"template": "Meta/Day", "folder": "Daily"},
        ".obsidian/plugins/templater-obsidian/data.json": {"templates_folder": "+ Templater"},
        ".obsidian/plugins/other/README.md": "A plugin's words.",
        "Forms/Film.md": "---\ndirector:\n---\n{{title}}",
        "Meta/Day.md": "{{date}}",
        "Meta/Days.md": "Which days I keep.",
        "+ Templater/deep/Note.md": "<% tp.file.title %>",
        ".trash/Old film.md": "Thrown away.",
        "build/Kept.md": "How the hut was built.",
        "Harbour Lights.md": (
            '---\ncategories:\n  - "[[Movies]]"\ndirector:\n  - "[[People/Zofia Kern|Z. Kern]]"\n'
            "rating: 7\n---\n"
        ),
        "Salt Road.md": (
            '---\ndirector: "[[Bruno Falk]]"\ndate: "[[2024-02-03]]"\naliases: [Salzweg]\n---\n'
            "Seen with Ewa on a rainy evening.\n"
        ),
        "Stub.md": "---\n---\n",
        "Plan.canvas": {
            "nodes": [
                {"id": "a1", "type": "text", "text": "Ferry line to Hel opens in May"},
                {"id": "g1", "type": "group", "label": "Summer trips"},
                {"id": "f1", "type": "file", "file": "Salt Road.md"},
            ],
            "edges": [{"id": "e1", "fromNode": "a1", "toNode": "f1", "label": "by way of"}],
        },
        "Torn.canvas": "{nodes",
        "Films.base": "views:\n  - type: table\n",
        "poster.png": "no picture",
    }
    for name, held in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(held if isinstance(held, str) else json.dumps(held), "utf-8")
    return root


def note(
    folder: Path, front: bytes | str, body: str = "Words.\n", name: str = "Note.md"
) -> NewMemory:
    """The one memory of a note with this front matter."""
    data = front if isinstance(front, bytes) else front.encode()
    (folder / name).write_bytes(data + body.encode())
    (item,) = (one for one in read(folder / name, "markdown") if isinstance(one, ImportedMemory))
    return item.memory


def texts(memory: Memory) -> dict[str, str]:
    """The text of each path that holds now."""
    rows = (row for row in memory.list(limit=100) if row.valid_to is None and not row.expires_at)
    return {str(row.path): row.text for row in rows}


HELD = {
    "films/Harbour Lights.md": "categories: Movies\ndirector: Z. Kern\nrating: 7",
    "films/Meta/Days.md": "Which days I keep.",
    "films/Plan.canvas": "Summer trips\nby way of",
    "films/Plan.canvas#a1": "Ferry line to Hel opens in May",
    "films/Salt Road.md": "Seen with Ewa on a rainy evening.",
    "films/build/Kept.md": "How the hut was built.",
}
LEFT_OUT = {
    "base of Obsidian (a view of notes)": 1,
    "empty note": 1,
    "note in a hidden folder (.obsidian)": 1,
    "note in a hidden folder (.trash)": 1,
    "picture, whose text an OCR must read first": 1,
    "template": 3,
}


def accounts_for_all(report: ImportReport) -> None:
    """All of the vault is told: what came in, what was left out, what is damaged."""
    assert report.left_out == LEFT_OUT
    assert [(Path(one.path).name, "canvas" in one.reason) for one in report.problems] == [
        ("Torn.canvas", True)
    ]


@pytest.mark.promise("import.notes")
def test_a_vault_is_accounted_for(memory: Memory, films: Path) -> None:
    """Properties alone and canvases come in, templates and what is no note are counted."""
    accounts_for_all(memory.import_(films))
    assert texts(memory) == HELD
    packed = shutil.make_archive(str(films.parent / "packed"), "zip", films.parent, "films")
    report = memory.import_(packed)
    accounts_for_all(report)
    assert (report.memories_known, report.memories_added, report.gone) == (len(HELD), 0, ())


@pytest.mark.promise("import.notes")
@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("what did Bruno Falk direct?", "films/Salt Road.md"),
        ("rating 7", "films/Harbour Lights.md"),
        ("Harbour Lights", "films/Harbour Lights.md"),
    ],
)
def test_a_note_is_found_by_its_properties(
    memory: Memory, films: Path, question: str, path: str
) -> None:
    """By director, alias, value and title; its own words stay as they are."""
    memory.import_(films)
    assert memory.recall(question, mode="words", top_k=1)[0].path == path


@pytest.mark.promise("import.notes")
def test_what_an_earlier_release_missed_comes_in(memory: Memory, films: Path) -> None:
    """A template that was taken for a note ends, the rest is added, nothing is there twice."""
    hidden = films / ".obsidian"
    hidden.rename(films.parent / "aside")
    (films / "Harbour Lights.md").rename(films.parent / "Lights.md")
    memory.import_(films, format="markdown")
    assert "films/Forms/Film.md" in texts(memory)
    (films.parent / "aside").rename(hidden)
    (films.parent / "Lights.md").rename(films / "Harbour Lights.md")
    report = memory.import_(films)
    assert (report.memories_added, report.memories_changed, report.memories_ended) == (1, 0, 3)
    assert texts(memory) == HELD
    assert memory.import_(films).memories_known == len(HELD)


@pytest.mark.promise("import.notes")
@pytest.mark.parametrize(
    ("written", "at"),
    [
        ('"[[2024-02-03]]"', datetime(2024, 2, 3, tzinfo=UTC)),
        ('\n  - "[[Daily/2024-02-03|that Saturday]]"', datetime(2024, 2, 3, tzinfo=UTC)),
        ("06.05.2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("6.5.24", datetime(2024, 5, 6, tzinfo=UTC)),
        ("May 6, 2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("6. Mai 2024, 14:30 Uhr", datetime(2024, 5, 6, 14, 30, tzinfo=UTC)),
        ("Monday, May 6th 2024, 2:30:15 pm", datetime(2024, 5, 6, 14, 30, tzinfo=UTC)),
        ("25/12/2024", datetime(2024, 12, 25, tzinfo=UTC)),
        ("12/25/2024", datetime(2024, 12, 25, tzinfo=UTC)),
        ("202405061430", datetime(2024, 5, 6, 14, 30, tzinfo=UTC)),
        (
            "Mon, 06 May 2024 14:30:00 +0200",
            datetime(2024, 5, 6, 14, 30, tzinfo=timezone(timedelta(hours=2))),
        ),
    ],
)
def test_dates_are_read_as_people_write_them(tmp_path: Path, written: str, at: datetime) -> None:
    """As links, in the order of a country, with months by name; no property beside the words."""
    memory = note(tmp_path, f"---\ncreated: {written}\n---\n")
    assert (memory.created_at, memory.payload) == (at, None)


@pytest.mark.promise("import.notes")
@pytest.mark.parametrize("written", ["03/04/2024", "03-04-2024 10:00"])
def test_a_date_that_reads_two_ways_is_told(memory: Memory, tmp_path: Path, written: str) -> None:
    """It is not guessed: the file's time counts, and the value stays beside the words."""
    path = tmp_path / "Note.md"
    path.write_text(f"---\ndate: {written}\n---\nWords.\n")
    os.utime(path, (1_800_000_000, 1_800_000_000))
    (problem,) = memory.import_(path, format="markdown").problems
    assert "two ways" in problem.reason
    (row,) = memory.list()
    assert row.created_at == datetime.fromtimestamp(1_800_000_000, UTC)
    assert row.payload == {"properties": {"date": written}}


@pytest.mark.promise("import.notes")
@pytest.mark.parametrize(
    ("front", "properties"),
    [
        (b"\xef\xbb\xbf---\r\nm: |\r\n  one\r\n  two\r\n---\r\n", {"m": "one\ntwo"}),
        ("---\nmulti: |\n  one\n    two\n\n  three\n---\n", {"multi": "one\n  two\n\nthree"}),
        ("---\nfolded: >-\n  one\n  two\n---\n", {"folded": "one two"}),
        ("---\nlong: one\n  two\n---\n", {"long": "one two"}),
        ("---\nlist: [one,\n  two]\n---\n", {"list": ["one", "two"]}),
        ("---\nauthor:\n  name: Ann\n---\n", {"author": ["name: Ann"]}),
        ('---\nrégie: Ann\n"who is": Bo\n---\n', {"régie": "Ann", "who is": "Bo"}),
        ("---\nwhen: soon\ndate: soon\n---\n", {"when": "soon", "date": "soon"}),
    ],
)
def test_values_of_front_matter_are_kept(
    tmp_path: Path, front: bytes | str, properties: dict[str, object]
) -> None:
    """With byte order marks, Windows' line ends, values of several lines, names of any language."""
    memory = note(tmp_path, front)
    assert (memory.text, memory.payload) == ("Words.", {"properties": properties})


@pytest.mark.promise("import.notes")
def test_a_second_block_of_front_matter_counts_too(tmp_path: Path) -> None:
    """Programs put theirs before the user's: what each says holds, and its words stay."""
    memory = note(
        tmp_path,
        "---\npermalink: notes/a\n---\n\n---\ntitle: The old mill\ndate: 2024-02-03\n---\n",
    )
    assert memory.created_at == datetime(2024, 2, 3, tzinfo=UTC)
    assert "The old mill" in memory.text


@pytest.mark.promise("import.notes_safe")
def test_what_a_vault_ignores_and_links_to_is_told(memory: Memory, films: Path) -> None:
    """Of a folder or note that is not looked into, that it is there is said."""
    (films / ".gitignore").write_text("Private/\nSecret plan.md\n*.png\n")
    (films / "Private").mkdir()
    (films / "Private" / "Diary.md").write_text("Dear diary.")
    (films / "Secret plan.md").write_text("Hush.")
    (films / "Work").symlink_to(films.parent, target_is_directory=True)
    report = memory.import_(films)
    link = {"link, which is not followed": 1}
    assert report.left_out == LEFT_OUT | {"note or folder that .gitignore leaves out": 2} | link
    assert [Path(one.path).name for one in report.problems] == ["Torn.canvas"]
