"""The frozen values of the memory lane: what is remembered, and what comes back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeVar, get_args

__all__ = [
    "Contradiction",
    "CoreBlock",
    "CoreEntry",
    "CoreKind",
    "Forgotten",
    "HalfLives",
    "MemoryHit",
    "MemoryRecord",
    "MemoryType",
    "NewMemory",
    "Page",
    "Reindexed",
    "Rejected",
    "RelatedMemory",
    "Remembered",
    "SurvivingSource",
    "Verdict",
]

MemoryType = Literal["episodic", "semantic", "procedural"]
NoteKind = Literal[
    "blocker", "code_insight", "constraint", "decision", "fact", "note", "preference"
]
NOTE_KINDS: Final[tuple[NoteKind, ...]] = get_args(NoteKind)
"""The types of notes, which are beside memories."""
Verdict = Literal["replaces", "both_hold", "wrong"]
CoreKind = Literal["constraint", "preference", "decision", "fact"]
Action = Literal["added", "reinforced", "superseded", "updated"]
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class MemoryField:
    """What every room needs to know of a field, beside its name and type in the values below.

    `kind` says what it may hold: "text" is words, out of which secrets are taken, "id" names
    another memory. Filters may ask about `filtered` ones. `changes` is what another value makes
    of a memory: a "version" that supersedes it, a change "in_place", or nothing, as none can come.
    """

    kind: Literal["text", "id", "path", "type", "tags", "payload", "time", "number", "flag"]
    meaning: str = ""
    filtered: bool = False
    changes: Literal["version", "in_place"] | None = None


# In the order in which messages about filters name them.
MEMORY_FIELDS: Final[Mapping[str, MemoryField]] = {
    "text": MemoryField("text", changes="version"),
    "payload": MemoryField("payload", "Any JSON object to keep beside it.", changes="version"),
    "id": MemoryField("id", filtered=True),
    "category": MemoryField("text", "One word to filter by.", filtered=True, changes="in_place"),
    "type": MemoryField(
        "type",
        "What kind of memory: `episodic` fades soonest, then `semantic`, then `procedural`.",
        filtered=True,
        changes="in_place",
    ),
    "path": MemoryField(
        "path",
        "Key (e.g. `user.editor`). A new value replaces the old one.",
        filtered=True,
        changes="version",
    ),
    "parent": MemoryField("id", "The id of the memory that it was derived from.", filtered=True),
    "source": MemoryField("text", "Where it comes from, as a file's path.", filtered=True),
    "created_at": MemoryField(
        "time", "When it was learned, where that was not now.", filtered=True
    ),
    "last_reinforced": MemoryField("time", filtered=True),
    "expires_at": MemoryField(
        "time", "From when on it is no longer recalled.", filtered=True, changes="in_place"
    ),
    "tags": MemoryField("tags", "Words to filter by.", filtered=True, changes="in_place"),
    "reinforce_count": MemoryField("number", filtered=True),
    "conversation_id": MemoryField("text", "Which conversation it comes from."),
    "turn_index": MemoryField("number", "Which turn of that conversation it comes from, from 0."),
    "supersedes": MemoryField("id", "The id of one that it replaces."),
    "dedupe": MemoryField("flag"),
    "redact": MemoryField("flag"),
    "guarded": MemoryField("flag"),
    "keep_secret": MemoryField("flag"),
}
"""The fields that a memory is given with or asked about. Out of these are made: what is checked,
redacted, filtered and changed, and the schemas of REST and MCP."""


LABELS: Final = tuple(
    name
    for name, field in MEMORY_FIELDS.items()
    if field.changes == "in_place" and field.kind in {"tags", "text"}
)
"""The fields that a memory is sorted by, and may be given or changed without a new version."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What the caller wants remembered. `path` names what it is the value of ("user.editor").

    `payload` is any JSON object. `source` says where it comes from, `conversation_id` and
    `turn_index` which turn; `parent` is the id of the memory it was derived from; `supersedes` the
    id of one that it replaces. Times are aware. `dedupe=False` and `redact=False` are for adapters
    whose contract is to return exactly what was put. `guarded` is for who read before writing: it
    is refused (`Conflict`) unless what it supersedes still stands and its path has no other value.
    `keep_secret` keeps a secret in it on purpose: it is masked wherever it leaves the home.
    """

    text: str
    type: MemoryType = "semantic"
    path: str | None = None
    payload: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None
    source: str | None = None
    conversation_id: str | None = None
    turn_index: int | None = None
    parent: str | None = None
    supersedes: str | None = None
    expires_at: datetime | None = None
    created_at: datetime | None = None
    dedupe: bool = True
    redact: bool = True
    guarded: bool = False
    keep_secret: bool = False


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory as truth has it. `valid_to` and `superseded_by` are set once a newer value came.

    `reinforce_count` counts restatements after the first; `sources` are all of them, in order.
    `seq` is its number in the namespace's order of commits, moved by every change to it. `pin` is
    its place in the core block, above 0 and rising; 0 keeps it out; None leaves it to its kind.
    `keep_secret`: its owner kept a secret in it on purpose.
    """

    id: str
    text: str
    type: MemoryType
    created_at: datetime
    last_reinforced: datetime
    valid_from: datetime
    seq: int
    path: str | None = None
    payload: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None
    sources: tuple[str, ...] = ()
    conversation_id: str | None = None
    turn_index: int | None = None
    parent: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    expires_at: datetime | None = None
    valid_to: datetime | None = None
    reinforce_count: int = 0
    forgotten: bool = False
    pin: float | None = None
    keep_secret: bool = False


