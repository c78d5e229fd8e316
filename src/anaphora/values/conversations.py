"""The frozen values of conversations and imports, and of checks on a home."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeVar, overload

from anaphora.values.sessions import SessionPlace, ToolCall

__all__ = [
    "FINISH_VECTORS",
    "READ_AWAITED",
    "READ_BY_DEFAULT",
    "READ_IN_HOOKS",
    "READ_MOST",
    "RECALL_BUDGET",
    "RECALL_TOP_K",
    "Check",
    "ConfigurableCount",
    "Degraded",
    "Excerpt",
    "Health",
    "ImportProblem",
    "ImportReport",
    "ImportedConversation",
    "ImportedTurn",
    "NewTurn",
    "Recall",
    "RecallMode",
    "RelatedTurn",
    "Stats",
    "Thread",
    "ThreadProblem",
    "ThreadSummary",
    "TimeSpan",
    "Turn",
    "TurnChoice",
    "TurnHit",
    "TurnRole",
]

HitT = TypeVar("HitT", covariant=True)


class ConfigurableCount(int):
    """The default of an argument that the configuration may replace, unlike the same number when
    a caller passes it."""


RECALL_TOP_K: Final = ConfigurableCount(6)
"""Hits of a recall of conversations."""

RECALL_BUDGET: Final = ConfigurableCount(2500)
"""Tokens that they may cost."""

READ_BY_DEFAULT: Final = 0
"""Candidates that the reader reads with the question, where a call does not say."""

READ_AWAITED: Final = 32
"""The same where somebody waits for an answer: command line, servers, page."""

READ_IN_HOOKS: Final = 8
"""The same in a hook, which holds up every prompt."""

READ_MOST: Final = 64
"""The most that may be read: each takes some milliseconds."""

RecallMode = Literal["hybrid", "words", "vector"]
TurnRole = Literal["user", "assistant", "other"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One line of a conversation, verbatim.

    `role` is usually "user" or "assistant"; `ts` is aware; `ts_text` is the same instant exactly as
    the thread file has it (RFC 3339, up to nanoseconds, any offset), so that a file can be written
    back byte for byte. `speaker` and `source` come from the sidecar, not from the thread file.
    """

    role: str
    text: str
    ts: datetime
    ts_text: str
    intent_id: str = ""
    speaker: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A whole conversation, oldest turn first."""

    conversation_id: str
    turns: tuple[Turn, ...]
    updated: datetime
    updated_text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A conversation in a list: of title and preview the first 60 and 100 characters, then "…"."""

    conversation_id: str
    title: str
    preview: str
    turn_count: int
    updated: datetime


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A span of time that a question names: from `start` to before `end`, both aware.

    `text` is the words that named it ("last Tuesday"), `start_char` and `end_char` their place.
    """

    start: datetime
    end: datetime
    text: str
    start_char: int = 0
    end_char: int = 0


@dataclass(frozen=True, slots=True)
class TurnChoice:
    """Turns from `since` to before `until` (aware), by `speaker`, in a `role`, of some
    `conversations`; None for any."""

    since: datetime | None = None
    until: datetime | None = None
    speaker: str | None = None
    role: TurnRole | None = None
    conversations: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Where a passage stands in a text too long to come whole: from `start` to before `end`, of
    `length` characters in all. Its words are those of the text, unaltered."""

    start: int
    end: int
    length: int


