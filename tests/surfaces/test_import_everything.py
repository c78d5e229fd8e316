"""Files of every kind come in by one import: as a folder, by commands, and dropped on the page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.ingest.everything import LEFT, TAKEN, packed, write_everything
from tests.surfaces.page_desk import chromium, serving, watched

from anaphora import ImportReport, Memory
from anaphora.errors import UnknownFormat
from anaphora.testing import run_cli

pytestmark = pytest.mark.promise("import.everything")


def all_found(memory: Memory) -> None:
    """One fact out of each file, in the lane that it belongs to."""
    for name, (_, words, kind) in TAKEN.items():
        hits = memory.search(words, kinds=[kind], min_confidence=0).hits
        assert words.split()[-1].lower() in hits[0].text.lower(), name
    assert len(memory.documents()) == 12


def counts(report: ImportReport) -> tuple[int, ...]:
    added = (report.added, report.memories_added, report.documents_added)
    return (*added, report.known + report.memories_known + report.documents_known)


def test_a_folder_comes_in_and_once(tmp_path: Path) -> None:
    """Conversations, memories and documents; a second import finds them there."""
    write_everything(tmp_path / "mixed")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for expected in ((2, 1, 12, 0), (0, 0, 0, 15)):
            report = memory.import_(tmp_path / "mixed")
            assert (report.files, counts(report)) == (15, expected)
            named = {name: kind for kind, names in report.left_out_files.items() for name in names}
            assert {name: kind.split(",")[0] for name, kind in named.items()} == {
                name: named[name].split(",")[0] for name in LEFT
            }
            assert all(what in named[name] for name, (_, what) in LEFT.items())
            assert report.problems == ()
        all_found(memory)


@pytest.mark.parametrize("words", [("import",), ("document", "add")])
@pytest.mark.parametrize("singly", [False, True])
def test_commands_say_the_same(tmp_path: Path, words: tuple[str, ...], singly: bool) -> None:
    """In five lines, and one for each file that was left out; it is a success."""
    files = write_everything(tmp_path / "mixed")
    # A file that is named is a document of its own to `document add`: it has options for one.
    given = files if singly and words == ("import",) else [tmp_path / "mixed"]
    home = tmp_path / "home"
    done = run_cli(*words, *given, home=home)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    summary = [line for line in lines if not line.startswith(" ")]
    assert summary == [
        "15 files are in; 5 left out",
        "1 memory added, 0 known already",
        "12 documents added, 0 known already",
        "2 conversations: 2 turns added, 0 known already",
    ]
    for name, (_, what) in LEFT.items():
        assert [line for line in lines if f"left out: {name}: {what}" in line], name
    again = run_cli(*words, *given, home=home)
    assert again.stdout.startswith("15 files were there already; 5 left out")
    with Memory.open(home, embedder="hashing") as memory:
        all_found(memory)


@pytest.mark.enable_socket
def test_files_and_a_folder_are_dropped_on_the_page(tmp_path: Path) -> None:
    """One summary, a line for each file that was left out, and no error."""
    files = write_everything(tmp_path / "mixed")
    with (
        chromium() as browser,
        Memory.open(tmp_path / "home", embedder="hashing") as memory,
        serving(memory) as url,
        watched(browser, url) as seen,
    ):
        page = seen.go("search")
        for field, chosen, head in (
            ("input:not([webkitdirectory])", files, "15 of 20 files are in."),
            ("input[webkitdirectory]", tmp_path / "mixed", "15 of 20 files were there already"),
        ):
            page.locator("#intake").click()
            page.set_input_files(f"dialog {field}", chosen)
            page.click("dialog button.primary")
            expect(page.locator("dialog .came")).to_contain_text(head, timeout=60_000)
            told = page.locator("dialog .came").inner_text()
            assert all(f"{name}: {what}" in told for name, (_, what) in LEFT.items())
            page.click("dialog button.primary")
        all_found(memory)
        seen.check()


HUGE = 10**9
EXPORT = (Path(__file__).parents[1] / "docs" / "samples" / "anaphora.jsonl").read_bytes()
ODD: dict[str, tuple[bytes | str | int, str, int]] = {
    "nothing.txt": (b"", "left out: nothing.txt: empty file", 0),
    "blanks.md": (b" \n\t\n", "left out: blanks.md: empty", 0),
    "latin.txt": ("Schlüssel".encode("cp1252"), "not UTF-8; read as Windows-1252", 0),
    "wide.csv": ("Möwe;1".encode("utf-16"), "2 documents added", 0),
    "bare.txt": ("The pump is in the cellar.".encode("utf-16-le"), "2 documents added", 0),
    "empty.ics": (b"BEGIN:VCALENDAR\nEND:VCALENDAR", "empty.ics: calendar without an event", 0),
    "noise.txt": (bytes(range(256)) * 9, "left out: noise.txt: no PDF, DOCX", 0),
    "half.json": (b'{"messages": [{"text": "I liv', "half.json: file: no importer", 5),
    "other.json": (b'{"flour": 2}', "other.json: no chat is recognised in it: kept", 0),
    "log.jsonl": (b'{"flour": 2}\n', "log.jsonl: file: no importer recognises", 5),
    "torn.pdf": (b"%PDF-1.4\n1 0 obj", "torn.pdf: file: it is damaged", 5),
    "vault.zip": (packed({"in.zip": packed({"a": ""})}), "left out: in.zip: archive", 0),
    "copy.txt": (b"Books to read.", "1 document added, 1 known already", 0),
    ".notes.txt": (b"Words.", "left out: .notes.txt: hidden file", 0),
    "passwords.kdbx": (b"x", "left out: passwords.kdbx: file with keys or passwords", 0),
    "script.py": (b"print(1)", "left out: script.py: .py file", 0),
    "loop": (".", "left out: loop: link", 0),
    "gone.txt": ("nowhere", "left out: gone.txt: link", 0),
    "knot.txt": ("knot.txt", "left out: knot.txt: link", 0),
    "twin.txt": ("books.txt", "left out: twin.txt: link", 0),
    "huge.txt": (HUGE, "huge.txt: file: it has 1,000,000,000 bytes", 5),
    "all.jsonl": (EXPORT, "2 memories added, 0 known already", 0),
    "node_modules/a.txt": (b"Words.", "left out: node_modules: folder of a program", 0),
    "code/.git": (b"gitdir: x", "left out: code: folder of a project: `anaphora project", 0),
}
"""Bytes, the target of a link or a size; a line about it; the exit code."""


@pytest.mark.parametrize("name", ODD)
def test_each_odd_thing_has_a_line(tmp_path: Path, name: str) -> None:
    """Beside a good file, which goes in; only words of the user that are lost are a failure."""
    content, line, code = ODD[name]
    folder, path = tmp_path / "mixed", tmp_path / "mixed" / name
    path.parent.mkdir(parents=True)
    (folder / "books.txt").write_text("Books to read.")
    if isinstance(content, str):
        path.symlink_to(content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else b"")
    if content == HUGE:
        os.truncate(path, HUGE)
    done = run_cli("import", folder, home=tmp_path / "home")
    assert (done.exit_code, line in done.stdout) == (code, True), done.stdout
    assert "added" in done.stdout
    again = run_cli("import", folder, home=tmp_path / "home")
    assert (again.exit_code, "0 documents added" in again.stdout) == (code, True), again.stdout


def test_what_was_forgotten_stays_out_unless_asked_for(tmp_path: Path) -> None:
    """A document that may be had back is not brought back by its folder."""
    file = tmp_path / "books.txt"
    file.write_text("Books to read.")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.import_(tmp_path, format=None)
        (document,) = (one for one in memory.documents() if one.title == "books.txt")
        memory.forget(document.id, undoable=True)
        report = memory.import_(file)
        assert [kind.split(";")[0] for kind in report.left_out] == [
            "document that was forgotten here"
        ]
        assert memory.import_(file, again=True).documents_added == 1


def test_a_single_file_of_no_kind_is_refused(tmp_path: Path) -> None:
    """A program that names one file is told by an error, as nothing of it came in."""
    log = tmp_path / "log.jsonl"
    log.write_text('{"flour": 2}\n')
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        with pytest.raises(UnknownFormat, match="no importer recognises this file"):
            memory.import_(log)
        (tmp_path / "books.txt").write_text("Books to read.")
        report = memory.import_([log, tmp_path / "books.txt"])
        assert (report.documents_added, len(report.problems)) == (1, 1)
    shown = run_cli("import", log, home=tmp_path / "home")
    assert shown.exit_code == 2
    assert "Other chats as JSON Lines, one message a line:" in shown.stderr
