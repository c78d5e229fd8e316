"""Embeds texts that have no vector yet, group by group: of memories, notes, sections and turns.

A text that cannot be embedded does not hold up the others. A call embeds no more than `IN_CALL`
characters; the rest is embedded in the background. A process tries a text once. Attempts for turns
are counted in their index file for all processes, so their index decides which texts to retry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from anaphora.embed.chunking import PIECE
from anaphora.errors import EmbeddingError

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService
    from anaphora.store.records.vectors import RecordVectors, TextToEmbed

GROUP: Final = 256
"""Texts that are embedded between two writes."""

IN_CALL: Final = PIECE
"""Characters that become vectors while a caller waits: some 0.4 s of one core."""

KeyT = TypeVar("KeyT")
OwnerT = TypeVar("OwnerT")


def embed_texts(
    embedder: EmbedderService,
    texts: Mapping[KeyT, str],
    stopping: Callable[[], bool] | None = None,
) -> tuple[dict[KeyT, Vectors], dict[KeyT, EmbeddingError]]:
    """The vectors of texts by their keys, and the errors of those that failed. Texts not reached
    before `stopping` became true are in neither.

    Waits for the model; raises EmbeddingError when it cannot be loaded.
    """
    outcomes = embedder.embed([*texts.values()], stopping=stopping) if texts else []
    vectors, failures = {}, {}
    for key, outcome in zip(texts, outcomes, strict=False):
        if isinstance(outcome, EmbeddingError):
            failures[key] = outcome
        else:
            vectors[key] = outcome
    return vectors, failures


class Backlog(Generic[OwnerT]):
    """The texts of one kind that have no vector. Safe to share between threads.

    `key_of` identifies the owner of a text, `text_of` gives the text to embed. `put` stores vectors
    with their owners and returns how many owners received theirs.
    """

    def __init__(
        self,
        embedder: EmbedderService,
        key_of: Callable[[OwnerT], str],
        text_of: Callable[[OwnerT], str],
        put: Callable[[Sequence[tuple[OwnerT, Vectors]]], int],
    ) -> None:
        self._embedder = embedder
        self._key_of = key_of
        self._text_of = text_of
        self._put = put
        self._failed: dict[str, EmbeddingError] = {}

    @property
    def failure(self) -> EmbeddingError | None:
        """The error of the last text that could not be embedded; None if all could."""
        return next(reversed(self._failed.values()), None)

    def embed(
        self, owners: Sequence[OwnerT], stopping: Callable[[], bool] | None = None
    ) -> list[tuple[OwnerT, Vectors]]:
        """Owners with the vectors of their texts, without texts that fail now or failed before."""
        owners_by_key = {
            self._key_of(owner): owner
            for owner in owners
            if self._key_of(owner) not in self._failed
        }
        texts = {key: self._text_of(owner) for key, owner in owners_by_key.items()}
        vectors, failures = embed_texts(self._embedder, texts, stopping)
        self._failed.update(failures)
        return [(owners_by_key[key], text_vectors) for key, text_vectors in vectors.items()]

    def attach(self, owners: Sequence[OwnerT], stopping: Callable[[], bool] | None = None) -> int:
        """Embed texts and store their vectors; how many owners received theirs."""
        return self._put(self.embed(owners, stopping))

    def fill(
        self,
        owners_without: Callable[[str, int], Sequence[OwnerT]],
        limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        cursor_of: Callable[[OwnerT], str] | None = None,
        *,
        room: int | None = None,
        step: int | None = None,
        stopping: Callable[[], bool] | None = None,
    ) -> tuple[int, int]:
        """Embed texts without a vector until `limit` are embedded; how many were, and were not.

        `owners_without` lists up to so many owners after a cursor, in its order; `cursor_of` gives
        the cursor of an owner (by default its key). `progress` is called with (embedded, tried).
        It ends before the first text that exceeds `room` characters together with those before
        it, and when `stopping` becomes true. Vectors are stored group by group, so an interrupted
        call can be repeated.
        """
        embedded_count, failed_count, cursor, step = 0, 0, "", step or GROUP
        while (limit is None or embedded_count < limit) and not (
            stopping is not None and stopping()
        ):
            owners = owners_without(
                cursor, step if limit is None else min(step, limit - embedded_count)
            )
            if room is not None:
                fitting: list[OwnerT] = []
                for owner in owners:
                    size = 0 if self._key_of(owner) in self._failed else len(self._text_of(owner))
                    if size > room:
                        break
                    room -= size
                    fitting.append(owner)
                owners = fitting
            if not owners:
                break
            cursor = (cursor_of or self._key_of)(owners[-1])
            group_count = self.attach(owners, stopping)
            embedded_count, failed_count = (
                embedded_count + group_count,
                failed_count + len(owners) - group_count,
            )
            if progress is not None:
                progress(embedded_count, embedded_count + failed_count)
        return embedded_count, failed_count


def fill_records(
    backlog: Backlog[TextToEmbed],
    vectors: RecordVectors,
    embedder: str,
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    room: int | None = None,
    stopping: Callable[[], bool] | None = None,
) -> tuple[int, int]:
    """`Backlog.fill` with the records that have no vector of an embedder: how many were embedded,
    and how many failed.

    Long texts come last, one by one; with `room`, in characters, longer texts are left out.
    """
    longest = PIECE if room is None else room

    def short(after: str, count: int) -> Sequence[TextToEmbed]:
        return vectors.owners_without(embedder, after=after, limit=count, longest=longest)

    def long(after: str, count: int) -> Sequence[TextToEmbed]:
        return vectors.owners_without(embedder, after=after, limit=count, longer_than=longest)

    embedded_count, failed_count = backlog.fill(
        short, limit, progress, room=room, stopping=stopping
    )
    if room is None and (limit is None or embedded_count < limit):
        remaining = None if limit is None else limit - embedded_count
        more_embedded, more_failed = backlog.fill(
            long, remaining, progress, step=1, stopping=stopping
        )
        embedded_count, failed_count = embedded_count + more_embedded, failed_count + more_failed
    return embedded_count, failed_count
