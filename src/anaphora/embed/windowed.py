"""Embeds texts of any length with a model that has a window: cuts them, runs batches, collects.

Shared by the models that run in this process. A text longer than the window is split at paragraphs,
lines or sentences; every text has at least one part; texts are processed in blocks, so that memory
is bounded by a block and the resulting rows.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol, TypeAlias

import numpy as np

from anaphora.embed.base import Vector, Vectors, without_final_marks
from anaphora.embed.chunking import blocks, windows
from anaphora.system.late_threads import begins

# A run takes at most so many parts and so many word pieces, including padding. More word pieces do
# not fit into the processor's cache: 32 parts of full length run at less than half the speed.
_BATCH: Final = 32
_BATCH_PIECES: Final = 512
# Parts are collected up to this many, sorted by length and then run: large enough for batches of
# nearly equal length, small enough that a text of many megabytes does not fill the memory.
_ROUND: Final = 2048
# Characters that are tokenised at once; a tokenised character costs some 50 bytes.
_BLOCK: Final = 1 << 16
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

Run: TypeAlias = Callable[[Sequence[Sequence[int]]], Vectors]
"""The model: a row for each part of a batch, of the numbers of its word pieces."""

Part: TypeAlias = tuple[int, Sequence[int]]
"""The number of the text that a part belongs to, and the ids of its word pieces."""


class Tokenizer(Protocol):
    """Cuts texts into word pieces."""

    def ids(self, text: str) -> list[int]:
        """The ids of the text's word pieces, without special ones."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) characters of each of its word pieces."""


@dataclass(frozen=True, slots=True)
class TextWindows:
    """Cuts texts for a model that reads `room` word pieces beside the special ones; with `typed`
    one that reads no final marks of a text."""

    tokenizer: Tokenizer
    room: int
    typed: bool = False

    def key(self, text: str) -> bytes:
        """A digest of the word pieces of a text: equal for texts that read the same."""
        digest = hashlib.sha256()
        for _, ids in self._blocks(text):
            digest.update(np.asarray(ids, np.uint32).tobytes())
        return digest.digest()

    def parts(self, texts: Sequence[str]) -> Iterator[Part]:
        """All parts of texts, in order; for a blank text a part without word pieces."""
        for number, text in enumerate(texts):
            any_part = False
            for block, ids in self._blocks(text):
                if len(ids) <= self.room:
                    cuts: Iterable[tuple[int, int]] = ((0, len(ids)),)
                else:
                    cuts = windows(block, self.tokenizer.spans(block), self.room)
                # A block without word pieces has one empty window.
                for start, end in cuts:
                    if start < end:
                        any_part = True
                        yield number, ids[start:end]
            if not any_part:
                yield number, ()

    def _blocks(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """The blocks of a text, each with its word pieces."""
        if self.typed:
            text = without_final_marks(text)
        if not text.isascii():
            text = _SURROGATES.sub("\ufffd", text)
        for block in blocks(text, _BLOCK):
            yield block, self.tokenizer.ids(block)


def embed_parts(parts: Iterable[Part], around: int, run: Run, *, threads: int = 1) -> list[Vectors]:
    """The vectors of all parts of texts, by text: shape (parts, dimensions) each.

    `run` gives a row for each part of a batch, and adds `around` word pieces to each part. So many
    `threads` run batches at a time.
    """
    rows: dict[int, list[Vector]] = defaultdict(list)
    parts, ids = iter(parts), tuple[Sequence[int], ...]()
    vectors: dict[int, Vector] = {}

    def embed(batch: list[int]) -> None:
        vectors.update(zip(batch, run(list(map(ids.__getitem__, batch))), strict=True))

    while round_parts := list(islice(parts, _ROUND)):
        numbers, ids = zip(*round_parts, strict=True)
        share_out(_batches(list(map(len, ids)), around), embed, threads)
        for at, number in enumerate(numbers):
            rows[number].append(vectors[at])
    return list(map(np.stack, rows.values()))


def share_out(batches: list[list[int]], run: Callable[[list[int]], None], threads: int) -> None:
    """Run all batches, the last first, in this thread and in others."""
    lock = threading.Lock()
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            with lock:
                if not batches:
                    return
                batch = batches.pop()
            try:
                run(batch)
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                errors.append(error)

    helpers: list[threading.Thread] = []
    for _ in range(min(threads, len(batches)) - 1):
        helper = threading.Thread(target=work, name="anaphora-embedding", daemon=True)
        if begins(helper):
            helpers.append(helper)
    work()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]


def _batches(lengths: Sequence[int], around: int) -> list[list[int]]:
    """Places of parts by rising length, in batches that keep both limits."""
    batches: list[list[int]] = [[]]
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        size = len(batches[-1]) + 1
        if size > 1 and (size > _BATCH or size * (lengths[at] + around) > _BATCH_PIECES):
            batches.append([])
        batches[-1].append(at)
    return batches
