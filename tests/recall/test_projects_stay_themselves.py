"""A project is one wherever it lies; two of one name, or of one template, are two."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest
from tests.commands import program
from tests.sync.devices import devices, settle

from anaphora import Memory, WarmUp
from anaphora.errors import InvalidInput, NotFound

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="without git")
OURS, THEIRS = "git@example.org:mo/bakery.git", "git@example.org:mo/bakehouse.git"

SAID = (
    "We decided that the oven service talks gRPC on port 7443.",
    "We decided that invoices are rounded per line.",
    "We decided that the dough timer keeps its state in Redis.",
    "We decided that Mara signs every deploy off.",
)
DECIDED = "The ovens are painted blue."


def git(folder: Path, *arguments: str | Path) -> None:
    """Run git in a folder."""
    who = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "protocol.file.allow=always",
    )
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, remote: str = "") -> Path:
    """A repository with a commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", folder.name)
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def plain(folder: Path) -> Path:
    """A folder that is none."""
    folder.mkdir(parents=True)
    return folder


@dataclass(frozen=True, slots=True)
class Desk:
    """A memory, and folders to work in."""

    memory: Memory
    code: Path

    def say(self, name: str, directory: Path | str) -> None:
        """Hold a session in a folder, about its name."""
        text = SAID[len(self.memory.conversations.list()) % len(SAID)]
        self.memory.conversations.append(name, "user", text)
        self.memory.note_session([name], client="claude-code", directory=directory)

    def start(self, directory: Path | str) -> WarmUp:
        """What a session that begins in a folder is told."""
        return self.memory.warm_up(directory=str(directory))

    def shown(self, directory: Path | str) -> set[str]:
        """The sessions that one is told of."""
        return {session.id for session in self.start(directory).sessions}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """An empty memory of a user whose folder is beside the code."""
    monkeypatch.setenv("HOME", str(plain(tmp_path / "user")))
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        yield Desk(memory, plain(tmp_path / "code"))


def _bare_worktree(code: Path) -> Path:
    git(code, "clone", "-q", "--bare", repository(code / "seed"), code / "bakery.git")
    git(code / "bakery.git", "remote", "remove", "origin")
    git(code / "bakery.git", "worktree", "add", "-q", "-b", "one", code / "one")
    return code / "one"


def _other_worktree(old: Path) -> Path:
    git(old.parent / "bakery.git", "worktree", "add", "-q", "-b", "two", old.parent / "two")
    return old.parent / "two"


def _only_worktree(old: Path) -> Path:
    other = _other_worktree(old)
    git(old.parent / "bakery.git", "worktree", "remove", old)
    return other


def _in_worktree(old: Path) -> Path:
    git(old, "worktree", "add", "-q", "-b", "flour", old.parent / "flour")
    return old.parent / "flour"


def _broken_worktree(old: Path) -> Path:
    tree = _in_worktree(old)
    old.rename(old.parent / "bakehouse")
    return tree


def _after(*arguments: str) -> Callable[[Path], Path]:
    def change(old: Path) -> Path:
        git(old, *arguments)
        return old

    return change


def _initialised(old: Path) -> Path:
    git(old, "init", "-q")
    git(old, "remote", "add", "origin", OURS)
    return old


def _no_longer(old: Path) -> Path:
    shutil.rmtree(old / ".git")
    return old


def _linked_above(old: Path) -> Path:
    (old.parent.parent / "link").symlink_to(old.parent)
    return old.parent.parent / "link" / old.name


def _cloned(old: Path) -> Path:
    return repository(old.parent / "elsewhere" / "copy", OURS)


def _cloned_and_moved_to_another_owner(old: Path) -> Path:
    clone = _cloned(old)
    git(old, "remote", "set-url", "origin", THEIRS)
    git(clone, "remote", "set-url", "origin", THEIRS)
    return clone


