"""Vaults as people keep them: properties, local dates, templates, canvases, what is no note."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.ingest.imported import read

from anaphora import ImportReport, Memory, NewMemory
from anaphora.values.imports import ImportedMemory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


@pytest.fixture
def vault(tmp_path: Path) -> Path:
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
    (item,) = (one for one in read(folder / name) if isinstance(one, ImportedMemory))
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
    "file that is no note (.png)": 1,
    "note in a hidden folder (.obsidian)": 1,
    "note in a hidden folder (.trash)": 1,
    "template": 3,
}


def accounts_for_all(report: ImportReport) -> None:
    """All of the vault is told: what came in, what was left out, what is damaged."""
    assert report.left_out == LEFT_OUT
    assert [(Path(one.path).name, "canvas" in one.reason) for one in report.problems] == [
        ("Torn.canvas", True)
    ]


@pytest.mark.promise("import.notes")
def test_a_vault_is_accounted_for(memory: Memory, vault: Path) -> None:
    """Properties alone and canvases come in, templates and what is no note are counted."""
    accounts_for_all(memory.import_(vault))
    assert texts(memory) == HELD
    packed = shutil.make_archive(str(vault.parent / "packed"), "zip", vault.parent, "films")
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
    memory: Memory, vault: Path, question: str, path: str
) -> None:
    """By director, alias, value and title; its own words stay as they are."""
    memory.import_(vault)
    assert memory.recall(question, mode="words", top_k=1)[0].path == path


@pytest.mark.promise("import.notes")
def test_what_an_earlier_release_missed_comes_in(memory: Memory, vault: Path) -> None:
    """A template that was taken for a note ends, the rest is added, nothing is there twice."""
    hidden = vault / ".obsidian"
    hidden.rename(vault.parent / "aside")
    (vault / "Harbour Lights.md").rename(vault.parent / "Lights.md")
    memory.import_(vault, format="markdown")
    assert "films/Forms/Film.md" in texts(memory)
    (vault.parent / "aside").rename(hidden)
    (vault.parent / "Lights.md").rename(vault / "Harbour Lights.md")
    report = memory.import_(vault)
    assert (report.memories_added, report.memories_changed, report.memories_ended) == (1, 0, 3)
    assert texts(memory) == HELD
    assert memory.import_(vault).memories_known == len(HELD)


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
    (problem,) = memory.import_(path).problems
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
def test_what_a_vault_ignores_and_links_to_is_told(memory: Memory, vault: Path) -> None:
    """Of a folder or note that is not looked into, that it is there is said."""
    (vault / ".gitignore").write_text("Private/\nSecret plan.md\n*.png\n")
    (vault / "Private").mkdir()
    (vault / "Private" / "Diary.md").write_text("Dear diary.")
    (vault / "Secret plan.md").write_text("Hush.")
    (vault / "Work").symlink_to(vault.parent, target_is_directory=True)
    report = memory.import_(vault)
    assert report.left_out == LEFT_OUT | {"note or folder that .gitignore leaves out": 2}
    assert {Path(one.path).name for one in report.problems} == {"Torn.canvas", "Work"}
