"""A bundled network: a BERT of ours in 8 bits, on the processor, offline.

The English one is all-MiniLM-L6-v2 trained on, so that a question finds its answer
(docs/decisions/0055); the multilingual one is multilingual-e5-small, trained into its space
(docs/decisions/0063). Which of them reads a text is said in `bundled.py`.

Texts come in, unit vectors of 384 numbers go out (mean of the last hidden states over a text's
word pieces, then L2-normalised: the recipe of the original model). It never uses a network and
never cuts a text silently.

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
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anaphora.embed.base import Vector, Vectors, mean_vector, unit_rows
from anaphora.embed.onnx import load_session, run_session, value_of
from anaphora.embed.unigram import read_unigram
from anaphora.embed.windowed import TextWindows, embed_parts
from anaphora.embed.word_table import VALUES, read_tensors
from anaphora.embed.wordpiece import read_wordpiece
from anaphora.errors import EmbeddingError, ModelIntegrityError

DIMENSIONS = 384
MINILM = Path(__file__).parent / "models" / "minilm"
MULTILINGUAL = Path(__file__).parent / "models" / "multilingual"
_CLS_SEP = (101, 102)
WHOLE = "32 bits"
"""The variant of a network as it comes from training."""


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """The content of `manifest.json`: the name of the model, and the SHA-256 of each of its files.

    `window` counts word pieces including the two special ones, which are `around` every text;
    `tokenizer` is the kind of its pieces, wordpiece or unigram. `mean_cosine` is the average cosine
    to the original weights in 32-bit floats, measured when the model was built. `typed`: texts are
    read without their final marks, which is another recipe and hence another name. `is_small`: its
    numbers have 8 bits or fewer.
    """

    folder: Path
    name: str
    dimensions: int
    window: int
    files: dict[str, str]
    mean_cosine: float
    typed: bool
    is_small: bool
    tokenizer: str
    around: tuple[int, int]


def read_manifest(folder: Path) -> ModelManifest:
    """Read a model's manifest. Raises EmbeddingError if it is missing or malformed."""
    path = folder / "manifest.json"
    try:
        raw = json.loads(path.read_bytes())
        return ModelManifest(
            folder=folder,
            name=str(raw["name"]),
            dimensions=int(raw["dimensions"]),
            window=int(raw["window"]),
            files={str(file): str(details["sha256"]) for file, details in raw["files"].items()},
            mean_cosine=float(raw["measured"]["mean_cosine"]),
            typed=bool(raw.get("typed", False)),
            is_small=raw.get("variant") != WHOLE,
            tokenizer=str(raw.get("tokenizer", "wordpiece")),
            around=_pair(raw.get("around", _CLS_SEP)),
        )
    except OSError as error:
        raise EmbeddingError(f"the model's manifest cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingError(f"{path} is not a model's manifest: {error!r}") from error


def _pair(numbers: Iterable[int]) -> tuple[int, int]:
    first, last = map(int, numbers)
    return first, last


def check_digest(path: Path, expected: str) -> None:
    """Raise ModelIntegrityError if a file has another SHA-256, OSError if it cannot be read."""
    with path.open("rb") as content:
        # Not read as a whole: a session would keep these bytes beside its own copy.
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != expected:
        raise ModelIntegrityError(path, expected, digest)


def verify_file(manifest: ModelManifest, file: str) -> Path:
    """The path of one of the model's files, after checking it.

    Raises ModelIntegrityError if its bytes are not those of the manifest, and EmbeddingError if it
    cannot be read.
    """
    path = manifest.folder / file
    try:
        check_digest(path, manifest.files.get(file, "no hash at all"))
    except OSError as error:
        raise EmbeddingError(f"the model cannot be read: {error}") from error
    return path


class MiniLM:
    """A network of the bundled form, loaded. Construction reads, checks and loads it (some 0.2 s).

    `threads` is how many cores a list of texts may use, by default two at most: so many runs at a
    time, each on one core. Two threads in one run of a short text cost a third more processor time
    and hardly end sooner. Raises ModelIntegrityError if a file is not the one that was shipped,
    EmbeddingError if the model cannot be read or loaded.
    """

    def __init__(self, folder: Path = MINILM, *, threads: int | None = None) -> None:
        manifest = read_manifest(folder)
        self._name = manifest.name
        self._dimensions = manifest.dimensions
        pieces = verify_file(manifest, "tokenizer.json").read_bytes()
        is_unigram = manifest.tokenizer == "unigram"
        tokenizer = read_unigram(pieces) if is_unigram else read_wordpiece(pieces)
        self._around = manifest.around
        self._windows = TextWindows(tokenizer, manifest.window - 2, manifest.typed)
        self._threads = threads or min(2, os.cpu_count() or 1)
        model = verify_file(manifest, "model.onnx")
        # A network in 32 bits, as it comes from training, has its words with the rest.
        mapped = [VALUES] if manifest.is_small else []
        self._words = {
            name: value_of(tensor) for name, tensor in read_tensors(model, mapped).items()
        }
        self._session = load_session(model, 1, self._words)

    @property
    def name(self) -> str:
        """Model, recipe version and hash; stored with the vectors."""
        return self._name

    @property
    def dimensions(self) -> int:
        """384."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, 384) each, unit rows."""
        return embed_parts(self._windows.parts(texts), 2, self._run, threads=self._threads)

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (384,): the normalised mean of its parts."""
        return mean_vector(self.embed([text])[0])

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions that wait at the same moment, in one run.

        The same to the bit as each alone: the model's numbers are scaled by word piece, so what
        else is in a run does not matter.
        """
        return list(map(mean_vector, self.embed(texts)))

    def query_key(self, text: str) -> Hashable:
        """The word pieces: spellings that the model cannot tell apart have the same key."""
        return self._windows.key(text)

    def _run(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """One run of the model: mean over a text's own word pieces, then unit length."""
        width = max(map(len, batch)) + 2
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        for row, part in enumerate(batch):
            length = len(part) + 2
            ids[row, 1 : length - 1] = part
            ids[row, 0], ids[row, length - 1] = self._around
            mask[row, :length] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = run_session(self._session, feed)
        weights = (mask / mask.sum(axis=1, keepdims=True)).astype(np.float32)
        return unit_rows(np.einsum("bth,bt->bh", hidden, weights))
