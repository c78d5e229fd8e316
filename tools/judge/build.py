"""Make the pair model's folder of 8-bit weights: `python -m tools.judge build --run FOLDER`.

In: what `train` wrote, and examples to smooth and measure on. Out: a folder with `model.onnx` and
`manifest.json`; the tokenizer and the word table are the embedder's and are not copied. The layers
are quantised as the embedder that ships is. Printed: MB, and how close it is to 32 bits. `stack`
must then be fitted to it.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from tools.judge.examples import read_examples
from tools.judge.features import RUN
from tools.judge.homes import CLASSES
from tools.judge.judging import PRODUCT
from tools.judge.pairs import PAIRS, pair_text
from tools.quantise import VARIANT, quantise
from tools.reader import graph
from tools.reader.build import compare
from tools.reader.network import digest_of
from tools.reader.reading import OnnxReader

from anaphora.reading.inputs import Inputs, Pieces, padded
from anaphora.reading.model import MODEL_FILE

_FEEDS = 128
_SAMPLES = 400
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
    print(f"\n{target}: {(target / MODEL_FILE).stat().st_size / 1e6:.2f} MB; {measured}")


def sample_inputs(folder: Path, seed: int = 1) -> list[Pieces]:
    """Inputs drawn from examples, one of each."""
    chance, inputs = random.Random(seed), Inputs()
    drawn = chance.sample(read_examples(folder), _SAMPLES)
    return [
        inputs.change("", pair_text(*chance.choice(example.olders)), pair_text(*example.newer))
        for example in drawn
    ]
