"""Fetching the public test sets: to where the measurements look, whole or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bench.datasets import FORMATS
from bench.datasets import __main__ as fetching


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A Git repository with a set in a folder of it."""
    folder = tmp_path / "authors"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "Chat_1.json").write_text("{}")
    (folder / "other.txt").write_text("x")
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "-m", "data")):
        subprocess.run(["git", "-C", folder, *words], check=True)
    return folder


def test_a_folder_and_a_file_come_to_their_places(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the set itself arrives, below conversations/, and what to run on it is said."""
    one = fetching.Source("chats", "run DIR", repository=repository.as_uri(), inside="data")
    file = fetching.Source("single", "run DIR", file=(repository / "other.txt").as_uri())
    monkeypatch.setattr(fetching, "SOURCES", {"one": one, "file": file})
    assert fetching.main(["one", "--to", str(tmp_path / "data")]) == 0
    assert fetching.main(["file", "--to", str(tmp_path / "data")]) == 0
    kept = sorted(p.relative_to(tmp_path / "data") for p in (tmp_path / "data").rglob("*.*"))
    assert [str(path) for path in kept] == [
        "conversations/chats/Chat_1.json",
        "conversations/single/other.txt",
    ]
    assert fetching.main(["one", "--to", str(tmp_path / "data")]) == 2


def test_what_cannot_be_fetched_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A place that is not there is an error in one line, and no half of a set stays."""
    gone = fetching.Source("gone", "", repository=(tmp_path / "nowhere").as_uri(), inside="data")
    monkeypatch.setattr(fetching, "SOURCES", {"gone": gone})
    assert fetching.main(["gone", "--to", str(tmp_path / "data")]) == 1
    assert "could not be fetched" in capsys.readouterr().err
    assert list((tmp_path / "data" / "conversations").iterdir()) == []


def test_every_set_has_a_reader_and_a_measurement() -> None:
    """What is fetched is of a format that the measurements read."""
    assert set(fetching.SOURCES) == set(FORMATS)
    for name, source in fetching.SOURCES.items():
        assert source.run.startswith(("python -m bench ", "python -m bench.measures "))
        assert (source.repository or source.file) in fetching.where_to_get(name)
        assert bool(source.repository) != bool(source.file)
