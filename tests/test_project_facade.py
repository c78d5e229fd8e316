"""Project memory through the facade: index, notes, a package for a task, a session's beginning."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from anaphora import Memory, RecallPackage, Vectors
from anaphora.errors import InvalidInput, NotFound
from anaphora.testing import WordHashingEmbedder, run_cli

FILES = {
    "README.md": "# Heron\n\nKeeps herons.\n\n## Install\n\nRun `make nest`.\n",
    "pyproject.toml": '[project]\nname = "heron"\ndependencies = ["requests"]\n',
    "src/heron/nest.py": (
        '"""Where herons live."""\n\nimport requests\n\n\nclass Nest:\n'
        '    """Twigs and eggs."""\n\n    def add_egg(self, weight):\n'
        '        """Lay an egg of so many grams."""\n        return weight\n'
    ),
    "src/heron/flight.py": (
        '"""How herons fly."""\n\nfrom heron.nest import Nest\n\n\n'
        'def glide(wind):\n    """Go down slowly against the wind."""\n    return Nest()\n'
    ),
    "tests/test_nest.py": (
        "from heron.nest import Nest\n\n\ndef test_eggs():\n    assert Nest().add_egg(3) == 3\n"
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "heron"
    for path, text in FILES.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return place


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


def paths(package: RecallPackage) -> list[str]:
    return [target.path for target in package.primary_targets]


@pytest.mark.promise("project.package")
def test_a_task_gets_the_right_files(memory: Memory, root: Path) -> None:
    """The file that defines what the focus names comes first, with its lines and its reason."""
    report = memory.index_project(root)
    assert (report.name, report.files, report.pending) == ("heron", len(FILES), 0)
    package = memory.recall_context("the weight of an egg is wrong in `Nest.add_egg`")
    first = package.primary_targets[0]
    assert first.path == "src/heron/nest.py"
    lines = (root / first.path).read_text().splitlines()
    assert first.start_line is not None
    assert "add_egg" in "\n".join(lines[first.start_line - 1 : first.end_line])
    assert "add_egg" in first.reason
    assert package.quality in {"strong", "partial"}
    assert package.tokens <= package.budget
    words = ("project", "recall", "the weight of an egg is wrong in `Nest.add_egg`", "--block")
    assert "src/heron/nest.py" in run_cli(*words, home=memory.home).stdout


@pytest.mark.promise("project.fresh")
def test_a_changed_file_is_seen_by_the_next_question(memory: Memory, root: Path) -> None:
    """Without another pass a file that was changed, added or deleted counts with the next focus."""
    memory.index_project(root)
    (root / "src/heron/moult.py").write_text('def drop_feathers():\n    """Every summer."""\n')
    assert paths(memory.recall_context("drop_feathers in summer"))[0] == "src/heron/moult.py"
    (root / "src/heron/nest.py").unlink()
    assert "src/heron/nest.py" not in paths(memory.recall_context("Nest add_egg"))


@pytest.mark.promise("project.fresh")
def test_vectors_that_are_lacking_come_behind_the_first_question(
    memory: Memory, root: Path
) -> None:
    """Words answer at once and say what is lacking; nobody has to ask for it to be made."""
    assert memory.index_project(root, embed=False).pending > 0
    first = memory.recall_context("weight of an egg")
    assert paths(first)[0] == "src/heron/nest.py"
    assert any("no vector yet" in one.reason for one in first.degraded)
    assert any(not memory.recall_context("weight of an egg").degraded for _ in range(2_000))


class Held(WordHashingEmbedder):
    """Notes what it embeds of the project, in order, once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """As hashed words are, when it may."""
        told = [text for text in texts if "def stride" in text]
        if told:
            self.go.wait(30)
        self.texts.extend(told)
        return super().embed(texts)


def many(place: Path, count: int) -> Path:
    """A project of so many files, each of which imports the one before."""
    (place / "wader").mkdir(parents=True)
    for number in range(count):
        text = f"import wader.step{number - 1}\n\n\ndef stride{number}():\n    return {number}\n"
        (place / f"wader/step{number}.py").write_text(text)
    # What changed within the last two seconds is looked at again.
    for one in (place, *place.rglob("*")):
        os.utime(one, (1_700_000_000, 1_700_000_000))
    return place


