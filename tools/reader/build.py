"""Make the 8-bit folder of trained weights: `python -m tools.reader build --run FOLDER`.

In: what `train` wrote, and examples to smooth and measure on. Out: a folder with `model.onnx` and
`manifest.json`; the tokenizer is the embedder's and is not copied. The layers and the word table
are quantised as the embedder that ships is; the heads stay in 32 bits. Printed: MB, how close it is
to 32 bits, and milliseconds a statement by length.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from tools import quantise
from tools.reader import graph
from tools.reader.examples import ANSWERS_FILE, CHANGES_FILE, read_answers, read_changes
from tools.reader.inputs import Inputs, Pieces, padded
from tools.reader.network import digest_of
from tools.reader.reading import OnnxReader
from tools.reader.scores import log_odds, probability

from anaphora.embed.minilm import MINILM

OUT = Path(__file__).resolve().parents[2] / ".models" / "reader"
VARIANT: Final = "by token, 7 bits, smoothed 0.6"
_ALPHA, _LIMIT, _FEEDS = 0.6, 63, 64
_NAMES: Final = ("input_ids", "attention_mask", "token_type_ids")
_LENGTHS, _BATCHES = (16, 32, 64, 96), (8, 32)
_WORD_TABLE: Final = ("word.values", "word.scale")


def main(words: list[str]) -> None:
    """Write the folder that the command line asks for."""
    chosen = _arguments().parse_args(words)
    weights, target = chosen.run / "weights", chosen.out or chosen.run / "product"
    pooling = json.loads((chosen.run / "run.json").read_text("utf-8"))["plan"]["pooling"]
    samples = sample_inputs(chosen.examples or chosen.run, chosen.samples)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "model.onnx"
        graph.export(weights, whole, pooling)
        feeds = [_feed([one]) for head in graph.HEADS for one in samples[head][:_FEEDS]]
        quantise_reader(whole, target / "model.onnx", feeds)
        measured = compare(OnnxReader(whole), OnnxReader(target / "model.onnx"), samples)
    shared = shared_bytes(target / "model.onnx", MINILM / "model.onnx")
    times = time_reader(target, chosen.threads)
    said = {
        "pooling": pooling,
        "variant": VARIANT,
        "weights_sha256": digest_of(weights),
        "shared_with_embedder": shared,
        "measured": measured,
    }
    graph.write_manifest(target, chosen.name, said)
    size = (target / "model.onnx").stat().st_size
    print(f"\n{target}: {size / 1e6:.2f} MB, {(size - sum(shared.values())) / 1e6:.2f} MB without")
    print("what is the embedder's own to the byte; " + json.dumps(measured))
    print(f"\nms a statement, {chosen.threads} threads\n")
    print("| word pieces | " + " | ".join(f"batch of {size}" for size in _BATCHES) + " |")
    print("|---|" + "---|" * len(_BATCHES))
    for length, row in times.items():
        print(f"| {length} | " + " | ".join(f"{ms:.2f}" for ms in row) + " |")


def quantise_reader(source: Path, target: Path, feeds: Sequence[dict[str, Any]]) -> None:
    """The word table by rows, the layers smoothed and by token in 7 bits."""
    with tempfile.TemporaryDirectory() as temporary:
        rows, smoothed = Path(temporary) / "rows.onnx", Path(temporary) / "smoothed.onnx"
        quantise.word_rows(source, rows)
        quantise.smooth(rows, smoothed, feeds, alpha=_ALPHA)
        quantise.by_token(smoothed, target, limit=_LIMIT)


def sample_inputs(folder: Path, count: int, seed: int = 1) -> dict[str, list[Pieces]]:
    """Inputs of both judgements, drawn from examples; one statement of each kind a question."""
    chance, inputs = random.Random(seed), Inputs()
    asked = list(read_answers(folder / ANSWERS_FILE))
    pairs = list(read_changes(folder / CHANGES_FILE))
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


def shared_bytes(reader: Path, embedder: Path) -> dict[str, int]:
    """The bytes of the word table's parts that are the embedder's own."""
    import onnx

    models = (onnx.load(file) for file in (reader, embedder))
    own, theirs = ({t.name: t for t in model.graph.initializer} for model in models)

    def digest(tensor: Any) -> str:
        return hashlib.sha256(onnx.numpy_helper.to_array(tensor).tobytes()).hexdigest()

    return {
        name: onnx.numpy_helper.to_array(own[name]).nbytes
        for name in _WORD_TABLE
        if name in own and name in theirs and digest(own[name]) == digest(theirs[name])
    }


def time_reader(place: Path, threads: int) -> dict[int, list[float]]:
    """Milliseconds a statement by length, for each size of a batch: the median of seven."""
    chance = np.random.default_rng(1)
    found: dict[int, list[float]] = {}
    for length in _LENGTHS:
        found[length] = []
        for size in _BATCHES:
            reader = OnnxReader(place, threads=threads, size=size)
            inputs = [
                Pieces(tuple(chance.integers(1000, 20000, length).tolist()), length // 2)
                for _ in range(size)
            ]
            taken = []
            for _ in range(8):
                began = time.perf_counter()
                reader.logits(inputs, graph.HEADS[0])
                taken.append((time.perf_counter() - began) * 1e3 / size)
            found[length].append(float(np.median(taken[1:])))
    return found


def _feed(inputs: Sequence[Pieces]) -> dict[str, Any]:
    return dict(zip(_NAMES, padded(inputs), strict=True))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.reader build", description=__doc__)
    add = parser.add_argument
    add("--run", type=Path, default=OUT, help="folder of the run")
    add("--out", type=Path, help="where to write, by default product/ of the run")
    add("--examples", type=Path, help="folder that `prepare` wrote, by default the run's")
    add("--samples", type=int, default=300, help="questions and pairs to measure on")
    add("--name", default="anaphora-reader", help="what the reader is called")
    add("--threads", type=int, default=2, help="processors that the times are taken with")
    return parser
