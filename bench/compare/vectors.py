"""The bundled model as other products run it: one vector a text, of its first 256 word pieces.

In: a folder with model.onnx and tokenizer.json, texts; optionally a file of vectors made before.
Out: unit vectors, and the time that embedding took. It needs numpy, onnxruntime and tokenizers
alone, so that it runs in any product's interpreter. It never cuts a text into several, as Anaphora
does: the usual tools read the beginning of a long text and leave the rest.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIMENSIONS", "SEAM", "Floats", "Spent", "Vectors", "clock", "joined"]

DIMENSIONS = 384
SEAM = "\n~\n"
"""Between the halves of a generated text: its vector is made of theirs. No real text has it."""
_WINDOW = 256
# More word pieces at once leave the processor's cache.
_BATCH_PIECES = 512
_STEP = 2_000

Floats = NDArray[np.float32]
Spent = NDArray[np.float64]
"""Seconds of the wall, and of the processor in all threads of a process."""


def clock() -> Spent:
    """Now."""
    return np.array([time.perf_counter(), time.process_time()])


def joined(halves: Sequence[Floats]) -> Floats:
    """The vector of a text from those of its halves: their mean, of unit length."""
    mean = np.sum(halves, axis=0)
    unit: Floats = (mean / np.linalg.norm(mean)).astype(np.float32)
    return unit


class Vectors:
    """The model, loaded when it is first needed. `spent` is what embedding took until now."""

    def __init__(self, model: Path, known: Path | None = None) -> None:
        self._folder, self._file = model, known
        self._model: tuple[Any, Any] | None = None
        self._rows: dict[str, Floats] = {}
        self.spent = np.zeros(2)
        if known is not None and known.is_file():
            with np.load(known) as found:
                self._rows = dict(zip(found["keys"].tolist(), found["rows"], strict=True))

    def __call__(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts, shape (texts, 384); those that are known are looked up."""
        began = clock()
        halves = list(dict.fromkeys(half for text in texts for half in text.split(SEAM)))
        new = [half for half in halves if _key(half) not in self._rows]
        made = dict(zip(new, self._run(new), strict=True))
        rows = {half: made[half] if half in made else self._rows[_key(half)] for half in halves}
        vectors = [joined([rows[half] for half in text.split(SEAM)]) for text in texts]
        self.spent += clock() - began
        return np.stack(vectors) if vectors else np.zeros((0, DIMENSIONS), np.float32)

    def keep(self, texts: Iterable[str]) -> None:
        """Make the vectors of texts that have none yet, and write all to the file."""
        assert self._file is not None
        new = [text for text in dict.fromkeys(texts) if _key(text) not in self._rows]
        for start in range(0, len(new), _STEP):
            some = new[start : start + _STEP]
            self._rows.update(zip(map(_key, some), self._run(some), strict=True))
            print(f"embedded {start + len(some):,} of {len(new):,}", flush=True)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            rows = np.stack(list(self._rows.values()))
            np.savez(self._file, keys=np.array(list(self._rows)), rows=rows)

    def _run(self, texts: Sequence[str]) -> list[Floats]:
        if not texts:
            return []
        tokenizer, session = self._loaded()
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        ids = [encoding.ids for encoding in tokenizer.encode_batch(clean)]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        done: list[Floats | None] = [None] * len(ids)
        for batch in _batches(order, [len(one) for one in ids]):
            rows = _embed(session, [ids[at] for at in batch])
            for at, row in zip(batch, rows, strict=True):
                done[at] = row
        return [row for row in done if row is not None]

    def _loaded(self) -> tuple[Any, Any]:
        if self._model is None:
            # onnxruntime 1.31 sends usage data by itself: what a product sends must be told apart.
            os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
            import onnxruntime
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
            tokenizer.no_padding()
            tokenizer.enable_truncation(_WINDOW)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 2
            # As Anaphora sets it: spinning threads take the cores from everything else.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = onnxruntime.InferenceSession(
                str(self._folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
            self._model = (tokenizer, session)
        return self._model


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterable[list[int]]:
    batch: list[int] = []
    for at in order:
        if batch and (len(batch) + 1) * lengths[at] > _BATCH_PIECES:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _embed(session: Any, batch: Sequence[Sequence[int]]) -> Floats:
    """Mean over a text's own word pieces, then unit length: the recipe of the model's authors."""
    width = max(map(len, batch))
    ids = np.zeros((len(batch), width), np.int64)
    mask = np.zeros((len(batch), width), np.int64)
    for row, own in enumerate(batch):
        ids[row, : len(own)], mask[row, : len(own)] = own, 1
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = session.run(None, feed)[0]
    mean = np.einsum("bth,bt->bh", hidden, mask / mask.sum(axis=1, keepdims=True))
    unit: Floats = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _key(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
