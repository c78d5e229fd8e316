"""A conversation while it is read: messages in as a format's reader meets them, parents first out.

A `Draft` gives every message its identity, its parent among the messages that are kept, and its
time; it counts what is left out and collects what cannot be read. It changes no text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from anaphora.calls.moments import utc_moment
from anaphora.features.importing.formats.base import (
    UNEXPECTED,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    text_at,
    why,
)
from anaphora.features.importing.formats.tools import described_target, outcome_of
from anaphora.ingest.problems import Problems
from anaphora.store.hashing import digest
from anaphora.store.threads.ids import safe_id
from anaphora.values.conversations import ImportedConversation, ImportedTurn
from anaphora.values.sessions import SessionPlace, ToolCall


class LeftOut:
    """What is left out, by kind; the words are what people read in the report."""

    ADDRESS = "address behind a link"
    ATTACHMENT = "attachment"
    BLANK = "blank message"
    COMMAND = "command"
    DELETED = "deleted memory"
    HIDDEN = "hidden message"
    INSTRUCTIONS = "instructions"
    NOT_SENT = "queued prompt that was taken back or not sent"
    NOT_SAID = "activity that is no conversation"
    OTHER_DATABASE = "database of something else"
    RECORD = "log record"
    REPEATED = "repeated message"
    SERVICE = "service message"
    SIDECHAIN = "sidechain"
    SUMMARY = "summary"
    THINKING = "thinking"
    TOOL_CALL = "tool call"
    TOOL_OUTPUT = "tool output"


AFTER_LAST: Final = "\0after the last"

# A key stands beside every turn: one that is longer is known by its hash.
_MAX_KEY = 1_000
# Calls of tools that are held of one conversation.
_MOST_CALLS = 100_000
# What a turn costs beside its words, in characters.
_A_TURN = 3_200
# Above these a number of seconds would lie in the year 5000 or later: it counts finer units.
_FINER_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def read_time(value: object) -> datetime | None:
    """An aware time, None if there is none (null, "", 0); raises Malformed if it says nothing.

    Numbers, also as text, are seconds since 1970, or milli-, micro- or nanoseconds where seconds
    would lie beyond the year 5000. Text is ISO 8601 or RFC 3339; without a zone it is UTC.
    """
    if value is None or value == "" or isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        if re.fullmatch(r"-?\d{9,19}(\.\d+)?", text):
            return _parse_number(float(text))
        try:
            time = datetime.fromisoformat(re.sub(r"\s*(UTC|GMT)$", "+00:00", text))
            if time.tzinfo is None:
                return time.replace(tzinfo=UTC)
            # Years 1 and 9999 may leave the calendar when a zone is applied.
            time.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise Malformed(f"cannot parse the time: {text[:40]!r}") from error
        return time
    if isinstance(value, int | float):
        return _parse_number(value) if value else None
    raise Malformed(f"a time that is a {type(value).__name__}")


def _parse_number(value: float) -> datetime:
    try:
        seconds = float(value)
        for min_seconds, unit in _FINER_UNITS:
            if abs(seconds) >= min_seconds:
                seconds /= unit
                break
        return utc_moment(seconds)
    except (OverflowError, ValueError) as error:
        raise Malformed(f"the time is out of range: {str(value)[:40]}") from error


def read_local_time(value: object) -> datetime | None:
    """As `read_time`, but for programs that write local times: text without a zone has this
    machine's. Raises Malformed."""
    if not isinstance(value, str) or not value.strip():
        return read_time(value)
    try:
        return datetime.fromisoformat(value.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise Malformed(f"cannot parse the time: {value[:40]!r}") from error


def blocks_of(
    draft: Draft,
    blocks: Iterable[object],
    left_out: Mapping[str, str] | None = None,
    *,
    texts: frozenset[str] = frozenset({"text"}),
    kept: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """The texts of a message's content blocks; the others are counted by kind in `draft`.

    Blocks of a type in `texts` have a text, bare strings are one, `left_out` says what those of
    other types are, and what is in neither is an attachment. Those of a type in `kept` are kept
    elsewhere. Raises Malformed.
    """
    for element in blocks:
        if isinstance(element, str):
            yield element
            continue
        block = as_object(element, "a content block")
        kind = str(block.get("type"))
        if kind in texts:
            yield text_at(block, "text")
        elif kind not in kept:
            draft.left_out[(left_out or {}).get(kind, LeftOut.ATTACHMENT)] += 1


def check_room(file: ImportFile, conversations: int) -> None:
    """Raises Malformed if a file has as many conversations of single messages as it may."""
    max_conversations = file.bounds.conversations
    if conversations >= max_conversations:
        raise Malformed(
            f"more than {max_conversations:,} conversations in one file; it was skipped"
        )


@dataclass(frozen=True, slots=True)
class _MessageNode:
    parent: str | None
    turn: ImportedTurn | None


class Draft:
    """A conversation while it is read. `key` identifies it in its source, for good.

    `unique_keys` says that its messages' keys are unique in the whole source.

    Messages may come in any order and refer to parents that come later or never; what is left
    out keeps its place in the tree, so that what answers it hangs on what came before it.
    """

    def __init__(
        self,
        file: ImportFile,
        source: str,
        key: str,
        *,
        title: object = "",
        unique_keys: bool = False,
    ) -> None:
        self.file = file
        self.unique_keys = unique_keys
        self.source = source
        self.key = key if len(key) <= _MAX_KEY else digest(key)
        self.title = title if isinstance(title, str) else ""
        self.former_titles: tuple[str, ...] = ()
        self.copy_of: tuple[str, ...] = ()
        self.conversation_id = safe_id(source, key)
        # Times of messages that have none: the conversation's own, else the file's.
        self.started = file.modified
        self.left_out: Counter[str] = Counter()
        self._nodes: dict[str, _MessageNode] = {}
        self._last: str | None = None
        self._chain = digest(source, key)
        self._seen: dict[str, str] = {}
        self._problems = Problems(file.bounds.problems)
        self._held = 0
        self._tail_time: datetime | None = None
        self._place_of_session = SessionPlace()
        self._calls: dict[str, ToolCall] = {}
        self._last_kept = ""
        # What was left out before the last results, and the kept message before it.
        self._earlier: dict[str, str | None] = {}
        self._renamed: dict[str, str] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._seen

    @property
    def count(self) -> int:
        """Messages that were added or passed over since the last results."""
        return len(self._nodes)

    def start(self, value: object, place: str) -> None:
        """Take the conversation's own time, if it has one."""
        self.started = self.time(value, place) or self.started

    def time(self, value: object, place: str) -> datetime | None:
        """A message's time; one that says nothing is reported, and None."""
        try:
            return read_time(value)
        except Malformed as error:
            self.problem(place, f"{error}; the previous time is used")
            return None

    def problem(self, place: str, reason: str) -> None:
        """Report something that cannot be read."""
        self._problems.add(self.file.problem(place, reason))

    def skip(self, kind: str, key: str | None = None, parent: str | None = AFTER_LAST) -> None:
        """Leave a message out and count it; with a key, what answers it finds what it answered."""
        self.left_out[kind] += 1
        if key is not None:
            self.pass_over(key, parent)

    def add_nodes(
        self,
        mapping: Mapping[str, object],
        place: str,
        add_message: Callable[[str, str | None, dict[str, object], str], None],
    ) -> None:
        """Add each node of a tree: `add_message` gets its id, parent, message and position.

        A node without a message, as the root is, is passed over; so is a malformed one, which
        becomes a problem.
        """
        for node_id, node in mapping.items():
            position = f"{place}, node {node_id}"
            parent = node.get("parent") if isinstance(node, dict) else None
            parent_id = parent if isinstance(parent, str) else None
            try:
                message = as_object(node, "a node").get("message")
                if message is None:
                    self.pass_over(node_id, parent_id)
                else:
                    add_message(node_id, parent_id, as_object(message, "a message"), position)
            except Malformed as error:
                self.problem(position, str(error))
                self.pass_over(node_id, parent_id)

    def pass_over(self, key: str, parent: str | None = AFTER_LAST) -> None:
        """Keep the place of a message that is no message (the root of a tree, a broken one)."""
        if key not in self._seen and not self._is_full():
            self._append_node(key, parent, None, "")

    def fill(self, key: str, role: str, text: str, ts: datetime | None) -> None:
        """Keep a message at a place that was passed over."""
        node = self._nodes.get(key)
        if node is None or node.turn is not None or not text.strip():
            return
        self._hold(text)
        self._nodes[key] = _MessageNode(node.parent, ImportedTurn(key, None, role, text, ts))
        self._seen[key] = digest(role, text)

    def chained_key(self, role: str, text: str) -> str:
        """The key of a message without one: a hash of all that was said up to it."""
        self._chain = digest(self._chain, role, text)
        return self._chain

    def rename(self, key: str, new: str) -> None:
        """Give a message that was added since the last results another key."""
        if key in self._nodes and new not in self._seen:
            self._seen[new] = self._seen[key]
            self._renamed[key] = new

    def add(
        self,
        role: str,
        text: str,
        *,
        key: str = "",
        parent: str | None = AFTER_LAST,
        ts: datetime | None = None,
        speaker: str | None = None,
        intent_id: str = "",
        copied: bool = False,
    ) -> str:
        """Keep a message and return its key; one without gets a hash of all that was said up to it.

        By default it follows the message before it. The same message again is counted as
        repeated; another text under a known key is kept too, under a key of its own. Blank text
        is counted, not kept. Raises Malformed for more messages than a file may have in one
        conversation.
        """
        if not key:
            key = self.chained_key(role, text)
        if not text.strip():
            self.skip(LeftOut.BLANK, key, parent)
            return key
        content = digest(role, text)
        if self._seen.get(key) not in {None, "", content}:
            key = f"{key}~{content[:12]}"
        if self._seen.get(key):
            self.left_out[LeftOut.REPEATED] += 1
            self._last_kept = key
            return key
        if self._is_full():
            max_messages = self.file.bounds.messages
            raise Malformed(
                f"more than {max_messages:,} messages in one conversation; it was skipped"
            )
        self._hold(text)
        turn = ImportedTurn(key, None, role, text, ts, speaker, intent_id, copied)
        self._append_node(key, parent, turn, content)
        self._last_kept = key
        return key

    def locate(self, client: str, *, directory: object = "", branch: object = "") -> None:
        """Say where the session takes place: its first folder counts, and its last branch."""
        session_place = self._place_of_session
        folder = directory if isinstance(directory, str) else ""
        on = branch if isinstance(branch, str) else ""
        self._place_of_session = replace(
            session_place,
            client=client,
            directory=session_place.directory or folder,
            branch=on or session_place.branch,
        )

    def call_tool(self, key: object, name: object, arguments: object, ts: datetime | None) -> None:
        """Keep what was done with a tool: its name, and what of its arguments says the most."""
        if not isinstance(name, str) or not name.strip() or len(self._calls) >= _MOST_CALLS:
            self.left_out[LeftOut.TOOL_CALL] += 1
            return
        call_key = (
            key if isinstance(key, str) and key else digest(self._chain, str(len(self._calls)))
        )
        target = described_target(arguments, self._place_of_session.directory)
        when = ts or self._tail_time or self.started
        self._calls[call_key] = ToolCall(call_key, self._last_kept, name.strip(), target, "", when)

    def knows_call(self, key: str) -> bool:
        """Whether a call of this key was kept."""
        return key in self._calls

    def tool_gave(self, key: object, output: object, *, failed: bool | None = None) -> None:
        """Note how a call ended; its output is counted, not stored."""
        self.left_out[LeftOut.TOOL_OUTPUT] += 1
        if isinstance(key, str) and key in self._calls:
            self._calls[key] = replace(self._calls[key], outcome=outcome_of(output, failed))

    def add_all(
        self,
        messages: Iterable[object],
        place: str,
        add: Callable[[Draft, object, str], None],
        noun: str = "message",
    ) -> None:
        """Call `add` with each message and its place; one that is malformed is reported."""
        for number, message in enumerate(messages, start=1):
            message_place = f"{place}, {noun} {number}"
            try:
                add(self, message, message_place)
            except UNEXPECTED as error:
                self.problem(message_place, why(error))

    def results(self, leaf: str | None = None) -> Iterator[ImportItem]:
        """Problems, then the conversation, its main line (the way to `leaf`) first.

        Without a leaf the main line leads to the last message. What was given is then forgotten,
        but for identities: a draft can go on and give what follows.
        """
        yield from self._problems.all()
        turns = _order_tree(self._nodes, leaf or self._last)
        times: dict[str, datetime] = {}
        timed_turns: list[ImportedTurn] = []
        for turn in turns:
            previous_time = times.get(turn.parent or "") or self._tail_time or self.started
            times[turn.key] = turn.ts or previous_time
            timed_turns.append(turn if turn.ts else replace(turn, ts=previous_time))
        if turns:
            self._tail_time = times[turns[-1].key]
        turns = tuple(timed_turns)
        calls = tuple(self._calls.values())
        if self._renamed:
            turns = tuple(
                replace(
                    turn,
                    key=self._resolve_key(turn.key),
                    parent=None if turn.parent is None else self._resolve_key(turn.parent),
                )
                for turn in turns
            )
            calls = tuple(replace(call, after=self._resolve_key(call.after)) for call in calls)
        if turns or calls or any(self.left_out.values()):
            session_place = self._place_of_session
            yield ImportedConversation(
                self.source,
                self.key,
                self.conversation_id,
                turns,
                self.title,
                {kind: count for kind, count in self.left_out.items() if count},
                session_place if session_place.client else None,
                calls,
                self.unique_keys,
                self.copy_of,
                self.former_titles,
            )
        for key, node in self._nodes.items():
            if node.turn is None:
                self._earlier[key] = _find_nearest_kept(self._nodes, key)
        self._problems = Problems(self.file.bounds.problems)
        self.file.held -= self._held
        self._held = 0
        self._nodes = {}
        self.left_out = Counter()

    def leave_out(self, kind: str) -> None:
        """Count everything that was added since the last results instead of giving it."""
        turns = {key: node for key, node in self._nodes.items() if node.turn is not None}
        self._nodes.update((key, replace(node, turn=None)) for key, node in turns.items())
        self.left_out[kind] += len(turns) + len(self._calls)
        self._calls = {}

    def _resolve_key(self, key: str) -> str:
        return self._renamed.get(key, key)

    def _hold(self, text: str) -> None:
        self._held += len(text) + _A_TURN
        self.file.held += len(text) + _A_TURN

    def _is_full(self) -> bool:
        return len(self._seen) >= self.file.bounds.messages

    def _append_node(
        self, key: str, parent: str | None, turn: ImportedTurn | None, content: str
    ) -> None:
        previous_key = self._last if parent == AFTER_LAST else parent
        if previous_key is not None and previous_key in self._earlier:
            previous_key = self._earlier[previous_key]
        self._seen[key] = content
        self._nodes[key] = _MessageNode(previous_key, turn)
        self._last = key


def _order_tree(nodes: Mapping[str, _MessageNode], leaf: str | None) -> tuple[ImportedTurn, ...]:
    """The kept messages with their kept parents: the way to the leaf, then the rest, in order.

    A parent that is unknown here stays (it came in earlier, or never did); a ring of parents is
    cut where the file has its first message.
    """
    parents = {
        key: _find_nearest_kept(nodes, node.parent) for key, node in nodes.items() if node.turn
    }
    children: dict[str | None, list[str]] = {}
    for key, parent in parents.items():
        children.setdefault(parent if parent in parents else None, []).append(key)
    way: dict[str, None] = {}
    at = _find_nearest_kept(nodes, leaf)
    while at is not None and at in parents and at not in way:
        way[at] = None
        at = parents[at]
    # A ring has no beginning: nothing of it is the main line.
    order: dict[str, None] = {} if at in way else dict.fromkeys(reversed(way))
    _walk(children, None, order)
    for key in parents:
        if key not in order:
            parents[key] = None
            order[key] = None
            _walk(children, key, order)
    return tuple(
        replace(turn, parent=parents[key]) for key in order if (turn := nodes[key].turn) is not None
    )


def _walk(
    children: Mapping[str | None, list[str]], start: str | None, order: dict[str, None]
) -> None:
    waiting = list(reversed(children.get(start, [])))
    visited_keys: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in visited_keys:
            continue
        visited_keys.add(key)
        order.setdefault(key, None)
        waiting.extend(reversed(children.get(key, [])))


def _find_nearest_kept(nodes: Mapping[str, _MessageNode], key: str | None) -> str | None:
    """The message itself if it is kept, else the nearest kept one before it."""
    visited_keys: set[str] = set()
    while key is not None and key in nodes and key not in visited_keys:
        node = nodes[key]
        if node.turn is not None:
            return key
        visited_keys.add(key)
        key = node.parent
    return None if key is None or key in nodes else key


def chat_key(file: ImportFile, own_id: object, first: object) -> str:
    """A conversation's own id; without one the file's stem and a hash of its first message.

    The hash, not the place in the file: a conversation that a newer file has further down must
    stay the same. Two that begin alike are told apart by their order.
    """
    if isinstance(own_id, str) and own_id:
        return own_id
    if isinstance(own_id, int) and not isinstance(own_id, bool):
        return str(own_id)
    key = f"{file.stem}-{digest(json.dumps(first, sort_keys=True))[:8]}"
    file.made_keys[key] += 1
    return key if file.made_keys[key] == 1 else f"{key}-{file.made_keys[key]}"
