"""The judge of pairs with all that a run has: trees, and the pair model where they leave a doubt.

In: pairs. Out: verdicts. The model is loaded with the first doubt; where it cannot be had, features
alone judge, and `failure` says why. So they do of pairs in other languages than English.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.judge.features import (
    RUN,
    STACK_FILE,
    CalibratedTrees,
    Stack,
    Statement,
    StatementPair,
    Verdict,
    features_of,
    is_undecided,
    verdicts_of,
)
from tools.judge.pairs import PairReader, is_english, pair_text, words_of

from anaphora.errors import AnaphoraError, ReaderError

PRODUCT: Final = "product"
"""The folder of a run that holds the pair model."""

_LOAD_FAILURES: Final = (AnaphoraError, RuntimeError, ValueError, OSError, MemoryError, ImportError)


class PairService:
    """The judge of a run's folder. Safe between threads. Raises SystemExit without trees."""

    def __init__(self, folder: Path = RUN) -> None:
        self._folder = folder
        self._trees = CalibratedTrees.read(folder)
        self._lock = threading.Lock()
        self._loaded: tuple[PairReader, Stack] | None = None
        self._failure: ReaderError | None = None
        self._judged = 0

    @property
    def failure(self) -> ReaderError | None:
        """Why features alone judge; None where the model is loaded, or was not needed yet."""
        return self._failure

    @property
    def judged(self) -> int:
        """How many pairs the model has read."""
        return self._judged

    def judge(self, pairs: Sequence[StatementPair]) -> list[Verdict]:
        """What the later statement of each pair makes of the earlier."""
        rows = features_of(pairs)
        odds = self._trees.log_odds(rows)
        verdicts = verdicts_of(pairs, odds)
        doubts = [
            number
            for number, pair in enumerate(pairs)
            if is_undecided(pair, odds[number]) and is_english(pair)
        ]
        loaded = self._load_once() if doubts else None
        if loaded is None:
            return verdicts
        reader, stack = loaded
        doubtful = [pairs[number] for number in doubts]
        try:
            read = reader.judge_pairs([_texts_of(pair) for pair in doubtful])
        except ReaderError as error:
            self._failure = error
            return verdicts
        self._judged += len(doubts)
        stacked = verdicts_of(doubtful, stack.log_odds(rows[doubts], odds[doubts], read))
        for number, verdict in zip(doubts, stacked, strict=True):
            verdicts[number] = verdict
        return verdicts

    def _load_once(self) -> tuple[PairReader, Stack] | None:
        with self._lock:
            if self._loaded is None and self._failure is None:
                try:
                    self._loaded = self._load()
                except _LOAD_FAILURES as error:
                    self._failure = ReaderError(str(error) or type(error).__name__)
                    self._failure.__cause__ = error
            return self._loaded

    def _load(self) -> tuple[PairReader, Stack]:
        model = self._folder / PRODUCT
        if not model.is_dir() or not (self._folder / STACK_FILE).is_file():
            raise ReaderError(f"{self._folder} has no pair model, or no {STACK_FILE}")
        reader, stack = PairReader(model, threads=1), Stack.read(self._folder)
        if reader.name != stack.model:
            raise ReaderError(f"the stack was fitted with {stack.model}, not with {reader.name}")
        return reader, stack


def _texts_of(pair: StatementPair) -> tuple[str, str]:
    return read_form(pair.older), read_form(pair.newer)


def read_form(statement: Statement) -> str:
    """A statement as the pair model reads it."""
    return pair_text(*words_of(statement))
