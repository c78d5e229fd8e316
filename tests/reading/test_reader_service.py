"""A reader beside the first answers: loaded once, never waited for, what it judged is kept."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.reading.tiny_reader import make_reader

from anaphora.errors import InvalidInput, ReaderError
from anaphora.reading.model import Reader
from anaphora.reading.service import ReaderService, reader_service

TEXTS = ["A zebra ran past.", "It rained.", "A horse."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_reader(tmp_path_factory.mktemp("reader"))


def load_after(go: threading.Event, folder: Path) -> Callable[[], Reader]:
    """Loads the reader of a folder once it may."""

    def load() -> Reader:
        go.wait()
        return Reader(folder)

    return load


@pytest.mark.promise("recall.read_degrades")
def test_a_reader_that_is_loading_is_not_waited_for(folder: Path) -> None:
    """Until it is there asking is a typed error; then it answers."""
    go = threading.Event()
    load = load_after(go, folder)
    service = ReaderService(load)
    with pytest.raises(ReaderError, match="loading"):
        service.judge_answers("?", TEXTS, "turns")
    assert not service.ready(0)
    go.set()
    assert service.ready()
    assert [odds > 0 for odds in service.judge_answers("?", TEXTS, "turns")] == [True, False, False]
    service.close()


@pytest.mark.promise("recall.read_degrades")
def test_a_process_of_one_question_waits_a_moment(folder: Path) -> None:
    """As long as its patience lasts; then it goes on without."""
    go = threading.Event()
    load = load_after(go, folder)
    hasty, patient = ReaderService(load, patience=0.01), ReaderService(load, patience=60)
    with pytest.raises(ReaderError, match="loading"):
        hasty.judge_answers("?", TEXTS, "turns")
    threading.Timer(0.05, go.set).start()
    assert len(patient.judge_answers("?", TEXTS, "turns")) == len(TEXTS)
    for service in (hasty, patient):
        service.close()


@pytest.mark.promise("recall.read_degrades")
def test_a_reader_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    """Each time that it is asked, and as its failure."""
    made = reader_service(str(make_reader(tmp_path, files={"model.onnx": {"sha256": "0" * 64}})))
    assert made is not None
    assert not made.ready()
    assert isinstance(made.failure, ReaderError)
    for _ in range(2):
        with pytest.raises(ReaderError, match="SHA-256"):
            made.judge_changes([("", "a", "b")], "turns")


def test_judgements_are_kept_by_question_candidate_and_lane(folder: Path) -> None:
    """What was judged is not read again; another question, text or lane is."""
    service = ready_service(folder)
    first = service.judge_answers("Who ran?", TEXTS, "turns")
    assert service.judged == 3
    again = service.judge_answers("Who ran?", [TEXTS[1], "New.", TEXTS[0]], "turns")
    assert service.judged == 4
    assert [again[0], again[2]] == [first[1], first[0]]
    service.judge_answers("Who fell?", TEXTS[:1], "turns")
    service.judge_answers("Who ran?", TEXTS[:1], "facts")
    service.judge_changes([("Who ran?", TEXTS[0], TEXTS[1])], "turns")
    service.judge_changes([("Who ran?", TEXTS[0], TEXTS[1])], "turns")
    assert service.judged == 7


def test_the_judgements_used_last_are_kept(folder: Path) -> None:
    """As many as the size says, and none with 0."""
    service = ready_service(folder, cache_size=2)
    for text in (TEXTS[0], TEXTS[1], TEXTS[0], TEXTS[2], TEXTS[0]):
        service.judge_answers("?", [text], "turns")
    assert service.judged == 3
    service.judge_answers("?", [TEXTS[1]], "turns")
    assert service.judged == 4
    without = ready_service(folder, cache_size=0)
    without.judge_answers("?", TEXTS, "turns")
    without.judge_answers("?", TEXTS, "turns")
    assert without.judged == 6


def test_threads_share_one_reader(folder: Path) -> None:
    """Sixteen that ask at once get what one alone gets."""
    service = ready_service(folder)
    texts = [f"{text} {number}" for number in range(12) for text in TEXTS]
    alone = Reader(folder).judge_answers("?", texts, "turns").tolist()
    with ThreadPoolExecutor(16) as pool:
        answers = pool.map(lambda _: service.judge_answers("?", texts, "turns"), range(16))
        assert all(odds == pytest.approx(alone, abs=1e-5) for odds in answers)


def _judge_here(place: str) -> list[float]:
    return ready_service(Path(place)).judge_answers("?", TEXTS, "turns")


@pytest.mark.skipif(sys.platform == "win32", reason="a process takes seconds there")
def test_processes_read_the_same(folder: Path) -> None:
    """Two at a time, each with the embedder's table mapped, judge as this one does."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        one, other = pool.map(_judge_here, [str(folder)] * 2)
    assert one == other == pytest.approx(_judge_here(str(folder)))


@pytest.mark.promise("recall.read_off")
def test_a_setting_names_the_reader(folder: Path, tmp_path: Path) -> None:
    """Off is none; a folder is loaded; one that is not there is refused."""
    assert reader_service("off") is None
    services = [reader_service(str(folder)) for _ in range(2)]
    assert all(service is not None and service.ready() for service in services)
    with pytest.raises(InvalidInput, match="ANAPHORA_READER"):
        reader_service(str(tmp_path / "nowhere"))


def ready_service(folder: Path, **options: int) -> ReaderService:
    service = ReaderService(lambda: Reader(folder), **options)
    assert service.ready()
    return service
