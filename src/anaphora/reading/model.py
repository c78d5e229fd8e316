"""The reader, loaded: a small model that sees a question and a statement together.

The reader judges whether a statement answers a question: log-odds of the first class against the
two others, made calibrated by a temperature and a bias that the manifest has for each lane. A pair
model has the same form and judges what a later statement makes of an earlier one. The word
table is the embedder's own and is not in the reader's file (`table`). Nothing uses a network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from anaphora.embed.minilm import MINILM, check_digest
from anaphora.embed.onnx import load_session, run_session
from anaphora.embed.windowed import share_out
from anaphora.embed.word_table import ROWS, WordTable, read_table
from anaphora.errors import EmbeddingError, ModelIntegrityError, ReaderError
from anaphora.reading.inputs import (
    CANDIDATE_PIECES,
    QUESTION_PIECES,
    STATEMENT_PIECES,
    TOKENIZER,
    Inputs,
    Pieces,
    by_length,
    padded,
)

ANSWERS: Final = "answers"
PAIRS: Final = "pairs"
MODEL_FILE: Final = "model.onnx"
MANIFEST_FILE: Final = "manifest.json"
LENGTHS: Final = {
    "question": QUESTION_PIECES,
    "candidate": CANDIDATE_PIECES,
    "statement": STATEMENT_PIECES,
}
"""Word pieces at which each part of an input is cut."""

Lane = Literal["turns", "facts"]
Logits: TypeAlias = npt.NDArray[np.float32]
LogOdds: TypeAlias = npt.NDArray[np.float64]

# Texts of about one length share a run: padding costs as much as text.
_BATCH: Final = 8
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, slots=True)
class Scale:
    """What makes a judgement's log-odds calibrated: they are divided by one, the other is added."""

    temperature: float = 1.0
    bias: float = 0.0

    def applied(self, log_odds: LogOdds) -> LogOdds:
        """Calibrated log-odds, shape as given."""
        return log_odds / self.temperature + self.bias


@dataclass(frozen=True, slots=True)
class ReaderManifest:
    """What `manifest.json` says: name, SHA-256 of the model, of its tokenizer and of its table.

    `scales` are by judgement and lane; one that is missing changes nothing.
    """

    folder: Path
    name: str
    model: str
    tokenizer: str
    table: Mapping[str, str]
    lengths: Mapping[str, int]
    scales: Mapping[tuple[str, str], Scale]