def _collected(old: Path) -> Path:
    git(old, "reflog", "expire", "--expire=now", "--all")
    return old.rename(old.parent / "bakehouse")


SAME = [
    ("renamed", repository, lambda old: old.rename(old.parent / "bakehouse")),
    ("renamed, without its log", repository, _collected),
    ("moved", repository, lambda old: shutil.move(old, plain(old.parent / "deep"))),
    ("a worktree", repository, _in_worktree),
    ("a worktree whose repository was moved", repository, _broken_worktree),
    ("another worktree of a bare clone", "bare", _other_worktree),
    ("the worktree of a bare clone was removed", "bare", _only_worktree),
    ("the bare clone itself", "bare", lambda old: old.parent / "bakery.git"),
    ("a remote was added", repository, _after("remote", "add", "origin", OURS)),
    ("the remote was removed", OURS, _after("remote", "remove", "origin")),
    ("the remote was renamed", OURS, _after("remote", "rename", "origin", "upstream")),
    ("another owner", OURS, _after("remote", "set-url", "origin", THEIRS)),
    ("a plain folder became a repository", plain, _initialised),
    ("a repository became a plain folder", repository, _no_longer),
    ("through a link to a folder above", repository, _linked_above),
    ("through a link, plain", plain, _linked_above),
    ("a clone elsewhere", OURS, _cloned),
    ("a folder of a monorepo", repository, lambda old: plain(old / "packages" / "one")),
]


@pytest.mark.promise("sessions.places")
@pytest.mark.parametrize(("made", "change"), [row[1:] for row in SAME], ids=[r[0] for r in SAME])
def test_it_stays_one(desk: Desk, made: object, change: Callable[[Path], object]) -> None:
    """What was held, indexed and noted before a change of folder or repository is shown after."""
    folder, memory = desk.code / "bakery", desk.memory
    if made == "bare":
        folder = _bare_worktree(desk.code)
    elif callable(made):
        made(folder)
    else:
        repository(folder, str(made))
    desk.say("ovens", folder)
    project = memory.index_project(folder).project
    note = memory.observe(DECIDED, kind="decision", project=str(folder))
    new = str(change(folder))
    assert desk.shown(new) == {"ovens"}
    assert DECIDED in [decision.text for decision in desk.start(new).decisions]
    assert memory.notes(new) == (note,)
    assert memory.observe("Mara keeps the keys.", project=new).project == project
    if not folder.is_dir() or folder.samefile(new):
        # Else it is another checkout, with files of its own.
        assert memory.index_project(new).project == project
    assert [one.id for one in memory.projects()] == [project]


def test_it_stays_one_without_a_session(desk: Desk) -> None:
    """What was only indexed is known by its repository, its part of one, or by what was said."""
    old = repository(desk.code / "bakery")
    parts = [plain(old / "packages" / name) for name in ("one", "two")]
    loose = plain(desk.code / "loose")
    ids = [desk.memory.index_project(part).project for part in (*parts, loose)]
    new, other = old.rename(desk.code / "bakehouse"), loose.rename(desk.code / "other")
    report = desk.memory.index_project(new)
    assert report.project not in ids
    for name, project in zip(("one", "two"), ids, strict=False):
        assert desk.memory.index_project(new / "packages" / name).project == project
    assert "Files and notes of a folder named loose" in desk.start(other).question
    assert f"project same {loose} ." in str(desk.memory.index_project(other).degraded)
    desk.memory.remove_project(str(other))
    desk.memory.same_project(str(loose), str(other))
    assert not desk.start(other).question
    assert desk.memory.index_project(other).project == ids[-1]
    desk.memory.remove_project(str(other))
    assert not desk.start(plain(desk.code / "loose")).question


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("C:\\code\\x", "/mnt/c/code/x"),
        ("/mnt/c/code/x", "c:/Code/x"),
        ("C:\\code\\x", "c:\\code\\x"),
        ("C:\\code\\x", "/c/code/x"),
        ("\\\\wsl.localhost\\Ubuntu\\home\\mo\\x", "/home/mo/x"),
    ],
)
def test_a_folder_of_windows_has_many_spellings(desk: Desk, told: str, asked: str) -> None:
    """A drive's letter in either case, and where other systems mount it, are one folder."""
    desk.say("ovens", told)
    desk.say("other", told.replace("x", "y"))
    assert desk.shown(asked) == {"ovens"}


