"""Embeds texts of any length with a model that has a window: cuts them, runs batches, collects.

Shared by the models that run in this process. A text longer than the window is split at paragraphs,
lines or sentences; every text has at least one part; texts are processed in blocks, so that memory
is bounded by a block and the resulting rows.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np

from anaphora.embed.base import Vector, Vectors
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
# Key material up to this size is used as it is, longer material is hashed.
_KEY_BYTES: Final = 1024
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
    """Cuts texts for a model that reads `room` word pieces beside the special ones."""

    tokenizer: Tokenizer
    room: int

    def key(self, text: str, width: type[np.unsignedinteger] = np.uint16) -> Hashable:
        """The word pieces of a text, as ids of this width: equal for texts that read the same."""
        ids = b"".join(
            np.asarray(piece_ids, width).tobytes() for _, piece_ids in self._blocks(text)
        )
        return ids if len(ids) <= _KEY_BYTES else hashlib.sha256(ids).digest()

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
        if not text.isascii():
            text = _SURROGATES.sub("\ufffd", text)
        for block in blocks(text, _BLOCK):
            yield block, self.tokenizer.ids(block)


def embed_parts(
    parts: Iterable[Part],
    texts: int,
    around: int,
    run: Run,
    *,
    threads: int = 1,
) -> list[Vectors]:
    """The vectors of the parts of so many texts, by text: shape (parts, dimensions) each.

    `run` gives a row for each part of a batch, and adds `around` word pieces to each part. So many
    `threads` run batches at a time.
    """
    rows: list[list[Vector]] = [[] for _ in range(texts)]
    waiting: list[Part] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) == _ROUND:
            _run_round(waiting, rows, around, run, threads)
            waiting = []
    _run_round(waiting, rows, around, run, threads)
    return [np.stack(text_rows) for text_rows in rows]


def _run_round(
    parts: Sequence[Part],
    rows: list[list[Vector]],
    around: int,
    run: Run,
    threads: int,
) -> None:
    """Embed parts in batches of nearly equal length and append the rows to their texts."""
    order = sorted(range(len(parts)), key=lambda at: len(parts[at][1]))
    part_vectors: list[Vector | None] = [None] * len(parts)

    def embed(batch: list[int]) -> None:
        for at, vector in zip(batch, run([parts[at][1] for at in batch]), strict=True):
            part_vectors[at] = vector

    share_out([*_batches(order, [len(ids) + around for _, ids in parts])], embed, threads)
    for (number, _), vector in zip(parts, part_vectors, strict=True):
        assert vector is not None
        rows[number].append(vector)


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

    helpers = [
        threading.Thread(target=work, name="anaphora-embedding", daemon=True)
        for _ in range(min(threads, len(batches)) - 1)
    ]
    begun = [helper for helper in helpers if begins(helper)]
    work()
    for helper in begun:
        helper.join()
    if errors:
        raise errors[0]


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Cut an order of rising length into batches that keep both limits."""
    batch: list[int] = []
    for at in order:
        is_full = len(batch) == _BATCH or (len(batch) + 1) * lengths[at] > _BATCH_PIECES
        if batch and is_full:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch
