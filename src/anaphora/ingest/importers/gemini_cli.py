"""Gemini CLI: recorded sessions (`~/.gemini/tmp/*/chats/session-*.json` and `.jsonl`).

The present form has a record a line: a head, messages, changes of the head, and going back to an
earlier message; a message that stands there again, with more in it, counts as it stood last. The
first form is one object with all messages. What the user typed and what the model said comes out,
and a line of each call of a tool; thoughts and notices of the program are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anaphora.ingest.importers.base import Format, ImportFile, ImportItem, Sample, as_object
from anaphora.ingest.importers.drafts import AFTER_LAST, Draft, LeftOut
from anaphora.ingest.importers.json_reader import Record, read_log

_ROLES = {"user": "user", "gemini": "assistant"}
_ENDED = {"success": False, "error": True, "cancelled": True}


def _is_head(value: Mapping[str, object]) -> bool:
    return "sessionId" in value and "projectHash" in value


def _detect(sample: Sample) -> bool:
    return any(map(_is_head, sample.objects()))


def _read(file: ImportFile) -> Iterator[ImportItem]:
    recording = _Recording(file)
    return read_log(file, recording.take, recording.results)


class _Recording:
    """One session while it is read: its messages by id, and what each came after."""

    def __init__(self, file: ImportFile) -> None:
        self.file = file
        self.key = file.stem
        self.draft: Draft | None = None
        self._messages: dict[str, tuple[dict[str, object], str, str]] = {}
        self._last = AFTER_LAST

    def take(self, record: Record) -> None:
        value = as_object(record.value, "a record")
        if _is_head(value):
            self._begin(value, record.place)
        elif isinstance(back := value.get("$rewindTo"), str):
            self._last = self._messages[back][2] if back in self._messages else AFTER_LAST
        elif isinstance(value.get("id"), str) and "type" in value:
            self._message(value, record.place)

    def results(self) -> Iterator[ImportItem]:
        """The session, once its head was read."""
        if self.draft is None:
            return
        for value, place, before in self._messages.values():
            _add(self.draft, value, place, before)
        self._messages = {}
        yield from self.draft.results()

    def _begin(self, head: dict[str, object], place: str) -> None:
        found = head.get("sessionId")
        key = found if isinstance(found, str) and found else self.file.stem
        self.draft = self.draft or Draft(self.file, "gemini_cli", key)
        self.draft.start(head.get("startTime"), place)
        self.draft.locate("gemini", directory=_first(head.get("directories")))
        messages = head.get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else (), 1):
            self._message(as_object(message, "a message"), f"{place}, message {number}")

    def _message(self, value: dict[str, object], place: str) -> None:
        key = str(value.get("id"))
        before = self._messages[key][2] if key in self._messages else self._last
        self._messages[key] = (value, place, before)
        self._last = key


def _first(folders: object) -> object:
    return folders[0] if isinstance(folders, list) and folders else ""


def _add(draft: Draft, value: Mapping[str, Any], place: str, before: str) -> None:
    role, key = _ROLES.get(str(value.get("type"))), str(value["id"])
    parent = before if before == AFTER_LAST or before in draft else AFTER_LAST
    if role is None:
        draft.skip(LeftOut.RECORD, key, parent)
        return
    ts = draft.time(value.get("timestamp"), place)
    text = _words(value.get("content"))
    if text.strip():
        draft.add(role, text, key=key, parent=parent, ts=ts)
    else:
        draft.pass_over(key, parent)
    thoughts = value.get("thoughts")
    draft.left_out[LeftOut.THINKING] += len(thoughts) if isinstance(thoughts, list) else 0
    calls = value.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            when = draft.time(call.get("timestamp"), place)
            draft.call_tool(call.get("id"), call.get("name"), call.get("args"), when or ts)
            failed = _ENDED.get(str(call.get("status")))
            if failed is not None:
                draft.tool_gave(call.get("id"), call.get("resultDisplay"), failed=failed)


def _words(content: object) -> str:
    """The texts of parts: one, several, or bare strings."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


FORMAT = Format("gemini_cli", _detect, _read)