@dataclass(frozen=True, slots=True)
class RelatedTurn:
    """Another turn that a hit is about: one that says the same, or that says it otherwise.

    `excerpt` is that of `TurnHit`.
    """

    conversation_id: str
    index: int
    role: str
    text: str
    ts: datetime
    speaker: str | None = None
    excerpt: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A recalled turn: its own `score`, and the `factors` that add up to it.

    Hits stand in groups of what is about one thing, by the best score of each: within one, what
    holds now comes before what it replaced, whatever its own score. `index` is the turn's place in
    its thread, from 0. In `mode="vector"` the score is the cosine.

    `current` is False where a later turn seems to say otherwise: `older_than` is that turn,
    `reason` says what tells it, and `previous` are those that this one seems to replace, the surest
    first. All are read from the words, and may be wrong. `occurrences` are other turns that say the
    same, oldest first.
    `answers` is the probability that it answers the question, from all that is known of it; None
    where nothing is (another mode or embedder). `read` is that of the reader alone, None where it
    read it not; the factor "reader" is what the score has of that.
    `quotes_recalled`: the text also holds a block of recalled turns, which was not searched.
    `excerpt`: the turn is too long to come whole, and `text` is the passage of it that bears most
    on the question; the whole is `index` of the conversation. None: `text` is all of it.
    `ts` has the offset at which it was said, where that is known; else it is in UTC.
    """

    conversation_id: str
    index: int
    role: str
    text: str
    ts: datetime
    score: float
    factors: Mapping[str, float] = field(default_factory=dict)
    speaker: str | None = None
    current: bool = True
    older_than: RelatedTurn | None = None
    reason: str = ""
    previous: tuple[RelatedTurn, ...] = ()
    occurrences: tuple[RelatedTurn, ...] = ()
    quotes_recalled: bool = False
    excerpt: Excerpt | None = None
    answers: float | None = None
    read: float | None = None


@dataclass(frozen=True, slots=True)
class Degraded:
    """A part of an answer that was unavailable: which `part`, and why in words."""

    part: str
    reason: str

    def __str__(self) -> str:
        return f"{self.part}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Recall(Sequence[HitT], Generic[HitT]):
    """Hits best first, in groups of what is about one thing, and what was unavailable meanwhile.

    `rejected` are candidates that did not come back (`Rejected`), where they were asked for.
    `confidence` is the probability that a hit answers the question, None where it is not known
    (another mode or embedder than the default one). Where it is below what was asked for there are
    no hits: `nearest` are those that would have come. `notices` say what a reader should know.
    """

    hits: tuple[HitT, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    rejected: tuple[Any, ...] = ()
    confidence: float | None = None
    nearest: tuple[HitT, ...] = ()
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[HitT]:
        return iter(self.hits)

    @overload
    def __getitem__(self, index: int) -> HitT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[HitT, ...]: ...
    def __getitem__(self, index: int | slice) -> HitT | tuple[HitT, ...]:
        return self.hits[index]


@dataclass(frozen=True, slots=True)
class ImportedTurn:
    """A turn as an importer read it.

    `key` identifies the message within its source for good (the source's own message id, or a
    chained hash where it has none); `parent` is the key of the message it answers, None for a
    first one. A message whose parent is not the last of its thread starts a branch. `copied`: the
    file repeats it from the session that it was forked from.
    """

    key: str
    parent: str | None
    role: str
    text: str
    ts: datetime | None = None
    speaker: str | None = None
    intent_id: str = ""
    copied: bool = False


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation as an importer read it: `source` names the format, `key` the chat in it.

    `turns` are ordered so that a parent always stands before its children, the main line first.
    `left_out` counts what is no conversation, by kind (tool output, thinking, attachments).
    `place` is where a session of a coding agent took place, `calls` what it did with its tools.
    Where `unique_keys` says that no two messages of the source have one key, a chat with messages
    that another chat holds is a copy of that chat, and goes on in it.
    A session that was forked from others names their chats in `copy_of`, the first of all first: it
    goes on in that chat. `former_titles` are other titles that the source gave the chat before.
    """

    source: str
    key: str
    conversation_id: str
    turns: tuple[ImportedTurn, ...]
    title: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    place: SessionPlace | None = None
    calls: tuple[ToolCall, ...] = ()
    unique_keys: bool = False
    copy_of: tuple[str, ...] = ()
    former_titles: tuple[str, ...] = ()


Source = str | os.PathLike[str] | ImportedConversation
"""What is imported: a file, a folder, or a conversation that was read already."""


