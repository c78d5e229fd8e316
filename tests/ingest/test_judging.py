"""The judge of pairs: who judges what, and what it does without its model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.ingest.small_judge import make_judge, make_trees, pair_of

from anaphora.errors import ReaderError
from anaphora.ingest import judging
from anaphora.ingest.judging import STACK_FILE, TREES_FILE, PairJudge
from anaphora.reading.model import MANIFEST_FILE, MODEL_FILE, Reader

OLDER = "Kim owns the blue van."
CHANGED = pair_of(OLDER, "Rafi owns the blue van now.", 0.8)
INSTEAD = pair_of(OLDER, "Rafi owns the blue van instead.", 0.8)
FOREIGN = pair_of(
    "Kim hat den Transporter und das Auto.", "Rafi hat jetzt den Transporter und das Auto.", 0.8
)
APART = pair_of(OLDER, "Kim cleaned the office plant again.", 0.4)
PAIRS = [CHANGED, INSTEAD, FOREIGN, APART]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judge(tmp_path_factory.mktemp("judge"))


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """A folder that a test may damage."""
    return Path(shutil.copytree(folder, tmp_path / "judge"))


def test_the_model_reads_what_features_leave_undecided(folder: Path) -> None:
    """In English; of other languages features alone judge."""
    judge = PairJudge(folder)
    changed, instead, foreign, apart = judge.judge(PAIRS)
    by_features = judge.judge_features(PAIRS)
    assert by_features[0].replaces > 0.8
    assert changed.replaces < 0.2
    assert instead.replaces > 0.8
    assert foreign == by_features[2]
    assert foreign.replaces > 0.8
    assert 0.0 <= apart.replaces < 0.2
    assert judge.check() is None
    assert judge.judge([]) == judge.judge_features([]) == []


def test_without_a_model_features_judge_and_it_is_said(tmp_path: Path) -> None:
    judge = PairJudge(make_trees(tmp_path))
    assert judge.judge(PAIRS) == judge.judge_features(PAIRS)
    assert isinstance(judge.check(), ReaderError)
    assert "manifest" in str(judge.check())


def test_the_model_is_not_loaded_before_there_is_a_doubt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def note(model: Path, **options: int) -> Reader:
        opened.append(model)
        return Reader(model, **options)

    monkeypatch.setattr("anaphora.ingest.judging.Reader", note)
    judge = PairJudge(folder)
    judge.judge([FOREIGN, pair_of(OLDER, "Who owns the blue van?", 0.8)])
    assert opened == []
    judge.judge(PAIRS)
    assert opened == [folder]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        (MODEL_FILE, cut, "SHA-256"),
        (MODEL_FILE, Path.unlink, "cannot be read"),
        (MANIFEST_FILE, cut, "manifest"),
        (STACK_FILE, cut, "zip"),
        (STACK_FILE, Path.unlink, STACK_FILE),
    ],
)
def test_with_a_damaged_model_features_judge_and_it_is_said(
    copied: Path, name: str, damage: Callable[[Path], None], said: str
) -> None:
    """Each time it is asked, and it is not loaded again."""
    damage(copied / name)
    judge = PairJudge(copied)
    for _ in range(2):
        assert judge.judge(PAIRS) == judge.judge_features(PAIRS)
    assert isinstance(judge.check(), ReaderError)
    assert said in str(judge.check())


def test_a_stack_of_another_model_is_not_used(tmp_path: Path) -> None:
    judge = PairJudge(make_judge(tmp_path, model="other:1"))
    assert judge.judge(PAIRS) == judge.judge_features(PAIRS)
    assert "other:1" in str(judge.check())


def test_where_the_model_fails_features_judge(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = PairJudge(folder)
    judge.judge(PAIRS)

    def fail(*_: object) -> None:
        raise ReaderError("no memory")

    monkeypatch.setattr(Reader, "judge_pairs", fail)
    assert judge.judge(PAIRS) == judge.judge_features(PAIRS)
    assert str(judge.check()) == "no memory"


@pytest.mark.parametrize("day", [0, -20])
def test_nothing_replaces_what_is_not_older(folder: Path, day: float) -> None:
    pair = pair_of(OLDER, "Rafi owns the blue van instead.", 0.8, day)
    for judge in (PairJudge(folder).judge, PairJudge(folder).judge_features):
        assert judge([pair])[0].replaces == 0.0


def test_a_question_replaces_nothing(folder: Path) -> None:
    pair = pair_of(OLDER, "Does Rafi own the blue van instead?", 0.8)
    for judge in (PairJudge(folder).judge, PairJudge(folder).judge_features):
        assert judge([pair])[0].replaces == 0.0


def test_threads_share_one_judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen that ask at once get what one alone gets, and the model is loaded once."""
    loads: list[Path] = []

    def load(place: Path, *, threads: int) -> Reader:
        loads.append(place)
        return Reader(place, threads=threads)

    alone = [verdict.replaces for verdict in PairJudge(folder).judge(PAIRS * 4)]
    monkeypatch.setattr(judging, "Reader", load)
    judge = PairJudge(folder)
    with ThreadPoolExecutor(16) as pool:
        for verdicts in pool.map(lambda _: judge.judge(PAIRS * 4), range(16)):
            assert [verdict.replaces for verdict in verdicts] == pytest.approx(alone, abs=1e-5)
    assert loads == [folder]


def test_other_weights_are_another_version(copied: Path) -> None:
    """Of trees, of a stack or of a model: their verdicts are made anew; the same are not."""
    versions = [PairJudge(copied).version for _ in range(2)]
    assert versions[0] == versions[1]
    assert versions[0].startswith("tiny:1:")
    for name in (TREES_FILE, STACK_FILE):
        (copied / name).write_bytes((copied / name).read_bytes() + b"\0")
        versions.append(PairJudge(copied).version)
    (copied / MANIFEST_FILE).unlink()
    versions.append(PairJudge(copied).version)
    assert len(set(versions)) == 4
    name, digest = versions[-1].split(":")
    assert name == "features"
    assert len(digest) == 12