def test_a_history_of_identities_joins(desk: Desk) -> None:
    """No remote, then one, then another owner; a clone of the first remote stays with it."""
    old = repository(desk.code / "bakery")
    desk.say("first", old)
    git(old, "remote", "add", "origin", OURS)
    desk.say("second", old)
    desk.say("clone", repository(desk.code / "clone", OURS))
    git(old, "remote", "set-url", "origin", THEIRS)
    new = old.rename(desk.code / "bakehouse")
    assert desk.shown(new) == {"first", "second", "clone"}
    assert desk.shown(repository(desk.code / "fresh", THEIRS)) == set()
    desk.say("third", new)
    assert desk.shown(desk.code / "fresh") == {"first", "second", "clone", "third"}


def _two_of_one_name(code: Path) -> tuple[Path, Path]:
    return repository(code / "acme" / "api"), repository(code / "zeta" / "api")


def _submodule(code: Path) -> tuple[Path, Path]:
    seed, top = repository(code / "seed"), repository(code / "shop")
    git(top, "submodule", "--quiet", "add", str(seed), "inner")
    return top, top / "inner"


def _nested(code: Path) -> tuple[Path, Path]:
    top = repository(code / "shop")
    return top, repository(top / "inner")


def _of_template(code: Path) -> tuple[Path, Path]:
    template = repository(code / "template")
    for name in ("one", "two"):
        git(code, "clone", "-q", template, code / name)
        git(code / name, "remote", "set-url", "origin", f"git@example.org:mo/{name}.git")
    return code / "one", code / "two"


def _copied(code: Path) -> tuple[Path, Path]:
    one = repository(code / "one")
    shutil.copytree(one, code / "two")
    return one, code / "two"


def _dotfiles(code: Path) -> tuple[Path, Path]:
    git(Path(os.environ["HOME"]), "init", "-q")
    git(Path(os.environ["HOME"]), "remote", "add", "origin", "git@example.org:mo/dots.git")
    return plain(Path(os.environ["HOME"]) / "x"), plain(Path(os.environ["HOME"]) / "y")


TWO = [_two_of_one_name, _submodule, _nested, _of_template, _copied, _dotfiles]


@pytest.mark.parametrize("make", TWO)
def test_two_stay_two(desk: Desk, make: Callable[[Path], tuple[Path, Path]]) -> None:
    """Neither is told of the other's sessions."""
    one, two = make(desk.code)
    desk.say("one", one)
    question = desk.start(two).question
    assert ("copy" in question) == (make is _copied)
    desk.say("two", two)
    assert (desk.shown(one), desk.shown(two)) == ({"one"}, {"two"})
    desk.memory.index_project(one)
    desk.memory.observe(DECIDED, kind="decision", project=str(one))
    assert DECIDED in [decision.text for decision in desk.start(one).decisions]
    assert DECIDED not in [decision.text for decision in desk.start(two).decisions]
    with pytest.raises(NotFound):
        desk.memory.notes(str(two))


def test_clones_of_a_template_part_with_their_remotes(desk: Desk) -> None:
    """Sessions held before a clone got a remote of its own do not join it to others."""
    for name in ("one", "two"):
        repository(desk.code / name, OURS)
        desk.say(f"{name} before", desk.code / name)
        git(desk.code / name, "remote", "set-url", "origin", f"git@example.org:mo/{name}.git")
        desk.say(f"{name} after", desk.code / name)
    assert desk.shown(desk.code / "one") == {"one before", "one after"}
    assert desk.shown(desk.code / "two") == {"two before", "two after"}


