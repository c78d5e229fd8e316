"""The values that travel inside the index of turns, and the fingerprints that a sync needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from anaphora.core.analyser import index_text
from anaphora.core.recalled import strip_recalled
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_OTHER, ROLE_USER, turn_flags
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.values.conversations import Degraded, Turn

Identity: TypeAlias = tuple[int, int, int, int]
"""What tells a content apart: a file's inode, size, mtime and ctime in nanoseconds, or a stamp."""

_ROLES = {"user": ROLE_USER, "assistant": ROLE_ASSISTANT}


@dataclass(frozen=True, slots=True)
class AnnCheckpoint:
    """What the index file says of the ANN index on disk; `generation` "" for none.

    It holds the vectors up to number `upto`. Vectors up to `target` may be there too: whoever
    writes says so before it begins, and what is forgotten of them takes the checkpoint away.
    """

    generation: str = ""
    upto: int = 0
    target: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A turn as it is indexed. `tokens` is analysed text, joined by single spaces; behind a line
    break the words as they are written, for those that are misspelt in a question. `offset` is that
    at which it was said, in minutes east of UTC.

    In a sealed home each token is a keyed one, and so are both hashes; it has no words as written.
    """

    position: int
    role: int
    speaker: str | None
    ts: float
    offset: int
    text: str
    tokens: str
    length: int
    flags: int
    text_hash: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a thread file was synced: `count` turns, whose digests chain to `chain`.

    `seen_ns` is when `identity` was read: a file that was written just before could have been
    written again within the same tick of the file system's clock. `title` is what the conversation
    is called, "" where it was given no name.
    """

    identity: Identity
    seen_ns: int
    count: int
    chain: bytes
    code: int = -1
    title: str = ""

    def same_content(self, other: Checkpoint | None) -> bool:
        """Whether both stand for the same turns of the same file."""
        return other is not None and (self.identity, self.count, self.chain) == (
            other.identity,
            other.count,
            other.chain,
        )


@dataclass(frozen=True, slots=True)
class Change:
    """What brings the index from `base` to `checkpoint`: drop from a position on, then add records.

    `base` is None for a thread that was not indexed, `checkpoint` for one that is gone.
    """

    conversation_id: str
    base: Checkpoint | None
    drop_from: int
    records: tuple[Record, ...]
    checkpoint: Checkpoint | None

    @property
    def dropped(self) -> int:
        """How many indexed turns it takes away."""
        return 0 if self.base is None else max(0, self.base.count - self.drop_from)

    @property
    def renamed(self) -> bool:
        """Whether a title goes away."""
        old = "" if self.base is None else self.base.title
        return bool(old) and (self.checkpoint is None or self.checkpoint.title != old)


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync did: turns added, texts embedded by this call, vectors still to come."""

    new_turns: int = 0
    embedded: int = 0
    pending: int = 0
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The state of an index for `doctor`; `problems` is empty when all is well.

    `vectors` counts texts that have one, `pending` texts that have none yet, `failed` those of
    them that could not be embedded; `size` is bytes on disk.
    """

    conversations: int
    turns: int
    vectors: int
    pending: int
    failed: int
    words_indexed: int
    words_in_memory: int
    size: int
    problems: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Indexed:
    """What is asked of the index about a thread: its digests, and its speakers in order."""

    digests: Callable[[Checkpoint], Sequence[bytes]]
    speakers: Callable[[Checkpoint], Sequence[str | None]]


def text_hash(text: str, key: bytes = b"") -> bytes:
    """16 bytes that stand for a text: equal texts are embedded and kept once."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()


def digest_of(turn: Turn, key: bytes = b"") -> bytes:
    """16 bytes that stand for a turn as its thread file has it: role, time and text."""
    # None of the first two can hold NUL once it stands for itself: the length goes first.
    head = f"{len(turn.role)}\0{turn.role}\0{len(turn.ts_text)}\0{turn.ts_text}\0"
    body = (head + turn.text).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(body, digest_size=16, key=key).digest()


def chain_of(digests: Sequence[bytes]) -> bytes:
    """One hash over the digests of a thread's first turns, in order."""
    return hashlib.blake2b(b"".join(digests), digest_size=16).digest()


def first_difference(
    checkpoint: Checkpoint | None, digests: Sequence[bytes], indexed: Indexed
) -> int:
    """How many of the indexed turns still stand at the beginning of a thread with these digests."""
    if checkpoint is None:
        return 0
    if (
        len(digests) >= checkpoint.count
        and chain_of(digests[: checkpoint.count]) == checkpoint.chain
    ):
        return checkpoint.count
    old = indexed.digests(checkpoint)
    pairs = zip(old, digests, strict=False)
    first_differing = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    return min(len(old), len(digests)) if first_differing is None else first_differing


def record_of(
    turn: Turn,
    position: int,
    speaker: str | None,
    digest: bytes,
    sealer: IndexSealer = CLEAR_INDEX,
) -> Record:
    """Analyse a turn for the index; recalled text that it quotes is not said anew by it."""
    own_text = strip_recalled(turn.text)
    indexed = index_text(own_text)
    tokens = " ".join(map(sealer.token_key, indexed.tokens))
    forms = "" if sealer.sealed else " ".join(indexed.forms)
    return Record(
        position=position,
        role=_ROLES.get(turn.role, ROLE_OTHER),
        speaker=speaker,
        ts=turn.ts.timestamp(),
        offset=(turn.ts.utcoffset() or timedelta()) // timedelta(minutes=1),
        text=turn.text,
        tokens=f"{tokens}\n{forms}" if forms else tokens,
        length=indexed.length,
        flags=turn_flags(own_text),
        text_hash=text_hash(turn.text, sealer.hash_key),
        digest=digest,
    )


def tokens_and_forms(stored: str) -> tuple[str, str]:
    """The tokens of a turn, and its words as they are written."""
    tokens, _, forms = stored.partition("\n")
    return tokens, forms
