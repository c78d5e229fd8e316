"""Batches of vectors as truth gives them, cut where a memory ends.

In: batches in the order of their numbers, in which one memory's parts can straddle two. Out: the
same vectors, each memory whole. Never reads anything itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from anaphora.store.records.vectors import VectorBatch


def starts_of(owners: Sequence[str]) -> list[int]:
    """Where each owner's entries begin, in a list in which they stand together."""
    return [at for at, one in enumerate(owners) if not at or owners[at - 1] != one]


def whole_records(batches: Iterable[VectorBatch]) -> Iterator[VectorBatch]:
    """The same vectors, in batches that no record's parts are split between."""
    held: VectorBatch | None = None
    for fetched in batches:
        batch = fetched
        if held is not None:
            batch = VectorBatch(
                held.record_ids + fetched.record_ids,
                held.parts + fetched.parts,
                held.data + fetched.data,
                fetched.seq,
            )
        cut = starts_of(batch.record_ids)[-1]
        size = len(batch.data) // len(batch.parts)
        if cut:
            # Its number is not known; that of the whole batch only says that this was taken.
            yield VectorBatch(
                batch.record_ids[:cut], batch.parts[:cut], batch.data[: cut * size], batch.seq
            )
        held = VectorBatch(
            batch.record_ids[cut:], batch.parts[cut:], batch.data[cut * size :], batch.seq
        )
    if held is not None:
        yield held
