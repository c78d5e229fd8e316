"""A namespace as a folder of Markdown: what a person edits there is remembered, and the other way.

Files are saved an hour ago by the clock that they are stamped with: who has just saved one is
waited for, which has a test of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora import Memory
from anaphora.errors import InvalidInput, MirrorError
from anaphora.testing import run_cli

HOUR = 3600.0


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory that is mirrored in `tmp_path/vault`."""
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as opened:
        opened.mirror.init(str(tmp_path / "vault"))
        yield opened


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """The folder."""
    return tmp_path / "vault"


def save(file: Path, text: str, *, ago: float = HOUR) -> None:
    """Save a file as an editor does, so many seconds ago."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    when = time.time() - ago
    os.utime(file, (when, when))


def edit(file: Path, old: str, new: str, *, ago: float = -HOUR) -> None:
    """Change words in a file. By default after anything that was remembered."""
    text = file.read_text("utf-8")
    assert old in text
    save(file, text.replace(old, new), ago=ago)


@contextmanager
def being_saved(file: Path) -> Iterator[None]:
    """An editor saves a file, piece by piece, all the while."""
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.02):
            file.write_text(file.read_text("utf-8") + "and more ", "utf-8")

    writing = threading.Thread(target=write)
    writing.start()
    assert not done.wait(0.1)
    try:
        yield
    finally:
        done.set()
        writing.join()


def files_in(vault: Path) -> list[str]:
    """The files by their paths."""
    return sorted(file.relative_to(vault).as_posix() for file in vault.rglob("*") if file.is_file())


def texts(memory: Memory) -> dict[str | None, str]:
    """What holds now, by path."""
    return {record.path: record.text for record in memory.list(limit=1000)}


@pytest.mark.promise("mirror.readable")
def test_what_is_remembered_is_a_file_that_a_person_can_read(memory: Memory, vault: Path) -> None:
    """A memory by its path, one by its words, a note; words verbatim, properties that are YAML."""
    memory.remember("Port 5433:\n\n- no TLS", path="staging.port", tags=["db", "it's: odd"])
    memory.remember('Rafi owns "staging": ask him / her?', category="people")
    memory.observe("Use uv for all builds.", kind="decision", importance=4)
    report = memory.mirror.now()
    assert files_in(vault) == [
        "facts/Rafi owns staging ask him her.md",
        "memories/staging/port.md",
        "notes/Use uv for all builds..md".replace("..md", ".md"),
    ]
    assert len(report.written) == 3
    _, front, body = (vault / "memories/staging/port.md").read_text().split("---\n", 2)
    assert body == "\nPort 5433:\n\n- no TLS\n"
    told = yaml.safe_load(front)
    (record,) = [one for one in memory.list() if one.path == "staging.port"]
    assert told["id"] == record.id
    assert told["path"] == "staging.port"
    assert told["tags"] == ["db", "it's: odd"]
    note = (vault / "notes/Use uv for all builds.md").read_text()
    assert "kind: decision" in note
    assert 'importance: "4"' in note or "importance: 4" in note
    assert not memory.mirror.now()
    assert memory.mirror.status().pages == 3


@pytest.mark.promise("mirror.readable")
def test_related_ones_are_linked(memory: Memory, vault: Path) -> None:
    """By the names of their files, as Obsidian links."""
    memory.remember("The staging database of the shop listens on port 5433", path="staging.port")
    memory.remember("The staging database of the shop listens on port 5433 by night")
    memory.mirror.now()
    (file,) = (vault / "facts").iterdir()
    assert "[[memories/staging/port]]" in file.read_text()
    assert f"[[facts/{file.stem}]]" in (vault / "memories/staging/port.md").read_text()


@pytest.mark.promise("mirror.edits")
def test_an_edit_is_a_new_value_with_history(memory: Memory, vault: Path) -> None:
    """Words, tags and a note; line ends and a last empty line are no edit."""
    memory.remember("Staging listens on 5433", path="staging.port")
    memory.observe("Use uv for builds")
    memory.mirror.now()
    port, note = vault / "memories/staging/port.md", vault / "notes/Use uv for builds.md"
    save(port, port.read_text().replace("\n", "\r\n") + "\r\n\r\n")
    assert not memory.mirror.now()
    edit(port, "5433", "5439")
    edit(note, "uv for builds", "uv for everything")
    report = memory.mirror.now()
    assert set(report.edited) == {"memories/staging/port.md", "notes/Use uv for builds.md"}
    assert [one.text for one in memory.history("staging.port")] == [
        "Staging listens on 5433", "Staging listens on 5439",
    ]  # fmt: skip
    assert [one.text for one in memory.notes()] == ["Use uv for everything"]
    assert not memory.mirror.now()
    edit(port, "path: staging.port", "path: staging.port\ntags: [db, 'a, b']")
    memory.mirror.now()
    assert memory.list().items[0].tags == ("db", "a, b")
    assert len(memory.history("staging.port")) == 2


@pytest.mark.promise("mirror.edits")
def test_a_new_file_is_a_new_memory(memory: Memory, vault: Path) -> None:
    """Its place says what it is about; then it has an id. It may be moved and renamed."""
    save(vault / "memories/staging/host.md", "---\ntags:\n- db\n---\nStaging runs on db7\n")
    save(vault / "facts/anything.md", "Rafi likes tea")
    save(vault / "notes/n.md", "---\nkind: constraint\n---\nNo network in tests")
    save(vault / "elsewhere/other.md", "not ours")
    save(vault / ".obsidian/app.json", "{}")
    report = memory.mirror.now()
    assert len(report.added) == 3
    assert texts(memory) == {"staging.host": "Staging runs on db7", None: "Rafi likes tea"}
    assert [(one.kind, one.text) for one in memory.notes()] == [
        ("constraint", "No network in tests")
    ]
    assert "id: " in (vault / "facts/anything.md").read_text()
    assert (vault / "elsewhere/other.md").read_text() == "not ours"
    copy = vault / "facts/copy.md"
    save(copy, (vault / "facts/anything.md").read_text())
    assert [one.file for one in memory.mirror.now().problems] == ["facts/copy.md"]
    copy.unlink()
    (vault / "facts/tea").mkdir()
    (vault / "facts/anything.md").rename(vault / "facts/tea/Rafi.md")
    assert not memory.mirror.now()
    edit(vault / "facts/tea/Rafi.md", "tea", "coffee")
    assert memory.mirror.now().edited == ("facts/tea/Rafi.md",)
    assert texts(memory)[None] == "Rafi likes coffee"
    assert len(memory.list().items) == 2


@pytest.mark.promise("mirror.deletions")
def test_a_file_that_was_deleted_is_softly_forgotten(memory: Memory, vault: Path) -> None:
    """It can be had back, and then the file is there again; many at once are asked about."""
    for number in range(10):
        memory.remember(f"fact number {number}", path=f"fact.n{number}")
    memory.mirror.now()
    (vault / "memories/fact/n3.md").unlink()
    assert memory.mirror.now(dry_run=True).hidden == ("memories/fact/n3.md",)
    assert len(memory.list().items) == 10
    assert memory.mirror.now().hidden == ("memories/fact/n3.md",)
    assert "fact.n3" not in texts(memory)
    memory.undo_forget(memory.history("fact.n3")[0].id)
    assert memory.mirror.now().written == ("memories/fact/n3.md",)
    for file in (vault / "memories/fact").iterdir():
        file.unlink()
    with pytest.raises(MirrorError, match="10 of 10 files are gone") as caught:
        memory.mirror.now()
    assert caught.value.lasting
    assert len(memory.list().items) == 10
    assert "gone at once" in (memory.mirror.status().stopped or "")
    assert not all(check.ok for check in memory.doctor() if check.name == "mirror")
    assert len(memory.mirror.now(accept_deletions=True).hidden) == 10
    assert not memory.list().items
    assert memory.mirror.status().stopped is None


@pytest.mark.promise("mirror.deletions")
def test_what_is_forgotten_leaves_the_folder(memory: Memory, vault: Path) -> None:
    """Its file goes, with folders that are empty then; one that was edited meanwhile stays."""
    one = memory.remember("Zanzibar", path="guest.habit").id
    two = memory.remember("Staging listens on 5433", path="staging.port").id
    memory.mirror.now()
    memory.forget(one)
    memory.forget(two)
    edit(vault / "memories/staging/port.md", "5433", "6000")
    report = memory.mirror.now()
    assert report.removed == ("memories/guest/habit.md",)
    assert report.added == ("memories/staging/port.md",)
    assert not (vault / "memories/guest").exists()
    assert texts(memory) == {"staging.port": "Staging listens on 6000"}
    assert not any(b"Zanzibar" in file.read_bytes() for file in vault.rglob("*.md"))


@pytest.mark.promise("mirror.conflicts")
@pytest.mark.parametrize(("ago", "holds"), [(-HOUR, "file"), (HOUR, "home")])
def test_where_both_changed_both_are_kept(
    memory: Memory, vault: Path, ago: float, holds: str
) -> None:
    """What was said later holds, the other is history, and the report names the file."""
    memory.remember("Staging listens on 5433", path="staging.port")
    memory.mirror.now()
    memory.remember("Staging listens on 1111", path="staging.port")
    edit(vault / "memories/staging/port.md", "5433", "2222", ago=ago)
    (conflict,) = memory.mirror.now().conflicts
    assert (conflict.file, conflict.kept) == ("memories/staging/port.md", holds)
    said = [one.text for one in memory.history("staging.port")]
    assert {"Staging listens on 1111", "Staging listens on 2222"} <= set(said)
    held = "2222" if holds == "file" else "1111"
    assert texts(memory) == {"staging.port": f"Staging listens on {held}"}
    assert held in (vault / "memories/staging/port.md").read_text()
    assert not memory.mirror.now()
    memory.remember("Staging listens on 3333", path="staging.port")
    (vault / "memories/staging/port.md").unlink()
    report = memory.mirror.now()
    assert [one.kept for one in report.conflicts] == ["home"]
    assert "3333" in (vault / "memories/staging/port.md").read_text()


@pytest.mark.promise("mirror.safe")
def test_half_saved_and_unreadable_files_are_left_alone(memory: Memory, vault: Path) -> None:
    """They are named, nothing is forgotten for them, and an emptied one is filled again."""
    for name in ("a", "b", "c", "d"):
        memory.remember(f"value of {name}", path=f"x.{name}")
    memory.mirror.now()
    a, b, c, d = (vault / f"memories/x/{name}.md" for name in "abcd")
    save(a, "---\nid: half of the fro")
    c.write_bytes(b"\xff\xfe broken")
    save(d, "")
    with being_saved(b):
        report = memory.mirror.now()
    assert {one.file: one.reason for one in report.problems} == {
        "memories/x/a.md": "its front matter has no end",
        "memories/x/c.md": "it is not UTF-8 (byte 0)",
    }
    assert report.written == ("memories/x/d.md",)
    assert report.waiting == ("memories/x/b.md",)
    assert len(texts(memory)) == 4
    assert all(len(memory.history(f"x.{name}")) == 1 for name in "abcd")
    assert memory.mirror.status().problems == report.problems
    (check,) = [one for one in memory.doctor() if one.name == "mirror"]
    assert "memories/x/a.md" in check.detail
    save(a, (vault / "memories/x/d.md").read_text())
    assert any("the id of memories/x/d.md" in one.reason for one in memory.mirror.now().problems)


@pytest.mark.promise("mirror.safe")
def test_secrets_leave_the_file_too(memory: Memory, vault: Path) -> None:
    """What is redacted in the home is redacted in the file that it came from."""
    key = "sk-ant-api03-" + "Zq8" * 31
    save(vault / "facts/key.md", f"The key is {key}")
    memory.mirror.now()
    memory.mirror.now()
    assert key not in (vault / "facts/key.md").read_text()
    assert key not in texts(memory)[None]


@pytest.mark.promise("mirror.safe")
def test_what_cannot_be_is_refused(memory: Memory, vault: Path, tmp_path: Path) -> None:
    """A folder that is none, twice, inside the home, of an encrypted home; one that went away."""
    with pytest.raises(InvalidInput, match="leave it first"):
        memory.mirror.init(str(tmp_path / "other"))
    other = memory.scoped("other").mirror
    for folder, why in (
        ("relative", "absolute"),
        (str(memory.home / "in"), "inside the home"),
        (str(tmp_path / "no" / "where"), "folder"),
    ):
        with pytest.raises(InvalidInput, match=why):
            other.init(folder)
    with pytest.raises(InvalidInput, match="mirror init"):
        other.now()
    assert not other.start()
    memory.remember("The kettle is blue")
    memory.mirror.now()
    vault.rename(tmp_path / "away")
    with pytest.raises(MirrorError, match="not there") as caught:
        memory.mirror.now()
    assert not caught.value.lasting
    assert len(memory.list().items) == 1
    save(tmp_path / "away/facts/wrong.md", "---\ntype: nonsense\n---\nwords")
    (tmp_path / "away").rename(vault)
    (problem,) = memory.mirror.now().problems
    assert "type" in problem.reason
    memory.mirror.leave()
    assert memory.mirror.status().folder == ""
    assert (vault / "facts/The kettle is blue.md").exists()
    sealed = Memory.open(tmp_path / "sealed", embedder="hashing", warm=False, encrypt="file")
    with sealed:
        with pytest.raises(InvalidInput, match="encrypted"):
            sealed.mirror.init(str(tmp_path / "plain"))
        sealed.mirror.init(str(tmp_path / "plain"), plain=True)
        sealed.remember("The kettle is red")
        assert sealed.mirror.now().written


@pytest.mark.promise("mirror.background")
def test_in_the_background_and_one_process_at_a_time(memory: Memory, vault: Path) -> None:
    """What one says is a file by itself, and comes back from there; two at once do no harm."""
    told: list[Any] = []
    memory.on("mirror", told.append)
    memory.mirror.start(0.05)
    for number in range(5):
        memory.remember(f"fact number {number}", path=f"fact.n{number}")
    threads = [threading.Thread(target=memory.mirror.now) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file = vault / "memories/fact/n2.md"
    edit(file, "number 2", "number two")
    end = time.monotonic() + 30
    while texts(memory)["fact.n2"] != "fact number two":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert len(files_in(vault)) == 5
    assert [one.text for one in memory.history("fact.n2")] == ["fact number 2", "fact number two"]
    assert told


@pytest.mark.promise("mirror.surfaces")
def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin, compare, see, leave."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        done = run_cli(*words, home=tmp_path / "home")
        assert done.exit_code == 0, done.output
        return done.output

    run("remember", "Staging listens on 5433", "--path", "staging.port")
    run("mirror", "init", "vault")
    assert "1 file written" in run("mirror", "now")
    edit(tmp_path / "vault/memories/staging/port.md", "5433", "5439")
    assert "1 edit" in run("mirror", "now")
    assert "5439" in run("list")
    assert "1 file" in run("mirror", "status")
    run("mirror", "leave")
    assert "not mirrored" in run("mirror", "status")


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=60)


@pytest.mark.promise("mirror.readable")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(WORDS, st.one_of(st.none(), WORDS)), min_size=1, max_size=4))
def test_any_words_and_paths_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str | None]]
) -> None:
    """Whatever is said: one file each, nothing is an edit, and a lost ledger loses nothing."""
    place = tmp_path_factory.mktemp("any")
    with Memory.open(place / "home", embedder="hashing", warm=False) as memory:
        memory.mirror.init(str(place / "vault"))
        for text, path in said:
            try:
                memory.remember(text, path=path)
            except InvalidInput:
                continue
        memory.mirror.now()
        held = memory.list(limit=100).items
        assert len(files_in(place / "vault")) == len(held)
        for file in (place / "vault").rglob("*.md"):
            os.utime(file, (1e9, 1e9))
        assert not memory.mirror.now()
        memory.mirror.leave()
        memory.mirror.init(str(place / "vault"))
        assert not memory.mirror.now()
        assert memory.list(limit=100).items == held