@pytest.mark.promise("project.large")
@pytest.mark.parametrize(
    "program",
    ["python-that-is-not-there", f"python-that-cannot-be-looked-at{'-' * 255}", "python-that-ends"],
)
def test_many_files_are_the_same_without_another_process(
    program: str, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no helper can be had, or it dies, one process reads and cuts all files."""
    root = many(tmp_path / "wader", 320)
    whole = memory.index_project(root, embed=False)
    if program.endswith("ends"):
        (tmp_path / program).write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / program))
    with Memory.open(tmp_path / "alone", embedder="hashing") as alone:
        report = alone.index_project(root, embed=False)
        counts = ("files", "sections", "entities", "relations", "added")
        assert [getattr(report, one) for one in counts] == [getattr(whole, one) for one in counts]
        asked = "where is stride42 made?"
        assert paths(alone.recall_context(asked)) == paths(memory.recall_context(asked))


@pytest.mark.promise("project.order_of_use")
def test_vectors_of_what_a_question_found_come_first(tmp_path: Path) -> None:
    """Of many sections those that match a question are embedded before all others."""
    held = Held()
    with Memory.open(tmp_path / "home", embedder=held) as memory:
        report = memory.index_project(many(tmp_path / "wader", 200), embed=False)
        assert report.pending > 128
        first = memory.recall_context("where is stride173 made?")
        assert paths(first)[0] == "wader/step173.py"
        assert any("no vector yet" in one.reason for one in first.degraded)
        held.go.set()
        assert memory.ready()
        assert any("stride173" in text for text in held.texts[:8])
        # What was embedded for the question was not embedded again.
        assert len(held.texts) == len(set(held.texts)) == report.pending
        assert not memory.recall_context("where is stride173 made?").degraded


@pytest.mark.promise("project.index")
def test_a_project_is_found_by_words_before_its_vectors_are_made(
    memory: Memory, tmp_path: Path
) -> None:
    """Few vectors are made before the call returns, the others behind it."""
    report = memory.index_project(many(tmp_path / "wader", 200))
    assert 0 < report.pending < report.sections
    assert paths(memory.recall_context("where is stride42 made?"))[0] == "wader/step42.py"
    assert memory.ready()
    assert not memory.recall_context("where is stride42 made?").degraded


@pytest.mark.promise("project.large")
def test_of_many_files_one_that_changes_is_seen_with_its_symbols(
    memory: Memory, tmp_path: Path
) -> None:
    """A new function and a new import are in the graph with the next question."""
    root = many(tmp_path / "wader", 320)
    memory.index_project(root)
    file = root / "wader/step7.py"
    file.write_text(file.read_text() + "\n\ndef preen():\n    from wader import step300\n")
    package = memory.recall_context("what calls `preen`?", include_sources=True)
    assert paths(package)[0] == "wader/step7.py"
    assert not any(one.part == "graph" for one in package.degraded)
    told = {(one.subject, one.predicate, one.object) for one in package.graph}
    assert ("wader/step7.py", "imports", "wader/step300.py") in told
    assert ("wader/step7.py", "imports", "wader/step6.py") in told
    file.write_text(file.read_text().partition("\n\ndef preen")[0])
    package = memory.recall_context("`stride7`", include_sources=True)
    told = {(one.subject, one.predicate, one.object) for one in package.graph}
    assert ("wader/step7.py", "imports", "wader/step6.py") in told
    assert ("wader/step7.py", "imports", "wader/step300.py") not in told


@pytest.mark.promise("project.large")
def test_of_many_files_one_that_comes_is_seen_and_what_others_say_of_it_follows(
    memory: Memory, tmp_path: Path
) -> None:
    """Words and symbols answer at once; relations of other files come behind, and that is told."""
    root = many(tmp_path / "wader", 320)
    (root / "wader/bill.py").write_text("import wader.step320\n\n\ndef probe():\n    pass\n")
    memory.index_project(root)
    (root / "wader/step320.py").write_text("def stride320():\n    return 320\n")
    first = memory.recall_context("`stride320`", include_sources=True)
    assert paths(first)[0] == "wader/step320.py"
    assert any(one.part == "graph" for one in first.degraded)
    memory.ready()
    then = memory.recall_context("`stride320`", include_sources=True)
    assert not any(one.part == "graph" for one in then.degraded)
    told = {(one.subject, one.predicate, one.object) for one in then.graph}
    assert ("wader/bill.py", "imports", "wader/step320.py") in told
    (root / "wader/step320.py").unlink()
    assert "wader/step320.py" not in paths(memory.recall_context("`stride320`"))
    memory.ready()
    assert not memory.recall_context("`stride319`").degraded


@pytest.mark.promise("project.notes")
def test_notes_come_back_and_are_superseded(memory: Memory, root: Path) -> None:
    """A decision is recalled with the files it names; what it replaced is history alone."""
    memory.index_project(root)
    old = memory.observe("Eggs are weighed in ounces, see `src/heron/nest.py`.", kind="decision")
    new = memory.observe(
        "Eggs are weighed in grams, see `src/heron/nest.py`.",
        kind="decision",
        importance=5,
        supersedes=old.id,
    )
    package = memory.recall_context("how are eggs weighed?")
    assert new.id in [one.id for one in package.memories]
    assert old.id not in [one.id for one in package.memories]
    assert not package.history
    before = memory.recall_context("why were the units in which eggs are weighed changed?")
    assert any("ounces" in one.text for one in before.history)


@pytest.mark.promise("project.notes")
def test_notes_of_every_kind_are_checked(memory: Memory) -> None:
    """A note says what is wrong with it; a secret in it is taken out, and the result says so."""
    for bad in (
        {"kind": "rumour"},
        {"importance": 0},
        {"importance": 6},
        {"importance": True},
        {"tags": "one"},
        {"tags": [""]},
    ):
        with pytest.raises(InvalidInput):
            memory.observe("Something.", **bad)
    with pytest.raises(InvalidInput):
        memory.observe("  ")
    with pytest.raises(InvalidInput):
        memory.write_diary("Done.", subject=" ")
    with pytest.raises(NotFound):
        memory.observe("Something.", supersedes="nobody")
    with pytest.raises(NotFound):
        memory.observe("Something.", project="nowhere")
    made = memory.observe("The key is AKIAIOSFODNN7EXAMPLE for staging.")
    assert made.redacted
    assert "AKIA" not in made.text


@pytest.mark.promise("project.notes")
def test_the_same_note_is_kept_once(memory: Memory) -> None:
    """A note that is said again is the note that is there."""
    first = memory.observe("Tabs, not spaces.", kind="preference")
    again = memory.observe("Tabs, not spaces.", kind="preference")
    other = memory.observe("Tabs, not spaces.", kind="constraint")
    assert (again.id == first.id, other.id == first.id) == (True, False)


@pytest.mark.promise("project.notes")
def test_notes_are_listed_apart_and_recalled_together(memory: Memory) -> None:
    """A list of memories shows no notes; recall shows both, and the diary; packages no memories."""
    memory.observe("Herons like frogs.", kind="fact")
    memory.write_diary("Watched herons eat frogs.")
    memory.remember("Herons like fish.")
    assert [record.text for record in memory.list()] == ["Herons like fish."]
    recalled = {hit.text for hit in memory.recall("herons", top_k=9)}
    assert recalled == {"Herons like fish.", "Herons like frogs.", "Watched herons eat frogs."}
    package = memory.recall_context("herons")
    assert "Herons like fish." not in {note.text for note in package.memories}
    assert "Herons like frogs." in {note.text for note in package.memories}


@pytest.mark.promise("project.forget")
@pytest.mark.parametrize("soft", [False, True])
def test_a_note_is_forgotten(memory: Memory, tmp_path: Path, soft: bool) -> None:
    """A forgotten note leaves recall; forgotten for good, no file of the home has its words."""
    old = memory.observe("The heron's name is Xanthippe.")
    new = memory.observe("The heron's name is Xanthippe II.", supersedes=old.id)
    memory.recall_context("what is the heron's name?")
    done = memory.forget(new.id, soft=soft)
    assert set(done.ids) == {old.id, new.id}
    assert memory.recall_context("what is the heron's name?").memories == ()
    assert memory.forget(filters={"tags": {"contains": "nobody"}}).count == 0
    with pytest.raises(NotFound):
        memory.forget("nobody")
    memory.close()
    left = [
        p for p in (tmp_path / "home").rglob("*") if p.is_file() and b"nthipp" in p.read_bytes()
    ]
    assert bool(left) == soft


@pytest.mark.promise("project.warm_up")
def test_a_session_begins_warm(memory: Memory, root: Path) -> None:
    """Constraints, preferences, decisions, the diary and the shape of the project come first."""
    assert memory.warm_up().tokens >= 0
    memory.index_project(root)
    memory.observe("Never touch the eggs at night.", kind="constraint", importance=5)
    old = memory.observe("Fly south in May.", kind="decision")
    memory.observe("Fly south in June.", kind="decision", supersedes=old.id)
    memory.write_diary("Built half of the nest; twigs are missing.", subject="nest")
    warm = memory.warm_up()
    assert [one.text for one in warm.constraints] == ["Never touch the eggs at night."]
    assert [one.text for one in warm.decisions] == ["Fly south in June."]
    assert [one.text for one in warm.diary] == ["Built half of the nest; twigs are missing."]
    assert any("heron" in line for line in warm.shape)
    assert (
        "Fly south in May." not in run_cli("project", "warm-up", "--block", home=memory.home).stdout
    )
    topic = memory.warm_up("how herons glide against the wind").topic
    assert topic is not None
    assert paths(topic)[0] == "src/heron/flight.py"


@pytest.mark.promise("project.trouble")
@pytest.mark.parametrize(
    "focus",
    [
        "the of and",
        "???",
        "quantum chromodynamics lattice",
        "什么 是 量子",
        'NEAR("a" b) AND * OR ^ -x:"',
        "lorem ipsum dolor " * 3000,
    ],
)
def test_a_focus_without_evidence_gets_none(memory: Memory, root: Path, focus: str) -> None:
    """What the project has no word of gives a weak package without targets, never a guess."""
    memory.index_project(root)
    package = memory.recall_context(focus)
    assert (package.quality, package.primary_targets, package.memories) == ("weak", (), ())


@pytest.mark.promise("project.trouble")
def test_odd_projects_have_a_clear_outcome(memory: Memory, tmp_path: Path, root: Path) -> None:
    """No folder, no files, a folder that went: each is said, and nothing breaks."""
    with pytest.raises(InvalidInput):
        memory.index_project(tmp_path / "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert memory.index_project(empty).files == 0
    assert memory.recall_context("anything at all").quality == "weak"
    memory.index_project(root)
    root.rename(tmp_path / "moved")
    package = memory.recall_context("Nest add_egg")
    assert paths(package)
    assert any(part.part == "project" for part in package.degraded)
    with pytest.raises(NotFound):
        memory.recall_context("eggs", project="nowhere")
    assert memory.remove_project("heron") > 0
    assert memory.recall_context("Nest add_egg").primary_targets == ()
    assert [project.name for project in memory.projects()] == ["empty"]


@pytest.mark.promise("project.package")
def test_signals_are_shown_when_asked(memory: Memory, root: Path) -> None:
    """With sources every target shows the six signals of its score; without, none."""
    memory.index_project(root)
    plain = memory.recall_context("Nest add_egg")
    assert plain.primary_targets[0].signals == {}
    told = memory.recall_context("Nest add_egg", include_sources=True)
    assert set(told.primary_targets[0].signals) >= {
        "words",
        "meaning",
        "confidence",
        "recency",
        "size",
        "role_fit",
    }
