"""The value types of the index of turns, and the fingerprints that a sync needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from anaphora.index.words.documents import IndexedDocument, document_of
from anaphora.language.analyser import index_text
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_OTHER, ROLE_USER, turn_flags
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.text.recalled import strip_recalled
from anaphora.text.shown_times import in_speakers_zone
from anaphora.values.conversations import Degraded, Turn

Identity: TypeAlias = tuple[int, int, int, int]
"""Identifies a content: a file's inode, size, mtime and ctime in nanoseconds, or a stamp."""

_ROLES = {"user": ROLE_USER, "assistant": ROLE_ASSISTANT}


@dataclass(frozen=True, slots=True)
class AnnCheckpoint:
    """The state of the ANN index on disk according to the index file; `generation` "" for none.

    It has the vectors up to number `upto`. Those up to `target` may be there too: a writer records
    its target before it begins, and forgetting one of these removes the checkpoint.
    """

    generation: str = ""
    upto: int = 0
    target: int = 0


@dataclass(frozen=True, slots=True)
class IndexedTurn:
    """The indexed form of a turn. `offset` is the UTC offset of its time, in minutes east.

    In a sealed home, terms and both hashes are keyed, and there are no words as written.
    """

    position: int
    role: int
    speaker: str | None
    ts: float
    offset: int
    text: str
    words: IndexedDocument
    length: int
    flags: int
    text_hash: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class ThreadCheckpoint:
    """How far a thread file was synced: `count` turns with digests that chain to `chain`.

    `seen_ns` is when `identity` was read: a file that was written just before could have been
    written again within the same tick of the file system's clock. `title` is that of the
    conversation, "" if it has none.
    """

    identity: Identity
    seen_ns: int
    count: int
    chain: bytes
    code: int = -1
    title: str = ""

    def same_content(self, other: ThreadCheckpoint | None) -> bool:
        """Whether both describe the same turns of the same file."""
        return other is not None and (self.identity, self.count, self.chain) == (
            other.identity,
            other.count,
            other.chain,
        )


@dataclass(frozen=True, slots=True)
class IndexChange:
    """A change from `base` to `checkpoint`: drop turns from a position on, then add records.

    `base` is None for a thread that was not indexed, `checkpoint` for a deleted one.
    """

    conversation_id: str
    base: ThreadCheckpoint | None
    drop_from: int
    records: tuple[IndexedTurn, ...]
    checkpoint: ThreadCheckpoint | None

    @property
    def dropped(self) -> int:
        """How many indexed turns it removes."""
        return 0 if self.base is None else max(0, self.base.count - self.drop_from)

    @property
    def renamed(self) -> bool:
        """Whether a title is removed or replaced."""
        old_title = "" if self.base is None else self.base.title
        return bool(old_title) and (self.checkpoint is None or self.checkpoint.title != old_title)


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The result of a sync: turns added, texts embedded by this call, texts left to embed."""

    new_turns: int = 0
    embedded: int = 0
    pending: int = 0
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The state of an index for `doctor`; `problems` is empty if all is well.

    `vectors` counts texts with a vector, `pending` texts without one, `failed` those of them that
    could not be embedded; `size` is bytes on disk.
    """

    conversations: int
    turns: int
    vectors: int
    pending: int
    failed: int
    size: int
    problems: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Indexed:
    """Queries to the index about a thread: its digests, and its speakers in order."""

    digests: Callable[[ThreadCheckpoint], Sequence[bytes]]
    speakers: Callable[[ThreadCheckpoint], Sequence[str | None]]


def text_hash(text: str, key: bytes = b"") -> bytes:
    """A hash of 16 bytes of a text: equal texts are embedded and stored once."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()


def digest_of(turn: Turn, key: bytes = b"") -> bytes:
    """A hash of 16 bytes of a turn in its thread file: role, time and text."""
    # With the length first, a NUL inside role or time is unambiguous.
    head = f"{len(turn.role)}\0{turn.role}\0{len(turn.ts_text)}\0{turn.ts_text}\0"
    body = (head + turn.text).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(body, digest_size=16, key=key).digest()


def chain_of(digests: Sequence[bytes]) -> bytes:
    """One hash over the digests of a thread's first turns, in order."""
    return hashlib.blake2b(b"".join(digests), digest_size=16).digest()


def first_difference(
    checkpoint: ThreadCheckpoint | None, digests: Sequence[bytes], indexed: Indexed
) -> int:
    """How many of the indexed turns still begin a thread with these digests."""
    if checkpoint is None:
        return 0
    if (
        len(digests) >= checkpoint.count
        and chain_of(digests[: checkpoint.count]) == checkpoint.chain
    ):
        return checkpoint.count
    old_digests = indexed.digests(checkpoint)
    pairs = zip(old_digests, digests, strict=False)
    first_differing = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    return min(len(old_digests), len(digests)) if first_differing is None else first_differing


def record_of(
    turn: Turn,
    position: int,
    speaker: str | None,
    digest: bytes,
    sealer: IndexSealer = CLEAR_INDEX,
) -> IndexedTurn:
    """Analyse a turn for the index, without recalled text that it quotes."""
    own_text = strip_recalled(turn.text)
    indexed_text = index_text(own_text, None, in_speakers_zone(turn.ts))
    tokens = [*map(sealer.token_key, indexed_text.tokens)]
    return IndexedTurn(
        position=position,
        role=_ROLES.get(turn.role, ROLE_OTHER),
        speaker=speaker,
        ts=turn.ts.timestamp(),
        offset=(turn.ts.utcoffset() or timedelta()) // timedelta(minutes=1),
        text=turn.text,
        words=document_of((tokens,), () if sealer.sealed else indexed_text.forms),
        length=indexed_text.length,
        flags=turn_flags(own_text),
        text_hash=text_hash(turn.text, sealer.hash_key),
        digest=digest,
    )
