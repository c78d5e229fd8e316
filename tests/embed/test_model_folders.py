"""A sentence-transformers folder of the user's own: done as its files say, or refused by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.embed.model_folders import (
    DIMENSIONS,
    SPECIAL,
    VOCABULARY,
    WORDS,
    library_tokenizer,
    make_folder,
    pieces,
    table,
)
from tools.models.sentence_folder import describe

from anaphora import Embedder, Memory
from anaphora.embed.service import spec_for
from anaphora.errors import InvalidInput, MissingExtra
from anaphora.features.embedders.folder import read_folder

Rows = NDArray[np.float32]
TEXT = "The dog eats bread."
CLS, SEP = VOCABULARY["[CLS]"], VOCABULARY["[SEP]"]


def loaded(folder: Path) -> Embedder:
    return spec_for(str(folder)).load()


def unit(row: Rows) -> Rows:
    found: Rows = row / np.linalg.norm(row)
    return found


ONE_HOT = np.zeros((len(VOCABULARY), DIMENSIONS), np.float32)
for _at, _word in enumerate([word for word in WORDS if word.isalpha()][:DIMENSIONS]):
    ONE_HOT[VOCABULARY[_word], _at] = 1.0

POOLED: dict[str, Callable[[Rows], Rows]] = {
    "cls_token": lambda rows: rows[0],
    "mean_tokens": lambda rows: rows.mean(axis=0),
    "max_tokens": lambda rows: rows.max(axis=0),
    "lasttoken": lambda rows: rows[-1],
}


@pytest.mark.promise("embed.folder")
@pytest.mark.parametrize("pooling", POOLED)
def test_pools_as_the_folder_says(tmp_path: Path, pooling: str) -> None:
    """Each way of pooling gives the vector that can be told by hand, padded or not."""
    model = loaded(make_folder(tmp_path, pooling=pooling))
    expected = unit(POOLED[pooling](table()[[CLS, *pieces(TEXT), SEP]]))
    texts = [TEXT, "the blue car is parked under the old bridge", "milk"]
    for given in ([TEXT], texts):
        assert np.allclose(model.embed(given)[0], expected, atol=1e-6)
    assert model.dimensions == DIMENSIONS
    # A text without words has a vector, too.
    assert np.linalg.norm(model.embed([""])[0]) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.promise("embed.folder")
@pytest.mark.parametrize("library", [False, True], ids=["own", "library"])
def test_prefixes_are_put_before_questions_and_texts(tmp_path: Path, library: bool) -> None:
    """What the folder's prompts say stands before every part of a text, once."""
    prompts = {"query": "query: ", "passage": "passage: "}
    tokenizer = library_tokenizer() if library else None
    model = loaded(make_folder(tmp_path, prompts=prompts, tokenizer=tokenizer))
    for prefix, found in (
        ("query:", model.embed_query(TEXT)),
        ("passage:", model.embed([TEXT])[0][0]),
    ):
        ids = [CLS, *pieces(f"{prefix} {TEXT}"), SEP]
        assert np.allclose(found, unit(table()[ids].mean(axis=0)), atol=1e-6)


@pytest.mark.promise("embed.folder")
@pytest.mark.parametrize("library", [False, True], ids=["own", "library"])
def test_no_word_is_cut_off_at_the_window(tmp_path: Path, library: bool) -> None:
    """A text longer than the folder's window has parts of at most that size, with every word."""
    tokenizer = library_tokenizer() if library else None
    folder = make_folder(
        tmp_path, window=8, tokenizer=tokenizer, pooling="max_tokens", rows=ONE_HOT
    )
    words = [word for word in WORDS if word.isalpha()][:DIMENSIONS]
    parts = loaded(folder).embed([" ".join(words)])[0]
    assert len(parts) >= 3
    seen = {words[at] for at in np.flatnonzero(parts.max(axis=0) > 0)}
    assert seen == set(words)


