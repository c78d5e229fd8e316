"""Claude Code: session transcripts, one JSON record a line (`~/.claude/projects/*/*.jsonl`).

A file may hold several sessions. What the user typed and what the assistant said to the user comes
out, and of each call of a tool a line; tool output, thinking, side tasks of subagents, wrappers
that the program put in, and its own records are left out and counted. A slash command with words
behind it is kept as it was typed.

Of a session on the web there is no documented export. What `claude --teleport` writes is such a
transcript; what its service answers is evidently the same records in one object, under `loglines`,
or as `events` with the times that they were created. Both are read.

The log's `parentUuid` forks wherever tools run side by side. A conversation forks only where the
user went back and asked again: between two prompts of the user, the order of the file counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from anaphora.core.synthetic import synthetic_kind
from anaphora.core.word_lists import by_word
from anaphora.ingest.importers.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    mapping_at,
    objects_in,
)
from anaphora.ingest.importers.drafts import Draft, LeftOut, blocks_of, check_room
from anaphora.ingest.importers.json_reader import Record, read_log
from anaphora.ingest.markup import elements

_LEFT_OUT_BLOCKS = by_word(
    {
        LeftOut.TOOL_OUTPUT: "web_search_tool_result",
        LeftOut.THINKING: "thinking redacted_thinking",
    }
)
_CALLS = frozenset({"tool_use", "server_tool_use"})
_OUTPUTS = frozenset({"tool_result"})
_MOST_LOOKED_AT = 50
_COMMAND = re.compile(r"\s*<command-(name|message|args)>")


def _detect(sample: Sample) -> bool:
    """Whether any of the first lines is a message with a session and an id, or a record."""
    return any(_log_of(value) is not None for value in sample.objects()) or any(
        (
            kind in ("user", "assistant")
            and "message" in value
            and ("uuid" in value or "sessionId" in value)
        )
        or (kind == "summary" and "leafUuid" in value)
        or kind == "file-history-snapshot"
        for value in sample.objects()
        for kind in [value.get("type")]
    )


def _read(file: ImportFile) -> Iterator[ImportItem]:
    transcript = _Transcript(file)
    return read_log(file, transcript.take, transcript.results)


@dataclass(slots=True)
class _Transcript:
    """The sessions of a file while it is read, and titles by the id of what they are given to."""

    file: ImportFile
    sessions: dict[str, _Session] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)

    def take(self, record: Record) -> Iterator[ImportItem]:
        value = as_object(record.value, "a record")
        found = _log_of(value)
        if found is None:
            self._take(value, record.place)
            return
        title = value.get("title") or value.get("name")
        key = value.get("session_id") or value.get("id") or self.file.stem
        if isinstance(title, str):
            self.titles[str(key)] = title
        for number, line in enumerate(found, start=1):
            where = f"{record.place}, line {number}"
            try:
                self._take(_as_record(as_object(line, "a line"), str(key)), where)
            except Malformed as error:
                yield self.file.problem(where, str(error))

    def _take(self, value: dict[str, object], place: str) -> None:
        kind = value.get("type")
        if not isinstance(kind, str):
            raise Malformed("the record has no type")
        session_id = value.get("sessionId")
        title = value.get("customTitle") or value.get("aiTitle") or value.get("summary")
        leaf = value.get("leafUuid") or session_id
        if kind not in ("user", "assistant") and isinstance(title, str) and isinstance(leaf, str):
            self.titles[leaf] = title
            return
        key = session_id if isinstance(session_id, str) and session_id else self.file.stem
        if key not in self.sessions:
            check_room(self.file, len(self.sessions))
            self.sessions[key] = _Session(Draft(self.file, "claude_code", key))
        self.sessions[key].take(value, kind, place)

    def results(self) -> Iterator[ImportItem]:
        """What the sessions hold; they may go on."""
        for key, session in self.sessions.items():
            named = (
                title for leaf, title in self.titles.items() if leaf == key or leaf in session.draft
            )
            session.draft.title = next(named, "")
            yield from session.draft.results()


@dataclass(slots=True)
class _Session:
    """A session while it is read: whose prompt each record hangs on, and the last turn of each."""

    draft: Draft
    prompt_of: dict[str, str] = field(default_factory=dict)
    last_under: dict[str, str] = field(default_factory=dict)
    last_record: str | None = None

    def take(self, value: dict[str, object], kind: str, place: str) -> None:
        if value.get("isSidechain") is True:
            self.draft.left_out[LeftOut.SIDECHAIN] += 1
            return
        if kind not in ("user", "assistant"):
            self.draft.left_out[LeftOut.RECORD] += 1
            self._follow(value)
            return
        try:
            self._message(value, kind, place)
        except Malformed:
            self._follow(value)
            raise

    def _message(self, value: dict[str, object], kind: str, place: str) -> None:
        draft = self.draft
        message = mapping_at(value, "message")
        draft.locate("claude-code", directory=value.get("cwd"), branch=value.get("gitBranch"))
        whole = _whole_message_kind(value)
        words = [] if whole else _words(draft, message.get("content"), typed=kind == "user")
        if whole:
            draft.left_out[whole] += 1
        text = "\n\n".join(words)
        ts = draft.time(value.get("timestamp"), place)
        if text.strip():
            self._say(value, kind, text, ts)
        else:
            self._follow(value)
        _keep_calls(draft, message.get("content"), ts)

    def _say(self, value: dict[str, object], kind: str, text: str, ts: datetime | None) -> None:
        draft, uuid = self.draft, value.get("uuid")
        above = self._above(value)
        prompt = self.prompt_of.get(above) if above else None
        if prompt is None:
            prompt = self.prompt_of.get(self.last_record or "")
        follows = self.last_under.get(prompt) if prompt else None
        before = draft.count
        own = uuid if isinstance(uuid, str) else ""
        key = draft.add(kind, text, key=own, parent=follows, ts=ts)
        if draft.count == before:
            # The same line again: what follows hangs where it hung.
            return
        prompt = key if kind == "user" else prompt or key
        self.last_under[prompt] = key
        self.prompt_of[key] = prompt
        self.last_record = key

    def _above(self, value: Mapping[str, object]) -> str | None:
        """The record that this one names as its parent, if known; the one before it otherwise.

        A compaction starts a new root and names what it continues in `logicalParentUuid`.
        """
        for name in ("parentUuid", "logicalParentUuid"):
            above = value.get(name)
            if isinstance(above, str) and above in self.prompt_of:
                return above
        return self.last_record

    def _follow(self, value: Mapping[str, object]) -> None:
        """Remember under which prompt a record lies that is not kept."""
        uuid = value.get("uuid")
        if not isinstance(uuid, str) or len(self.prompt_of) >= self.draft.file.bounds.messages:
            return
        lies_under = self.prompt_of.get(self._above(value) or "")
        if lies_under is not None:
            self.prompt_of[uuid] = lies_under
            self.last_record = uuid


def _log_of(value: Mapping[str, object]) -> list[object] | None:
    """The records of a session on the web, where a value is one."""
    for name in ("loglines", "events", "data"):
        found = value.get(name)
        if isinstance(found, list) and any(map(_is_line, found[:_MOST_LOOKED_AT])):
            return found
    return None


def _is_line(value: object) -> bool:
    if not isinstance(value, dict) or value.get("type") not in ("user", "assistant"):
        return False
    return isinstance(value.get("message"), dict) and "uuid" in value


def _as_record(line: dict[str, object], session: str) -> dict[str, object]:
    """A record with the names that a transcript has for them."""
    own = line.get("sessionId") or line.get("session_id") or session
    at = line.get("timestamp") or line.get("created_at")
    aside = line.get("isSidechain") is True or line.get("parent_tool_use_id") is not None
    return {**line, "sessionId": own, "timestamp": at, "isSidechain": aside}


def _whole_message_kind(value: Mapping[str, object]) -> str | None:
    if value.get("isCompactSummary") is True:
        return LeftOut.SUMMARY
    if value.get("isMeta") is True:
        return LeftOut.HIDDEN
    return LeftOut.HIDDEN if value.get("isApiErrorMessage") is True else None


def _words(draft: Draft, content: object, *, typed: bool) -> list[str]:
    """The texts of a message, block by block, without what is left out."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        what = "missing" if content is None else f"a {type(content).__name__}"
        raise Malformed(f"the message's content is {what}, not text or blocks")
    words: list[str] = []
    for text in blocks_of(draft, content, _LEFT_OUT_BLOCKS, kept=_CALLS | _OUTPUTS):
        left_out = _wrapper(text) if typed else None
        if left_out:
            draft.left_out[left_out] += 1
        elif text.strip():
            words.append(_typed_command(text) if typed else text)
    return words


def _keep_calls(draft: Draft, content: object, ts: datetime | None) -> None:
    """Keep the calls of tools in a message, and how those before it ended."""
    for block in objects_in(content):
        kind = str(block.get("type"))
        if kind in _CALLS:
            draft.call_tool(block.get("id"), block.get("name"), block.get("input"), ts)
        elif kind in _OUTPUTS:
            failed = block.get("is_error") is True
            draft.tool_gave(block.get("tool_use_id"), block.get("content"), failed=failed)


def _wrapper(text: str) -> str | None:
    # Each stands alone in its message or block.
    if kind := synthetic_kind(text):
        return kind
    stripped = text.lstrip()
    if _COMMAND.match(stripped):
        arguments = next(elements(stripped, "command-args"), "")
        return None if arguments.strip() else LeftOut.COMMAND
    return None


def _typed_command(text: str) -> str:
    """A slash command as it was typed, out of the tags that the program put around it."""
    if not _COMMAND.match(text):
        return text
    name = next(elements(text, "command-name"), None)
    arguments = next(elements(text, "command-args"), None)
    if name is None or arguments is None:
        return text
    return f"{name.strip()} {arguments.strip()}"


FORMAT = Format("claude_code", _detect, _read)