def test_a_new_repository_under_an_old_name(desk: Desk) -> None:
    """A folder was renamed, and another made in its place: each has its own sessions."""
    old = repository(desk.code / "bakery")
    desk.say("old", old)
    new = old.rename(desk.code / "bakehouse")
    repository(old)
    assert desk.shown(new) == {"old"}
    assert desk.shown(old) == set()
    assert "another repository that lay in this folder" in desk.start(old).question
    desk.say("new", old)
    assert (desk.shown(old), desk.shown(new)) == ({"new"}, {"old"})
    desk.memory.same_project(str(old), str(old))
    assert desk.shown(old) == {"new", "old"}


@pytest.mark.parametrize("new", ["other/bakery", "bakehouse"])
def test_what_cannot_be_known_is_asked(desk: Desk, new: str) -> None:
    """A plain folder was moved or renamed: one line asks, and one call joins the two."""
    old = plain(desk.code / "bakery")
    desk.say("ovens", old)
    plain(desk.code / "unlike" / "folder")
    (desk.code / new).parent.mkdir(exist_ok=True)
    moved = old.rename(desk.code / new)
    told = desk.start(moved)
    assert (told.sessions, told.question) == (
        (),
        f"Sessions of a folder named bakery at {old} (no longer there) are stored; if this is the "
        f"same project: anaphora project same {old} .",
    )
    assert not desk.start(desk.code / "unlike" / "folder").question
    pair = desk.memory.same_project(str(old), str(moved))
    assert (pair.same, pair.sessions) == (True, 1)
    assert desk.shown(moved) == {"ovens"}
    assert not desk.start(moved).question
    desk.memory.same_project(str(moved), str(old), same=False)
    assert desk.shown(moved) == set()
    assert not desk.start(moved).question


def test_no_question_about_folders_that_are_there(desk: Desk) -> None:
    """Two folders of one name are two; where nothing was held nothing is asked."""
    one, two = plain(desk.code / "acme" / "api"), plain(desk.code / "zeta" / "api")
    assert not desk.start(one).question
    desk.say("acme", one)
    assert not desk.start(two).question


def test_two_clones_can_be_kept_apart(desk: Desk) -> None:
    """What a person says wins over a remote, by a name as well; a name of two is refused."""
    one, two = (repository(desk.code / name, OURS) for name in ("left", "right"))
    desk.say("one", one)
    desk.say("two", two)
    assert desk.shown(one) == {"one", "two"}
    desk.memory.same_project(str(one), str(two), same=False)
    assert (desk.shown(one), desk.shown(two)) == ({"one"}, {"two"})
    desk.memory.same_project(str(one), str(two))
    assert desk.shown(two) == {"one", "two"}
    for who in ("acme", "zeta"):
        desk.say(who, plain(desk.code / who / "api"))
    desk.memory.same_project("bakery", str(desk.code / "acme" / "api"))
    assert desk.shown(two) == {"one", "two", "acme"}
    with pytest.raises(InvalidInput, match="name one of"):
        desk.memory.same_project("api", str(one))
    with pytest.raises(InvalidInput, match="no session"):
        desk.memory.same_project("nowhere", str(one))


