"""What has no vector yet gets one, group by group: of memories, notes, sections and turns.

A text that cannot be embedded hides no other. A process tries it once; turns, whose attempts are
counted in their index file for all processes, say themselves which are worth another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from anaphora.errors import EmbeddingError

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService

GROUP: Final = 256
"""Texts that are embedded between two writes."""

KeyT = TypeVar("KeyT")
OwnerT = TypeVar("OwnerT")


def embed_texts(
    embedder: EmbedderService, texts: Mapping[KeyT, str]
) -> tuple[dict[KeyT, Vectors], dict[KeyT, EmbeddingError]]:
    """The vectors of texts by their keys, and why the others have none.

    Waits for the model; raises EmbeddingError when it cannot be loaded.
    """
    found = embedder.embed([*texts.values()]) if texts else []
    vectors, failures = {}, {}
    for key, made in zip(texts, found, strict=True):
        if isinstance(made, EmbeddingError):
            failures[key] = made
        else:
            vectors[key] = made
    return vectors, failures


class Backlog(Generic[OwnerT]):
    """The texts of one kind that have no vector. Safe to share between threads.

    `key_of` tells one owner of a text from another, `text_of` gives what is embedded of it. `put`
    keeps vectors with their owners and returns how many owners got theirs.
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
        """Why the last text that could not be embedded could not; None if all could."""
        return next(reversed(self._failed.values()), None)

    def embed(self, owners: Sequence[OwnerT]) -> list[tuple[OwnerT, Vectors]]:
        """The owners whose texts can be embedded, with their vectors; none that failed before."""
        fresh = {self._key_of(one): one for one in owners if self._key_of(one) not in self._failed}
        texts = {key: self._text_of(one) for key, one in fresh.items()}
        vectors, failures = embed_texts(self._embedder, texts)
        self._failed.update(failures)
        return [(fresh[key], made) for key, made in vectors.items()]

    def attach(self, owners: Sequence[OwnerT]) -> int:
        """Embed texts and keep their vectors; how many owners got theirs."""
        return self._put(self.embed(owners))

    def fill(
        self,
        owners_without: Callable[[str, int], Sequence[OwnerT]],
        limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        cursor_of: Callable[[OwnerT], str] | None = None,
    ) -> tuple[int, int]:
        """Work through what has no vector, until `limit` got theirs; how many did, and did not.

        `owners_without` gives up to so many after a cursor, in its order; `cursor_of` says where an
        owner stands in it (its key, unless told). `progress` is called with (got theirs, looked
        at). What is done is kept, so that an interrupted call can be made again.
        """
        done, left, after = 0, 0, ""
        while limit is None or done < limit:
            owners = owners_without(after, GROUP if limit is None else min(GROUP, limit - done))
            if not owners:
                break
            after = (cursor_of or self._key_of)(owners[-1])
            made = self.attach(owners)
            done, left = done + made, left + len(owners) - made
            if progress is not None:
                progress(done, done + left)
        return done, left