@pytest.mark.promise("embed.folder", "embed.moving")
def test_a_home_moves_to_a_folder_and_its_name_changes_with_its_files(tmp_path: Path) -> None:
    """`reindex` moves a home to a folder by its path; other weights are another embedder."""
    folder, home = make_folder(tmp_path / "model"), tmp_path / "home"
    with Memory.open(home, embedder="hashing") as memory:
        memory.remember("Nadia sells milk on Monday.")
        memory.ready()
        done = memory.reindex(str(folder))
        assert (done.memories, done.left) == (1, 0)
        assert done.embedder.startswith("onnx:1:tiny:")
    with Memory.open(home) as memory:
        assert memory.stats().embedder == done.embedder
        found = memory.recall("nadia sells milk", mode="vector")
        assert (found.degraded, found[0].text) == ((), "Nadia sells milk on Monday.")
    make_folder(folder, rows=table(seed=2))
    with Memory.open(home) as memory:
        assert memory.stats().embedder != done.embedder
        assert memory.recall("who sells milk?")[0].text == "Nadia sells milk on Monday."


def _without(place: Path, name: str) -> Path:
    (make_folder(place) / name).unlink()
    return place


def _with_two_models(place: Path) -> Path:
    make_folder(place, model="onnx/a.onnx")
    return make_folder(place, model="onnx/b.onnx")


@pytest.mark.promise("embed.folder")
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda place: place / "nowhere", "it is not there"),
        (lambda place: place / "no.onnx", "it is not there"),
        (lambda place: make_folder(place, modules=["Transformer", "Pooling", "Dense"]), "Dense"),
        (lambda place: make_folder(place, pooling="none_of_these"), "one pooling of"),
        (lambda place: make_folder(place, model="weights.bin"), "it holds no ONNX"),
        (lambda place: _without(place, "tokenizer.json"), "no tokenizer.json"),
        (lambda place: _without(place, "modules.json"), "no modules.json"),
        (lambda place: _without(place, "1_Pooling/config.json"), "how to pool"),
        (_with_two_models, "name one of its ONNX files: onnx/a.onnx, onnx/b.onnx"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    tmp_path: Path, broken: Callable[[Path], Path], why: str
) -> None:
    """A folder that asks for something else is an error of the setting that says what it is."""
    with pytest.raises(InvalidInput, match=why):
        Memory.open(tmp_path / "home", embedder=str(broken(tmp_path / "model")))
    assert not (tmp_path / "home").exists()


def test_one_of_several_models_is_named(tmp_path: Path) -> None:
    """The setting may be the path of the ONNX file itself."""
    _with_two_models(tmp_path)
    assert loaded(tmp_path / "onnx" / "b.onnx").dimensions == DIMENSIONS


@pytest.mark.promise("embed.folder")
def test_a_tokenizer_of_another_kind_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the library the error names the command that brings it; BERT's needs none."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert loaded(make_folder(tmp_path / "bert")).dimensions == DIMENSIONS
    other = make_folder(tmp_path / "other", tokenizer=json.dumps({"model": {"type": "BPE"}}))
    with pytest.raises(MissingExtra, match=r"\(extra embedders\); run: .*\[embedders\]"):
        loaded(other)


def test_special_words_in_a_text_are_words(tmp_path: Path) -> None:
    """Whatever is written, a text has a vector."""
    model = loaded(make_folder(tmp_path))
    odd = [*SPECIAL, "\ud800", "\x00", "x" * 10_000]
    assert all(np.isfinite(rows).all() for rows in model.embed(odd))


def test_the_product_takes_a_described_folder(tmp_path: Path) -> None:
    """What `train` and `build` write is what `--embedder ./FOLDER` reads."""
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    describe(tmp_path, dimensions=384, window=256)
    folder = read_folder(tmp_path)
    assert (folder.pooling, folder.dimensions, folder.window) == ("mean", 384, 256)
