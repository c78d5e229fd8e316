"""Gemini CLI: recorded sessions (`~/.gemini/tmp/*/chats/session-*.json` and `.jsonl`).

The present form has a record a line: a head, messages, changes of the head, and going back to an
earlier message; a message that stands there again, with more in it, counts as it stood last. The
first form is one object with all messages, in some versions without ids. What the user typed and
what the model said comes out, and a line of each call of a tool; thoughts and notices of the
program are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    companions,
    objects_in,
)
from anaphora.features.importing.formats.drafts import AFTER_LAST, Draft, LeftOut
from anaphora.features.importing.formats.json_reader import JsonRecord, read_log

_ROLES = {"user": "user", "gemini": "assistant"}
_LENGTH_OF_UUID = 36
_ENDED = {"success": False, "error": True, "cancelled": True}


def _is_head(value: Mapping[str, object]) -> bool:
    return "sessionId" in value and "projectHash" in value


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
        # By the keys above, those that messages got: one without an id has none before.
        self._kept: dict[str, str] = {}
        self._others = 0
        self._of_agent = False

    def take(self, record: JsonRecord) -> None:
        fields = as_object(record.value, "a record")
        if _is_head(fields):
            session_id = fields.get("sessionId")
            key = session_id if isinstance(session_id, str) and session_id else self.file.stem
            self.draft = self.draft or Draft(self.file, "gemini_cli", key)
            self.draft.start(fields.get("startTime"), record.place)
            self._of_agent = self._of_agent or fields.get("kind") == "subagent"
            folders = fields.get("directories")
            first_folder = folders[0] if isinstance(folders, list) and folders else ""
            self.draft.locate("gemini", directory=first_folder)
            messages = fields.get("messages")
            for number, message in enumerate(messages if isinstance(messages, list) else (), 1):
                message_place = f"{record.place}, message {number}"
                try:
                    self._append_message(as_object(message, "a message"), message_place)
                except Malformed as error:
                    self.draft.problem(message_place, str(error))
        elif isinstance(rewind_key := fields.get("$rewindTo"), str):
            self._last = (
                self._messages[rewind_key][2] if rewind_key in self._messages else AFTER_LAST
            )
        elif "type" in fields:
            self._append_message(fields, record.place)
        else:
            self._others += 1

    def results(self) -> Iterator[ImportItem]:
        """The session; without a head it is named after its file."""
        if self.draft is None:
            if not self._messages:
                return
            self.draft = Draft(self.file, "gemini_cli", self.file.stem)
        # A session that went on under another id is told by its messages'.
        self.draft.unique_keys = all(len(key) == _LENGTH_OF_UUID for key in self._messages)
        for key, (message, position, previous_key) in self._messages.items():
            parent = self._kept.get(previous_key, AFTER_LAST)
            try:
                self._kept[key] = _add_message(self.draft, message, position, parent)
            except Malformed as error:
                self.draft.problem(position, str(error))
        self._messages = {}
        self.draft.left_out[LeftOut.RECORD] += self._others
        self._others = 0
        if self._of_agent:
            self.draft.leave_out(LeftOut.SIDECHAIN)
        yield from self.draft.results()

    def _append_message(self, value: dict[str, object], place: str) -> None:
        # None shares the place of another one in the file.
        key = _read_id(value) or f"\0{place}"
        previous_key = self._messages[key][2] if key in self._messages else self._last
        self._messages[key] = (value, place, previous_key)
        self._last = key


def _read_id(value: Mapping[str, object]) -> str:
    """A message's id, "" if it has none."""
    message_id = value.get("id")
    return (
        str(message_id)
        if isinstance(message_id, str | int) and not isinstance(message_id, bool)
        else ""
    )


def _add_message(draft: Draft, value: Mapping[str, Any], place: str, parent: str) -> str:
    """Keep a message with its calls, or count it; the key that it got, if any."""
    role, key = _ROLES.get(str(value.get("type"))), _read_id(value)
    if role is None:
        draft.skip(LeftOut.RECORD, key or None, parent)
        return key or parent
    ts = draft.time(value.get("timestamp"), place)
    content = value.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    text = "".join(text for text in texts if isinstance(text, str))
    if text.strip():
        key = draft.add(role, text, key=key, parent=parent, ts=ts)
    elif key:
        draft.pass_over(key, parent)
    thoughts = value.get("thoughts")
    draft.left_out[LeftOut.THINKING] += len(thoughts) if isinstance(thoughts, list) else 0
    for call in objects_in(value.get("toolCalls")):
        when = draft.time(call.get("timestamp"), place)
        draft.call_tool(call.get("id"), call.get("name"), call.get("args"), when or ts)
        is_failed = _ENDED.get(str(call.get("status")))
        if is_failed is not None:
            draft.tool_gave(call.get("id"), call.get("resultDisplay"), failed=is_failed)
    return key or parent


_COMPANIONS = companions(
    r"(?:acknowledgments|google_accounts|logs|mcp-server-enablement|projects|settings|state"
    r"|trustedFolders|\w*[hH]ooks|gemini-extension)\.json",
    "acknowledgments|commands|extensions|history|plans|policies|skills|tool[-_]outputs",
)
FORMAT = Format(
    "gemini_cli", lambda sample: any(map(_is_head, sample.objects())), _read, _COMPANIONS
)