def test_places_travel_in_an_export(desk: Desk, tmp_path: Path) -> None:
    """Marks and what was said are read back; places of older builds have no marks."""
    old, gone = repository(desk.code / "bakery"), plain(desk.code / "gone")
    desk.say("ovens", old)
    desk.say("before", gone)
    gone.rmdir()
    desk.memory.same_project(str(gone), str(old))
    desk.memory.export(tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    older = [
        {name: member for name, member in line.items() if name != "marks"}
        for line in lines
        if line.get("kind") != "project_pair"
    ]
    (tmp_path / "older.jsonl").write_text("".join(json.dumps(line) + "\n" for line in older))
    new = old.rename(desk.code / "bakehouse")
    with Memory.open(tmp_path / "second", embedder="hashing") as memory:
        for _ in range(2):
            memory.import_(tmp_path / "all.jsonl")
        second = Desk(memory, desk.code)
        assert second.shown(new) == {"ovens", "before"}
    with Memory.open(tmp_path / "third", embedder="hashing") as memory:
        memory.import_(tmp_path / "older.jsonl")
        third = Desk(memory, desk.code)
        assert not third.shown(new)
        assert f"project same {old} ." in third.start(new).question
        assert third.shown(new.rename(old)) == {"ovens"}


def test_devices_know_what_was_said(desk: Desk, tmp_path: Path) -> None:
    """Joined on one device, two projects are one on the other, and apart again: the last statement
    counts, though its clock is behind."""
    old, new = plain(desk.code / "bakery"), desk.code / "bakehouse"
    with devices(tmp_path, 2, lambda number: 3600.0 * number) as memories:
        laptop, desktop = (Desk(memory, desk.code) for memory in memories)
        laptop.say("ovens", old)
        old.rename(new)
        settle(memories)
        assert f"project same {old} ." in desktop.start(new).question
        for sender, same in ((desktop, True), (laptop, False), (desktop, True), (laptop, False)):
            sender.memory.same_project(str(old), str(new), same=same)
            settle(memories)
            for one in (laptop, desktop):
                assert (one.shown(new), one.start(new).question) == (
                    {"ovens"} if same else set(),
                    "",
                )


def test_processes_on_one_database_know_what_was_said(
    desk: Desk, tmp_path: Path, postgresql_url: str
) -> None:
    """Commands of other processes, each with a home of its own, join two projects in PostgreSQL,
    and take it back."""
    old, new = plain(desk.code / "bakery"), desk.code / "bakehouse"

    def begin(number: int, *arguments: str) -> subprocess.Popen[str]:
        environment = os.environ | {
            "ANAPHORA_HOME": str(tmp_path / f"home{number}"),
            "ANAPHORA_DATABASE": postgresql_url,
            "ANAPHORA_EMBEDDER": "hashing",
        }
        command = [*program(), "project", *arguments, str(old), "."]
        return subprocess.Popen(
            command, cwd=new, env=environment, text=True, stdout=PIPE, stderr=STDOUT
        )

    with Memory.open(tmp_path / "here", database=postgresql_url, embedder="hashing") as memory:
        here = Desk(memory, desk.code)
        here.say("ovens", old)
        project = memory.index_project(old).project
        old.rename(new)
        assert here.shown(new) == set()
        both = [begin(number, "same") for number in range(2)]
        told = [process.communicate()[0] for process in both]
        assert [process.returncode for process in both] == [0, 0], told
        assert "are one project; 1 session" in told[0]
        assert here.shown(new) == {"ovens"}
        assert memory.index_project(new).project == project
        told_apart, _ = begin(0, "apart").communicate()
        assert "are two projects" in told_apart
        assert here.shown(new) == set()


def test_labels_of_two_projects_of_one_name(desk: Desk) -> None:
    """What was kept under a common label is shown where it was said, and contradicts nothing."""
    folders = [repository(desk.code / who / "api") for who in ("acme", "zeta")]
    for folder, who in zip(folders, ("Mara", "Ben"), strict=True):
        desk.say(folder.parent.name, folder)
        text = f"api: deploys of {folder.parent.name} need the sign-off of {who}."
        kept = desk.memory.remember(text, type="procedural", source=str(folder))
        assert not kept.conflicts
    desk.memory.ready()
    for folder, own, other in zip(folders, ("Mara", "Ben"), ("Ben", "Mara"), strict=True):
        shown = " ".join(memory.text for memory in desk.start(folder).core)
        assert own in shown
        assert other not in shown