@dataclass(frozen=True, slots=True)
class RelatedMemory:
    """Another memory that something is about: its id, its words, and when it was learned."""

    id: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Remembered:
    """What `remember` or `update` did. `related` are ids of close memories, which stay.

    `redacted` are the kinds of secrets that were taken out before anything was stored. `conflicts`
    are memories that are close and say otherwise, the closest first: `settle_contradiction` says
    what holds, or `remember` it again with `supersedes`. `notices` say what the user should know:
    where the path was read as another one that differs only in case, of a language that is hardly
    read, or where a long text is found by its words alone for a while.
    """

    id: str
    action: Action
    related: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    conflicts: tuple[RelatedMemory, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two memories that seem to contradict each other, `similarity` their cosine.

    `verdict` is None while nobody has said what holds. `holds` are the ids of those of the two that
    are recalled as what holds now.
    """

    older: RelatedMemory
    newer: RelatedMemory
    similarity: float
    verdict: Verdict | None
    holds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A recalled memory, or a note about a project: its `type` is then the kind of the note.

    `score` = (`similarity` × `decay` × `reinforcement` + `reader`) × `unanswered`: what the reader
    adds or takes that read it with the question, and a factor of those that only ask or do not
    know. `answers` is the probability that it answers, from all that is known of it; None where
    nothing is. `read` is that of the reader alone; None where it was not read. Hits stand in groups
    of what is about one thing, by the best score of each: within one, what holds now comes before
    what it replaced, whatever its own score.

    `similarity` is absolute, 0…1. `factors` says how it came about. `related` are ids of close
    memories; `same_as` those that say the same and are not shown again. `current` is False where a
    later memory seems to say otherwise: `older_than` is that one, `reason` says what tells it, and
    `previous` are the former values of its path, the last first, then those that this one seems to
    replace, the surest first. `sources` say where it came from, in order.
    """

    id: str
    text: str
    score: float
    similarity: float
    decay: float
    reinforcement: float
    type: MemoryType | NoteKind
    created_at: datetime
    path: str | None = None
    payload: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    related: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()
    current: bool = True
    older_than: RelatedMemory | None = None
    reason: str = ""
    previous: tuple[RelatedMemory, ...] = ()
    sources: tuple[str, ...] = ()
    answers: float | None = None
    read: float | None = None
    keep_secret: bool = False


@dataclass(frozen=True, slots=True)
class CoreEntry:
    """A memory of the core block. Its `text` is cut after 300 characters.

    `position` is its place among the pinned ones, from 1; None where it comes by its `kind`, a rule
    ("constraint") or a preference. `sources`, `conversation_id` and `turn_index` say where it comes
    from, `since` from when on it holds, `previous` what it replaced in the last two weeks,
    `contradicts` what it stands against in an open contradiction.
    """

    id: str
    text: str
    kind: CoreKind
    position: int | None
    since: datetime
    path: str | None = None
    sources: tuple[str, ...] = ()
    conversation_id: str | None = None
    turn_index: int | None = None
    previous: RelatedMemory | None = None
    tokens: int = 0
    contradicts: tuple[RelatedMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class CoreBlock:
    """What every session is told: pinned memories in their order, then rules, then preferences.

    Its text takes `tokens` of at most `budget` tokens (ceil of UTF-8 bytes / 4); `left_out` are the
    entries that did not fit.
    """

    entries: tuple[CoreEntry, ...]
    left_out: tuple[CoreEntry, ...]
    tokens: int
    budget: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that did not come back, and why.

    below_min_score, beyond_top_k, nothing_in_common, same_as (with the id of the hit that says the
    same), filtered, superseded, expired, forgotten, or not_yet_known at a past moment.
    """

    hit: MemoryHit
    reason: str


@dataclass(frozen=True, slots=True)
class SurvivingSource:
    """Something that still holds words of what was forgotten.

    `kind` is "turn" or "tool_call" (`id` the conversation's, `index` a turn's place), "memory",
    "observation", "diary", "section" (of a project's file), "document" (`id` that of a section of
    it), "gap", "trace", or "log".
    """

    kind: str
    id: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What `forget` did: how many memories it took, and which sources still hold the words.

    `surviving` names at most a hundred of them; `more` counts those that were found beyond.
    """

    count: int
    surviving: tuple[SurvivingSource, ...] = ()
    ids: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """A page of a listing; `cursor` gets the next one, None at the end."""

    items: tuple[ItemT, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[ItemT]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class HalfLives:
    """Days after which a memory that was not restated counts half, by type."""

    episodic: float = 14.0
    semantic: float = 90.0
    procedural: float = 180.0


NEVER_FADING: Final = HalfLives(math.inf, math.inf, math.inf)
"""Those of what is as true as it was on its first day."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What `reindex` did: turns and memories that got vectors of `embedder`, and those left.

    `namespaces` is how many were gone through.
    """

    embedder: str
    turns: int
    memories: int
    left: int
    namespaces: int = 1

    def __add__(self, more: Reindexed) -> Reindexed:
        """The sum of what was done here and there."""
        return Reindexed(
            self.embedder,
            self.turns + more.turns,
            self.memories + more.memories,
            self.left + more.left,
            self.namespaces + more.namespaces,
        )