def read_reader_manifest(folder: Path) -> ReaderManifest:
    """Read a reader's manifest. Raises ReaderError where it is missing or malformed."""
    path = folder / MANIFEST_FILE
    try:
        raw = json.loads(path.read_bytes())
        return ReaderManifest(
            folder=folder,
            name=str(raw["name"]),
            model=str(raw["files"][MODEL_FILE]["sha256"]),
            tokenizer=str(raw["tokenizer"]["sha256"]),
            table={str(name): str(part["sha256"]) for name, part in raw["table"].items()},
            lengths={str(name): int(length) for name, length in raw["pieces"].items()},
            scales={
                (str(judgement), str(lane)): Scale(
                    float(scale["temperature"]), float(scale["bias"])
                )
                for judgement, lanes in raw.get("calibration", {}).items()
                for lane, scale in lanes.items()
            },
        )
    except OSError as error:
        raise ReaderError(f"the reader's manifest cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReaderError(f"{path} is not a reader's manifest: {error!r}") from error


class ReaderNetwork:
    """A reader's network in an ONNX session; `table` where its file has none of its own.

    `threads` is how many runs go on at a time, each on one core, by default two at most: their
    threads rest between two runs. Raises ReaderError. Safe to share between threads.
    """

    def __init__(
        self, model: Path, table: WordTable | None = None, *, threads: int | None = None
    ) -> None:
        self._threads = threads or min(2, os.cpu_count() or 1)
        try:
            self._session = load_session(model, 1)
        except EmbeddingError as error:
            raise ReaderError(str(error)) from error
        needed_inputs = {node.name for node in self._session.get_inputs()}
        if ROWS in needed_inputs and table is None:
            raise ReaderError(f"{model} needs the embedder's word table")
        self._table = table if ROWS in needed_inputs else None
        # With rows for word pieces their numbers are no input any more.
        self._inputs = [name for name in _INPUTS if name in needed_inputs]

    def logits(self, inputs: Sequence[Pieces], judgement: str) -> Logits:
        """The logits of a judgement in the inputs' order, shape (inputs, 3). Raises ReaderError."""
        rows = np.empty((len(inputs), 3), np.float32)

        def run(batch: list[int]) -> None:
            arrays = padded([inputs[at] for at in batch])
            feed: dict[str, Any] = dict(zip(_INPUTS, arrays, strict=True))
            feed = {name: feed[name] for name in self._inputs}
            if self._table is not None:
                feed |= self._table.rows(arrays[0])
            rows[batch] = run_session(self._session, feed, judgement)

        try:
            share_out(list(by_length(inputs, _BATCH)), run, self._threads)
        except EmbeddingError as error:
            raise ReaderError(str(error)) from error
        return rows


class Reader:
    """The reader of a folder, loaded. Construction reads, checks and loads it (about 0.2 s).

    The tokenizer and the word table are those of the bundled embedder, whichever embeds. Raises
    ReaderError where the model cannot be read or loaded, or is of another form, and
    ModelIntegrityError where a file is not the one that the manifest names.
    """

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        manifest = read_reader_manifest(folder)
        self.name = manifest.name
        self._scales = manifest.scales
        if manifest.lengths != LENGTHS:
            raise ReaderError(f"{folder} is of a reader with other lengths: {manifest.lengths}")
        try:
            check_digest(folder / MODEL_FILE, manifest.model)
            check_digest(TOKENIZER, manifest.tokenizer)
        except OSError as error:
            raise ReaderError(f"the reader cannot be read: {error}") from error
        try:
            table = read_table(MINILM / "model.onnx", manifest.table) if manifest.table else None
            self._inputs = Inputs()
        except ModelIntegrityError:
            raise
        except EmbeddingError as error:
            raise ReaderError(str(error)) from error
        self._network = ReaderNetwork(folder / MODEL_FILE, table, threads=threads)

    def judge_answers(self, question: str, candidates: Sequence[str], lane: Lane) -> LogOdds:
        """Whether each candidate answers the question: calibrated log-odds, shape (candidates,).

        Candidates have the form of `inputs.statement_text`; what is longer than its pieces is cut.
        Raises ReaderError.
        """
        inputs = [self._inputs.answer(question, text) for text in candidates]
        if not inputs:
            return np.empty(0, np.float64)
        scale = self._scales.get((ANSWERS, lane), Scale())
        return scale.applied(log_odds(self._network.logits(inputs, ANSWERS)))

    def judge_pairs(self, pairs: Sequence[tuple[str, str]]) -> Logits:
        """Of (older, newer), as `inputs.pair_text` gives them: log-odds, shape (pairs, 3), of a
        replacement, of what holds beside it and of a repetition. For a pair model alone.

        Raises ReaderError.
        """
        inputs = [self._inputs.change("", older, newer) for older, newer in pairs]
        return self._network.logits(inputs, PAIRS)


def log_odds(logits: npt.NDArray[np.floating]) -> LogOdds:
    """The log-odds of the first class against all others, shape (n,), of logits (n, classes)."""
    rows = logits.astype(np.float64)
    rivals = rows[:, 1:]
    peak = rivals.max(axis=1)
    odds: LogOdds = rows[:, 0] - peak - np.log(np.exp(rivals - peak[:, None]).sum(axis=1))
    return odds


def probability(odds: LogOdds) -> LogOdds:
    """The probability of log-odds, shape as given."""
    shares: LogOdds = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
    return shares
