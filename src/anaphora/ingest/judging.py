"""The judge of pairs: what a later statement makes of an earlier one.

Boosted trees over features judge every pair (`rank/pairs`); a small network reads the English pairs
that they leave undecided. It is loaded with the first of these. Where it cannot be had, features
alone judge, and `failure` says why. Both lie in one folder, which `tools/judge` writes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from anaphora.errors import AnaphoraError, ReaderError
from anaphora.rank.pairs import (
    UNDECIDED,
    CalibratedTrees,
    PairVerdict,
    Stack,
    Statement,
    StatementPair,
    features_of,
    verdicts_of,
)
from anaphora.reading.inputs import pair_text
from anaphora.reading.model import MANIFEST_FILE, Reader, read_reader_manifest

BUNDLED: Final = Path(__file__).parents[1] / "reading" / "models" / "pairs"
"""The folder that ships."""

TREES_FILE: Final = "trees.npz"
STACK_FILE: Final = "stack.npz"

ENGLISH: Final = frozenset({"en", ""})
"""The languages that the model reads; "": none shows."""

_SAID: Final = 0.5
"""The probability of a replacement by features alone that is not believed without the model."""

_LOAD_FAILURES: Final = (
    *(AnaphoraError, RuntimeError, ValueError, OSError, MemoryError, ImportError),
    *(BadZipFile, KeyError),  # of a stack that is none
)


class PairJudge:
    """The judge of a folder. Safe between threads. Cheap to make: it opens at first use."""

    def __init__(self, folder: Path = BUNDLED) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: tuple[Reader, Stack] | None = None
        self._failure: ReaderError | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is anything to judge with."""
        return (self._folder / TREES_FILE).exists()

    @cached_property
    def version(self) -> str:
        """The version of its verdicts: those of another one are made again.

        Raises OSError where the trees are missing, and ReaderError where the manifest is none.
        """
        name, weights = "features", (self._folder / TREES_FILE).read_bytes()
        stack = self._folder / STACK_FILE
        if (self._folder / MANIFEST_FILE).is_file() and stack.is_file():
            name = read_reader_manifest(self._folder).name
            weights += stack.read_bytes()
        return f"{name}:{sha256(weights).hexdigest()[:12]}"

    @cached_property
    def trees(self) -> CalibratedTrees:
        """What judges by features. Raises OSError where it is missing."""
        return CalibratedTrees.of(read_arrays(self._folder / TREES_FILE))

    def judge_features(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        """What the later statement of each pair makes of the earlier, by their features alone.

        Where there are no trees, it makes nothing of it.
        """
        if not self.is_there:
            return [PairVerdict(0.0, 0.0, 0.0)] * len(pairs)
        return self.trees.judge(pairs)

    def judge(self, pairs: Sequence[StatementPair], most: int | None = None) -> list[PairVerdict]:
        """The same, with the model where features leave a doubt: in the `most` likeliest ones, and
        in up to three times as many where they say that one replaces the other."""
        rows = features_of(pairs)
        odds = self.trees.log_odds(rows)
        verdicts = verdicts_of(pairs, odds)
        doubts = [
            number
            for number, verdict in enumerate(verdicts)
            if verdict.replaces >= UNDECIDED and is_english(pairs[number])
        ]
        doubts = sorted(doubts, key=lambda number: -verdicts[number].replaces)
        if most is not None:
            likely_count = sum(verdicts[number].replaces >= _SAID for number in doubts)
            doubts = doubts[: max(most, min(likely_count, 3 * most))]
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
        stacked = verdicts_of(doubtful, stack.log_odds(rows[doubts], odds[doubts], read))
        for number, verdict in zip(doubts, stacked, strict=True):
            verdicts[number] = verdict
        return verdicts

    def check(self) -> ReaderError | None:
        """Why features alone judge, after trying to load the model; None where both do."""
        self._load_once()
        return self._failure

    def _load_once(self) -> tuple[Reader, Stack] | None:
        with self._lock:
            if self._loaded is None and self._failure is None:
                try:
                    self._loaded = self._load()
                except _LOAD_FAILURES as error:
                    self._failure = ReaderError(str(error) or type(error).__name__)
                    self._failure.__cause__ = error
            return self._loaded

    def _load(self) -> tuple[Reader, Stack]:
        reader = Reader(self._folder, threads=1)
        arrays = read_arrays(self._folder / STACK_FILE)
        stack = Stack(arrays["weights"], str(arrays["model"]))
        if reader.name != stack.model:
            raise ReaderError(f"the stack was fitted with {stack.model}, not with {reader.name}")
        return reader, stack


@lru_cache(maxsize=1)
def bundled_judge() -> PairJudge:
    """The judge that ships: one in a process, however many homes are open."""
    return PairJudge()


def read_arrays(file: Path) -> dict[str, Any]:
    """The arrays of a file. Raises OSError where it is missing."""
    # NumPy leaves a damaged file open.
    with np.load(BytesIO(file.read_bytes())) as packed:
        return dict(packed)


def is_english(pair: StatementPair) -> bool:
    """Whether the model reads a pair."""
    return {pair.older.reading.code, pair.newer.reading.code} <= ENGLISH


def _texts_of(pair: StatementPair) -> tuple[str, str]:
    return read_form(pair.older), read_form(pair.newer)


def read_form(statement: Statement) -> str:
    """A statement as the model reads it."""
    return pair_text(statement.text, statement.by, statement.before)
