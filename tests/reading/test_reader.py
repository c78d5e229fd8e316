"""The reader: its model, and the service around it."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reading.tiny_reader import make_reader

from anaphora.embed.minilm import MINILM, MiniLM
from anaphora.embed.word_table import TABLE, read_table, read_tensors
from anaphora.errors import (
    AnaphoraError,
    EmbeddingError,
    InvalidInput,
    ModelIntegrityError,
    ReaderError,
)
from anaphora.reading.inputs import (
    CANDIDATE_PIECES,
    QUESTION_PIECES,
    STATEMENT_PIECES,
    Inputs,
    said_text,
    statement_text,
)
from anaphora.reading.model import Reader
from anaphora.reading.service import BUNDLED, ReaderService, reader_service
from anaphora.system.heap import give_back_memory, share_heap

TEXTS = ("A zebra ran past.", "A horse ran past, " * 20, "It rained.", "Stripes of a zebra. " * 9)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(make_reader(tmp_path_factory.mktemp("reader")))


@pytest.mark.parametrize("threads", [1, 2])
def test_judgements_come_in_the_order_of_their_texts(tmp_path: Path, threads: int) -> None:
    """However they are put together by length, and however many run at a time."""
    reader = Reader(make_reader(tmp_path), threads=threads)
    texts = TEXTS * 9
    odds = reader.judge_answers("What ran past?", texts, "turns")
    alone = [reader.judge_answers("What ran past?", [text], "turns")[0] for text in texts]
    assert odds.shape == (len(texts),)
    assert odds == pytest.approx(alone, abs=1e-5)
    assert [odd > 0 for odd in odds[:4]] == [True, False, False, True]
    assert reader.judge_answers("What ran past?", [], "turns").shape == (0,)


def test_both_judgements_are_of_one_model(reader: Reader) -> None:
    """A later statement is judged with the earlier one as it is with a question."""
    pairs = [("I live in Rome.", "I live in Bonn instead."), ("Rome.", "Bonn.")]
    odds = reader.judge_pairs(pairs)
    assert odds.shape == (2, 3)
    assert odds[0, 0] > 0 > odds[1, 0]
    assert reader.judge_pairs([]).shape == (0, 3)


@pytest.mark.promise("recall.read_lengths")
def test_what_is_longer_than_its_pieces_is_cut(reader: Reader) -> None:
    """Of a question 40 word pieces are read, of a candidate 96, of each of a pair 64."""
    filler = "rain " * 500

    def answers(words: int) -> bool:
        odds = reader.judge_answers(filler, ["rain " * words + "zebra"], "turns")
        return bool(odds[0] > 0)

    assert answers(CANDIDATE_PIECES - 1)
    assert not answers(CANDIDATE_PIECES)
    asked = "rain " * QUESTION_PIECES + "zebra"
    assert reader.judge_answers(asked, ["rain"], "turns")[0] < 0

    def replaces(words: int) -> bool:
        return bool(reader.judge_pairs([(filler, "rain " * words + "instead")])[0, 0] > 0)

    assert replaces(STATEMENT_PIECES - 1)
    assert not replaces(STATEMENT_PIECES)
    longest = max(
        len(Inputs().answer(filler, filler)), len(Inputs().change(filler, filler, filler))
    )
    assert longest == 4 + QUESTION_PIECES + 2 * STATEMENT_PIECES


def test_any_text_can_be_read(reader: Reader, naughty: list[str]) -> None:
    """Empty ones, other scripts, control characters and lone surrogates among them."""
    texts = ["", " ", "\x00", "\udc80 zebra", "斑马", *naughty]
    odds = reader.judge_answers("\ud800?", texts, "turns")
    assert np.isfinite(odds).all()


def test_a_statement_is_read_with_its_day_its_speaker_and_the_question_before() -> None:
    """In this order; of the turn before the end, if it asks, and of what is not known nothing."""
    before = said_text("x" * 200 + " Where did you put it?", "Bo")
    text = statement_text("In the trap.", day=date(2024, 3, 4), speaker="Ann", before=before)
    assert text == f"4 March 2024, Ann: In the trap\n(before: {before[-120:]})"
    assert statement_text("In the trap.", day=date(2024, 12, 31)) == "31 December 2024, In the trap"
    assert statement_text("In the trap.") == "In the trap"


@pytest.mark.parametrize("before", ["Bo: I put it away.", "Bo: why? no matter", ""])
def test_a_turn_before_that_does_not_ask_is_not_read(before: str) -> None:
    """Next to what asks nothing, the order in which unrelated things were said must not matter."""
    assert statement_text("In the trap.", speaker="Ann", before=before) == "Ann: In the trap"


def test_log_odds_are_made_calibrated_by_judgement_and_lane(tmp_path: Path) -> None:
    """Divided by the temperature of the manifest, and moved by its bias."""
    plain = Reader(make_reader(tmp_path / "plain"))
    calibration = {"answers": {"turns": {"temperature": 2.0, "bias": 0.5}}}
    scaled = Reader(make_reader(tmp_path / "scaled", calibration=calibration))
    own = plain.judge_answers("?", TEXTS, "turns")
    assert scaled.judge_answers("?", TEXTS, "turns") == pytest.approx(own / 2.0 + 0.5)
    assert scaled.judge_answers("?", TEXTS, "facts") == pytest.approx(own)
    assert scaled.judge_pairs([("a", "b")]) == pytest.approx(plain.judge_pairs([("a", "b")]))


@pytest.mark.promise("recall.read_integrity")
@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"files": {"model.onnx": {"sha256": "0" * 64}}}, ModelIntegrityError),
        ({"tokenizer": {"sha256": "0" * 64}}, ModelIntegrityError),
        ({"table": {name: {"sha256": "0" * 64} for name in TABLE}}, ModelIntegrityError),
        ({"table": {}}, ReaderError),
        ({"pieces": {"question": 1, "candidate": 2, "statement": 3}}, ReaderError),
        ({"files": {}}, ReaderError),
        ({"files": None}, ReaderError),
        ({"calibration": {"answers": {"turns": {"temperature": "hot"}}}}, ReaderError),
    ],
)
def test_another_file_or_form_than_the_manifest_says_is_refused(
    tmp_path: Path, said: dict[str, Any], error: type[AnaphoraError]
) -> None:
    """Each is a typed error that says which file it is."""
    with pytest.raises(error):
        Reader(make_reader(tmp_path, **said))


def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Without a manifest, without a model, with a manifest or a model that is none."""
    with pytest.raises(ReaderError, match="manifest"):
        Reader(tmp_path)
    folder = make_reader(tmp_path / "gone")
    (folder / "model.onnx").unlink()
    with pytest.raises(ReaderError, match="read"):
        Reader(folder)
    (folder / "manifest.json").write_text("[]")
    with pytest.raises(ReaderError, match="manifest"):
        Reader(folder)
    folder = make_reader(tmp_path / "junk")
    (folder / "model.onnx").write_bytes(b"no model")
    said = json.loads((folder / "manifest.json").read_text())
    digest = hashlib.sha256(b"no model").hexdigest()
    said["files"]["model.onnx"]["sha256"] = digest
    (folder / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(ReaderError):
        Reader(folder)


def test_the_word_table_is_the_embedders_own(tmp_path: Path) -> None:
    """It is read where the embedder has it; a file that has none, or is cut, is refused."""
    tensors = read_tensors(MINILM / "model.onnx", TABLE)
    values, scale = (tensors[name] for name in TABLE)
    assert values.shape == (30522, 384)
    assert scale.shape == (30522, 1)
    assert not values.flags.owndata
    with pytest.raises(EmbeddingError, match="no such"):
        read_tensors(MINILM / "model.onnx", ["no such"])
    cut = tmp_path / "cut.onnx"
    cut.write_bytes((MINILM / "model.onnx").read_bytes()[:2_000_000])
    with pytest.raises(EmbeddingError):
        read_table(cut, {})


@pytest.mark.skipif(not BUNDLED.is_dir(), reason="no reader ships with this build")
@pytest.mark.promise("recall.read_integrity")
def test_the_reader_that_ships_loads_and_is_small() -> None:
    """Its files are those of its manifest, within 12 MB, and it judges."""
    assert sum(file.stat().st_size for file in BUNDLED.iterdir()) <= 12_000_000
    reader = Reader(BUNDLED)
    odds = reader.judge_answers("Who has the key?", ["Ann has the key.", "It rains."], "facts")
    assert all(map(math.isfinite, odds))
    assert reader.judge_answers("Who has the key?", ["It rains."], "facts")[0] == pytest.approx(
        odds[1], abs=1e-3
    )


def growth_of_large_runs() -> int:
    """Bytes that a process takes more after large runs of both models than after small ones."""
    share_heap()
    embedder, reader = MiniLM(), Reader(BUNDLED)
    texts = ["The heron stands in the reeds.", "word " * 200]
    sizes = []
    for some in (texts, [f"{number} " + "word " * 200 for number in range(64)]):
        embedder.embed(some)
        reader.judge_answers("where is it?", some, "turns")
        give_back_memory()
        sizes.append(int(Path("/proc/self/statm").read_text("utf-8").split()[1]))
    return (sizes[1] - sizes[0]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.promise("resident.small")
@pytest.mark.skipif(not BUNDLED.is_dir(), reason="no reader ships with this build")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_both_models_give_memory_back() -> None:
    """What runs took is freed between them, of the embedder and of the reader."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(growth_of_large_runs) < 32 << 20


@pytest.mark.skipif(not BUNDLED.is_dir(), reason="no reader ships with this build")
def test_a_byte_that_differs_in_what_ships_is_found(tmp_path: Path) -> None:
    """As with the embedder: the model that runs is the one that was shipped."""
    folder = Path(shutil.copytree(BUNDLED, tmp_path / "reader"))
    model = folder / "model.onnx"
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    model.write_bytes(content)
    with pytest.raises(ModelIntegrityError):
        Reader(folder)


BRIEF = ["A zebra ran past.", "It rained.", "A horse."]


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
        service.judge_answers("?", BRIEF, "turns")
    assert not service.ready(0)
    go.set()
    assert service.ready()
    assert [odds > 0 for odds in service.judge_answers("?", BRIEF, "turns")] == [True, False, False]
    service.close()


@pytest.mark.promise("recall.read_degrades")
def test_a_process_of_one_question_waits_a_moment(folder: Path) -> None:
    """As long as its patience lasts; then it goes on without."""
    go = threading.Event()
    load = load_after(go, folder)
    hasty, patient = ReaderService(load, patience=0.01), ReaderService(load, patience=60)
    with pytest.raises(ReaderError, match="loading"):
        hasty.judge_answers("?", BRIEF, "turns")
    threading.Timer(0.05, go.set).start()
    assert len(patient.judge_answers("?", BRIEF, "turns")) == len(BRIEF)
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
            made.judge_answers("?", ["a"], "turns")


def test_judgements_are_kept_by_question_candidate_and_lane(folder: Path) -> None:
    """What was judged is not read again; another question, text or lane is."""
    service = ready_service(folder)
    first = service.judge_answers("Who ran?", BRIEF, "turns")
    assert service.judged == 3
    again = service.judge_answers("Who ran?", [BRIEF[1], "New.", BRIEF[0]], "turns")
    assert service.judged == 4
    assert [again[0], again[2]] == [first[1], first[0]]
    service.judge_answers("Who fell?", BRIEF[:1], "turns")
    service.judge_answers("Who ran?", BRIEF[:1], "facts")
    assert service.judged == 6


def test_the_judgements_used_last_are_kept(folder: Path) -> None:
    """As many as the size says, and none with 0."""
    service = ready_service(folder, cache_size=2)
    for text in (BRIEF[0], BRIEF[1], BRIEF[0], BRIEF[2], BRIEF[0]):
        service.judge_answers("?", [text], "turns")
    assert service.judged == 3
    service.judge_answers("?", [BRIEF[1]], "turns")
    assert service.judged == 4
    without = ready_service(folder, cache_size=0)
    without.judge_answers("?", BRIEF, "turns")
    without.judge_answers("?", BRIEF, "turns")
    assert without.judged == 6


def test_threads_share_one_reader(folder: Path) -> None:
    """Sixteen that ask at once get what one alone gets."""
    service = ready_service(folder)
    texts = [f"{text} {number}" for number in range(12) for text in BRIEF]
    alone = Reader(folder).judge_answers("?", texts, "turns").tolist()
    with ThreadPoolExecutor(16) as pool:
        answers = pool.map(lambda _: service.judge_answers("?", texts, "turns"), range(16))
        assert all(odds == pytest.approx(alone, abs=1e-5) for odds in answers)


def _judge_here(place: str) -> list[float]:
    return ready_service(Path(place)).judge_answers("?", BRIEF, "turns")


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
