"""A session of OpenAI Agents with its history in a thread of Anaphora.

In: the items that a runner adds. Out: the same items, exactly, in their order, after any restart;
and turns that `recall_conversation` finds by their words. An item's words are the turn's text, the
rest of it stands beside them in the turn's `intent_id`. Taking an item back (`pop_item`) is one
more turn that says so: what was said stays said. `clear_session` deletes the thread.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from anaphora.api.memory import Memory
from anaphora.errors import Closed, InvalidInput, MissingExtra
from anaphora.values.conversations import NewTurn, Turn

try:
    from agents.memory import SessionABC, SessionSettings
except ImportError as error:
    raise MissingExtra("openai-agents", "openai-agents") from error

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

ResultT = TypeVar("ResultT")

_PLAIN: Final = "openai-agents"
_TEMPLATE: Final = _PLAIN + ":"
_TAKEN_BACK: Final = _PLAIN + "/taken-back"
# Marks the position of the text in the rest of an item. No item has a dictionary in its place.
_WORDS: Final[Mapping[str, bool]] = {"anaphora_words": True}


class AnaphoraSession(SessionABC):
    """The history of one session in `memory.conversations`, under the id `session_id`.

    `session_settings` are the framework's, or a mapping of their fields. Every call runs in a
    worker thread; writes to one history are done one after the other, in the order of the calls,
    from whichever event loops and threads they come. After `close()` the session refuses its calls
    with `Closed`; the memory, which is the caller's, stays open.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory,
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        if not isinstance(session_settings, SessionSettings):
            field_names = {field.name for field in fields(SessionSettings)}
            unknown = sorted(
                str(name) for name in session_settings or () if name not in field_names
            )
            if unknown:
                # In the framework's own words and type.
                raise TypeError(f"Unknown session settings: {', '.join(unknown)}")
            session_settings = SessionSettings(**(session_settings or {}))
        self.session_settings = session_settings
        self._memory = memory
        self._writer = _writer_of(memory, session_id)
        self._closed = False

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest `limit` items (all with None), oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        self._check_open()
        items = await asyncio.to_thread(self._items)
        if limit is None:
            return items
        return items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep items; when this returns they are on the disk.

        Raises `InvalidInput` for one that is no JSON object, `StoreError` when it cannot be kept.
        """
        turns = [_turn_of(cast("Mapping[str, Any]", message)) for message in items]
        await self._write(lambda: self._append(turns))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the latest item back and return it; None when there is none."""
        return await self._write(self._pop)

    async def clear_session(self) -> None:
        """Delete the thread, for good."""
        await self._write(lambda: self._memory.conversations.delete(self.session_id))

    def close(self) -> None:
        """End the session: further calls raise `Closed`. What was said stays, the memory open."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Closed(type(self).__name__)

    async def _write(self, call: Callable[[], ResultT]) -> ResultT:
        self._check_open()
        # No lock of asyncio: it belongs to one event loop, and the writer to none.
        write_future = self._writer.submit(copy_context().run, call)
        done_future = asyncio.wrap_future(write_future)
        try:
            return await asyncio.shield(done_future)
        except asyncio.CancelledError:
            # A write that was begun is completed, so that the order of writes is known.
            await asyncio.wait({done_future})
            raise

    def _append(self, turns: list[NewTurn]) -> None:
        # One write for all: a crash must not leave a call without its result.
        self._memory.conversations.extend(self.session_id, turns)

    def _pop(self) -> TResponseInputItem | None:
        items = self._items()
        if not items:
            return None
        text = "(The item before was taken back.)"
        self._append([NewTurn("system", text, intent_id=_TAKEN_BACK)])
        return items[-1]

    def _items(self) -> list[TResponseInputItem]:
        thread = self._memory.conversations.get(self.session_id)
        items: list[TResponseInputItem] = []
        for turn in thread.turns if thread is not None else ():
            if turn.intent_id != _TAKEN_BACK:
                items.append(cast("TResponseInputItem", _item_of(turn)))
            elif items:
                items.pop()
        return items


_writers: WeakKeyDictionary[Memory, WeakValueDictionary[str, ThreadPoolExecutor]] = (
    WeakKeyDictionary()
)
_choosing = threading.Lock()


def _writer_of(memory: Memory, session_id: str) -> ThreadPoolExecutor:
    """The one thread that writes a history, shared by all sessions that have it open."""
    with _choosing:
        writers = _writers.setdefault(memory, WeakValueDictionary())
        writer = writers.get(session_id)
        if writer is None:
            writer = ThreadPoolExecutor(1, thread_name_prefix="anaphora-session")
            writers[session_id] = writer
        return writer


def _turn_of(item: Mapping[str, Any]) -> NewTurn:
    """The turn for an item, from which `_item_of` restores the item."""
    names = [name for k in ("role", "type") if isinstance(name := item.get(k), str)]
    # A thread takes no control characters in a role.
    role = next((str(name) for name in names if name.strip() and name.isprintable()), "item")
    if set(item) == {"role", "content"} and role == item["role"] and _is_text(item["content"]):
        return NewTurn(role, item["content"], intent_id=_PLAIN)
    text, remainder = _split_text(item)
    try:
        remainder_json = json.dumps(remainder, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput("items", item, f"must be a JSON object: {error}") from error
    if text is None:
        # No text: the item itself can be searched (a call, its arguments, a result).
        return NewTurn(role, remainder_json, intent_id=_TEMPLATE)
    return NewTurn(role, text, intent_id=_TEMPLATE + remainder_json)


def _item_of(turn: Turn) -> dict[str, Any]:
    if not turn.intent_id.startswith(_TEMPLATE):
        # Also the turns of a thread that came from elsewhere.
        return {"role": turn.role, "content": turn.text}
    remainder = turn.intent_id[len(_TEMPLATE) :]
    message: dict[str, Any] = json.loads(remainder or turn.text)
    content = message.get("content")
    if content == _WORDS:
        message["content"] = turn.text
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and part.get("text") == _WORDS:
                part["text"] = turn.text
    return message


def _split_text(item: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The text of an item with exactly one text, and the item with a mark in its place."""
    content = item.get("content")
    if _is_text(content):
        return content, {**item, "content": dict(_WORDS)}
    if not isinstance(content, list):
        return None, dict(item)
    positions = [i for i, part in enumerate(content) if isinstance(part, dict) and "text" in part]
    if len(positions) != 1 or not _is_text(content[positions[0]]["text"]):
        return None, dict(item)
    parts = [dict(p) if isinstance(p, dict) else p for p in content]
    text = parts[positions[0]]["text"]
    parts[positions[0]]["text"] = dict(_WORDS)
    return text, {**item, "content": parts}


def _is_text(value: object) -> bool:
    # A store of conversations ignores blank texts, and a session must return its items unchanged.
    return isinstance(value, str) and bool(value.strip())