FINISH_VECTORS: Final = "their meaning is still loading (`anaphora reindex` makes the vectors now)"
"""What is said wherever vectors are still to come."""


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Something in an import that could not be read: file, place ("line 12"), and why."""

    path: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `added` + `known` + `forgotten` turns were readable in the source.

    `known` were there before; `forgotten` were deleted or redacted here and stay out. `notes` are
    observations and diary entries, `documents` versions of documents, `gaps` questions that memory
    could not answer. `tool_calls` of coding agents are new ones, kept as a line each.

    `memories_changed` have a new value, or came back; `memories_ended` are parts of a note that it
    has no longer: they stay in history. `memories_forgotten` were forgotten here and stay out.
    `gone` names what was imported from a folder before and is not in it any more: it stays.
    `redacted` are the kinds of secrets that were taken out. `notices` say what the user should
    know. `last_index` is the place of the last message in the last of `conversation_ids`.

    `files` are those of which something is here now, added or known. `left_out` counts by kind what
    was not taken: parts of files, and whole files, the first names of which `left_out_files` gives.
    `remarks` are about files that came in: what of them was not read, or read otherwise. `problems`
    are what may have words of the user and could not be read.
    """

    files: int = 0
    conversations: int = 0
    added: int = 0
    known: int = 0
    forgotten: int = 0
    branches: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    left_out_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[ImportProblem, ...] = ()
    problems: tuple[ImportProblem, ...] = ()
    conversation_ids: tuple[str, ...] = ()
    last_index: int | None = None
    memories_added: int = 0
    memories_known: int = 0
    notes_added: int = 0
    notes_known: int = 0
    gaps_added: int = 0
    tool_calls: int = 0
    documents_added: int = 0
    documents_known: int = 0
    memories_changed: int = 0
    memories_ended: int = 0
    memories_forgotten: int = 0
    gone: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @classmethod
    def joined(cls, reports: Sequence[ImportReport]) -> ImportReport:
        """What several imports did together."""
        left_out: Counter[str] = Counter()
        names: dict[str, tuple[str, ...]] = {}
        for report in reports:
            left_out.update(report.left_out)
            for kind, files in report.left_out_files.items():
                names[kind] = names.get(kind, ()) + files
        counts = [column.name for column in fields(cls) if isinstance(column.default, int)]
        return cls(
            **{n: sum(getattr(r, n) for r in reports) for n in counts},
            left_out=dict(left_out),
            left_out_files=names,
            remarks=tuple(p for r in reports for p in r.remarks),
            problems=tuple(p for r in reports for p in r.problems),
            conversation_ids=tuple(i for r in reports for i in r.conversation_ids),
            last_index=next((r.last_index for r in reports[::-1] if r.conversation_ids), None),
            gone=tuple(g for r in reports for g in r.gone),
            redacted=tuple(dict.fromkeys(k for r in reports for k in r.redacted)),
            notices=tuple(dict.fromkeys(n for r in reports for n in r.notices)),
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of `doctor`: what was looked at, whether it is well, and the detail in words."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Health:
    """Whether each part works. `pending` counts turns and memories whose vectors still come,
    `jobs` what ended sessions have queued in all namespaces.
    """

    ok: bool
    checks: tuple[Check, ...]
    pending: int = 0
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """What a namespace holds. `bytes` is the size on disk by part.

    `files` and `sections` are those of its projects, `sections_pending` lack a vector.
    `memories` are those that hold now, `notes` the current observations and diary entries,
    `documents` those that nothing has replaced, `gaps` the open ones, `jobs` what waits to run.
    `links_due` are statements that are still to be compared with earlier ones, `cleaning_due`
    forgettings whose words are still to leave the files of the home.
    """

    home: str
    namespace: str
    conversations: int
    turns: int
    indexed: int
    vectors: int
    pending: int
    embedder: str
    memories: int = 0
    bytes: Mapping[str, int] = field(default_factory=dict)
    projects: int = 0
    files: int = 0
    sections: int = 0
    sections_pending: int = 0
    notes: int = 0
    documents: int = 0
    gaps: int = 0
    jobs: int = 0
    traces: int = 0
    links_due: int = 0
    cleaning_due: int = 0


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to be kept. `ts` is aware; without one the store's clock gives the time.

    `speaker`, and the identity of an imported message (`source` format, `source_key` of the chat,
    `message_key` in it), have no place in a thread file: the sidecar keeps them.
    """

    role: str
    text: str
    intent_id: str = ""
    ts: datetime | None = None
    speaker: str | None = None
    source: str | None = None
    source_key: str | None = None
    message_key: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadProblem:
    """A thread file that could not be read, and why.

    `set_aside` is where its bytes are kept; None while it still stands at `path`.
    `conversation_id` is empty where the file's name does not tell it.
    """

    conversation_id: str
    path: str
    reason: str
    set_aside: str | None = None
