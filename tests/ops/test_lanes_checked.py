"""Doctor, stats and repair know projects, notes, gaps, jobs, models and the sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.deep.asking import Script

from anaphora import Check, Memory

from .lanes_desk import live, opened, project_at, said


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project_at(tmp_path / "kestrel")


@pytest.fixture
def script() -> Script:
    return Script(name="a-model")


@pytest.fixture
def memory(tmp_path: Path, clock: Clock, script: Script) -> Iterator[Memory]:
    with opened(tmp_path / "home", clock, script) as made:
        yield made


def looked_at(memory: Memory, *, repair: bool = False) -> dict[str, list[Check]]:
    found: dict[str, list[Check]] = {}
    for check in memory.doctor(repair=repair):
        found.setdefault(check.name, []).append(check)
    return found


@pytest.mark.promise("care.lanes")
def test_everything_is_counted(memory: Memory, root: Path, script: Script, clock: Clock) -> None:
    """Projects, files, sections, notes, open gaps, jobs and traces, each once."""
    empty = memory.stats()
    assert (empty.projects, empty.notes, empty.gaps, empty.traces) == (0, 0, 0, 0)
    live(memory, root, script, clock)
    memory.end_session("tea")
    found = memory.stats()
    assert (found.projects, found.files) == (1, 3)
    assert found.sections == memory.projects()[0].sections == 4
    assert (found.notes, found.gaps, found.jobs, found.traces) == (3, 1, 2, 2)
    assert found.sections_pending == 0
    details = {name: checks[0].detail for name, checks in looked_at(memory).items()}
    assert details["projects"] == f"1 project, 3 files, {found.sections} sections"
    assert details["project notes"] == "3 notes, 1 of them in the diary, and 1 of the past"
    assert details["deep recall"].startswith("1 open gaps, 2 jobs")
    assert details["models"] == "a-model writes the searches, a-model reads"
    assert memory.scoped("beside").stats().sections == 0


@pytest.mark.promise("care.lanes")
def test_the_doctor_says_what_a_user_should_know(
    memory: Memory, root: Path, script: Script, clock: Clock
) -> None:
    """A folder that is gone is said and is no failure; vectors that lack are counted."""
    live(memory, root, script, clock)
    (root / "more.md").write_text("# Plumage\n\nIridescent.\n")
    memory.index_project(root, embed=False)
    assert memory.stats().sections_pending == 1
    found = looked_at(memory)
    assert "1 vectors pending" in found["projects"][0].detail
    assert "1 without a vector" in found["section index"][0].detail
    shutil.rmtree(root)
    first, second = looked_at(memory)["projects"]
    assert first.ok
    assert second.ok
    assert str(root) in second.detail
    assert "does not exist" in second.detail


@pytest.mark.promise("care.lanes")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="walls are those of Linux")
def test_the_walls_of_the_sandbox_are_findings(memory: Memory) -> None:
    """Each wall is named with whether it stands; without models none is missed."""
    found = looked_at(memory)
    assert found["sandbox"][0].ok
    assert found["sandbox.interpreter"][0].detail.startswith("stands")


@pytest.mark.enable_socket
def test_a_model_that_cannot_answer_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding names the model and what lacks, or where nobody is; a key is never shown."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Memory.open(tmp_path, embedder="hashing", model="openai:gpt-none") as memory:
        (check,) = looked_at(memory)["models"]
        assert not check.ok
    monkeypatch.setenv("ANAPHORA_MODEL_KEY", "sk-not-to-be-shown")
    monkeypatch.setenv("ANAPHORA_MODEL_URL", "http://127.0.0.1:9/v1")
    with Memory.open(tmp_path, embedder="hashing", model="openai:gpt-none") as memory:
        (check,) = looked_at(memory)["models"]
        assert not check.ok
        assert "gpt-none" in check.detail
        assert "at http://127.0.0.1:9/v1 (ANAPHORA_MODEL_URL)" in check.detail
        assert "not-to-be-shown" not in check.detail


@pytest.mark.promise("care.repair")
@pytest.mark.parametrize("way", ["ready", "close"])
def test_a_section_index_that_was_lost_is_made_again_by_using_it(
    tmp_path: Path, root: Path, script: Script, clock: Clock, way: str
) -> None:
    """What a full disk has cost a small home is made again when there is room, without a repair."""
    with opened(tmp_path / "home", clock, script) as memory:
        live(memory, root, script, clock)
        assert memory.ready(60)
        before = said(memory)
    (tmp_path / "home" / "index" / "default" / "context" / "words.sqlite").unlink()
    with opened(tmp_path / "home", clock) as memory:
        assert said(memory) == before
        if way == "ready":
            assert memory.ready(60)
            assert looked_at(memory)["section index"][0].ok
    with opened(tmp_path / "home", clock) as memory:
        (check,) = looked_at(memory)["section index"]
        assert check.ok, check
        assert said(memory) == before


@pytest.mark.promise("care.repair")
@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_broken_section_index_is_made_again(
    tmp_path: Path, root: Path, script: Script, clock: Clock, damage: str
) -> None:
    """The doctor names it, answers stay right meanwhile, and a repair makes it whole."""
    with opened(tmp_path / "home", clock, script) as memory:
        live(memory, root, script, clock)
        assert memory.ready(60)
        before = said(memory)
    words = tmp_path / "home" / "index" / "default" / "context" / "words.sqlite"
    words.write_bytes(words.read_bytes()[:40] if damage == "cut" else os.urandom(64))
    with opened(tmp_path / "home", clock) as memory:
        (check,) = looked_at(memory)["section index"]
        assert not check.ok, check
        assert "--repair" in check.detail
        assert said(memory) == before
        mended, after = looked_at(memory, repair=True)["section index"]
        assert mended.ok, mended
        assert "made again" in mended.detail
        assert after.ok, after
        assert said(memory) == before
    with opened(tmp_path / "home", clock) as memory:
        assert looked_at(memory)["section index"][0].ok
