"""VS Code's chat (GitHub Copilot): sessions as files, from "Export Chat", and in state.vscdb.

A session (`workspaceStorage/*/chatSessions/*.json`) is an object with `requests`; newer ones are
logs of changes to that object (`.jsonl`), which are followed here; older versions keep a list of
sessions in `state.vscdb`. What the user typed and what was answered comes out, and a line of each
call of a tool; thinking, progress and edits are left out and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from anaphora.ingest.importers.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    objects_in,
)
from anaphora.ingest.importers.drafts import Draft, LeftOut, chat_key
from anaphora.ingest.importers.facts import text_or, words_at
from anaphora.ingest.importers.json_reader import Record, records
from anaphora.ingest.importers.sqlite_reader import MAGIC, rows
from anaphora.values.conversations import ImportProblem

NAME: Final = "vscode_copilot"
ITEMS: Final = "ItemTable"
"""The table of state.vscdb in which an editor keeps a value a key."""
SESSIONS: Final = "interactive.sessions"
"""The key of state.vscdb under which older versions keep their sessions."""
_INITIAL, _SET, _PUSH, _DELETE = range(4)
# A list is filled up to a place that is named; nothing real is so long.
_MOST_ITEMS = 100_000
_MOST_WORKSPACE = 1 << 16


def is_session(value: object) -> bool:
    """Whether a value is a session of VS Code's chat."""
    if not isinstance(value, dict) or not isinstance(value.get("requests"), list):
        return False
    known = {"responderUsername", "requesterUsername", "initialLocation", "creationDate"}
    return bool(known & value.keys())


def _is_log(value: object) -> bool:
    """The first line of a log of changes."""
    return isinstance(value, dict) and value.get("kind") == _INITIAL and is_session(value.get("v"))


def _detect(sample: Sample) -> bool:
    if sample.shape == "database":
        return SESSIONS in stored_keys(sample)
    return any(is_session(value) or _is_log(value) for value in sample.values)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    with file.open() as raw:
        database = raw.peek(len(MAGIC)).startswith(MAGIC)
    if database:
        yield from stored_sessions(file)
        return
    log = _Log(file)
    for record in records(file, is_session):
        if isinstance(record, ImportProblem):
            yield record
        elif is_session(record.value):
            yield from session(file, cast("dict[str, Any]", record.value), record.place)
        else:
            try:
                log.take(record)
            except Malformed as error:
                yield file.problem(record.place, str(error))
    if is_session(log.state):
        yield from session(file, cast("dict[str, Any]", log.state), "the log")


def stored_keys(sample: Sample) -> set[str]:
    """The keys of a state.vscdb: every editor made out of VS Code has the same table, and what
    lies under which key tells whose chats they are. Raises the driver's Error for damage."""
    if not sample.has_table(ITEMS, "key", "value"):
        return set()
    keys = rows(sample.file, ITEMS, ("key",))
    return {str(item[0]["key"]) for item in keys if not isinstance(item, ImportProblem)}


def stored_sessions(file: ImportFile) -> Iterator[ImportItem]:
    """The sessions in a state.vscdb of VS Code, or of an editor made out of it."""
    for item in rows(file, ITEMS, ("key", "value"), beginning=("key", SESSIONS)):
        if isinstance(item, ImportProblem):
            yield item
        elif item[0]["key"] == SESSIONS:
            try:
                found = decoded(item[0]["value"])
            except Malformed as error:
                yield file.problem(SESSIONS, str(error))
                continue
            for number, one in enumerate(found if isinstance(found, list) else [found], start=1):
                place = f"{SESSIONS}, session {number}"
                if is_session(one):
                    yield from session(file, cast("dict[str, Any]", one), place)
                else:
                    yield file.problem(place, "not a session: it has no requests")


def decoded(value: object) -> Any:
    """The JSON in a column. Raises Malformed."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        raise Malformed(f"a value that is a {type(value).__name__}, not JSON")
    try:
        return json.loads(text)
    except RecursionError:
        raise Malformed("nested too deeply") from None
    except ValueError as error:
        raise Malformed(f"not valid JSON: {error}") from None


class _Log:
    """The object that a log of changes describes, line by line."""

    def __init__(self, file: ImportFile) -> None:
        self._file = file
        self.state: Any = None

    def take(self, record: Record) -> None:
        entry = as_object(record.value, "a line")
        kind, path = entry.get("kind"), entry.get("k")
        if kind == _INITIAL:
            self.state = entry.get("v")
            return
        if self.state is None:
            raise Malformed("a change before the beginning of the log")
        if not isinstance(path, list) or not path:
            raise Malformed("a change that names no place")
        if kind == _SET:
            _put(self._parent(path), path[-1], entry.get("v"))
        elif kind == _DELETE:
            _put(self._parent(path), path[-1], None)
        elif kind == _PUSH:
            self._push(path, entry)
        else:
            raise Malformed(f"unknown kind of change {str(kind)[:20]!r}")

    def _push(self, path: list[object], entry: Mapping[str, object]) -> None:
        parent = self._parent(path)
        found = _get(parent, path[-1])
        if not isinstance(found, list):
            found = []
            _put(parent, path[-1], found)
        start, more = entry.get("i"), entry.get("v")
        if isinstance(start, int) and not isinstance(start, bool):
            del found[max(0, start) :]
        if isinstance(more, list):
            found.extend(more)

    def _parent(self, path: list[object]) -> Any:
        at = self.state
        for step in path[:-1]:
            at = _get(at, step)
        return at


def _get(holder: Any, step: object) -> Any:
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int) and 0 <= step < len(holder):
        return holder[step]
    raise Malformed(f"a change at a place that is not there: {str(step)[:40]!r}")


def _put(holder: Any, step: object, value: object) -> None:
    if isinstance(holder, dict) and isinstance(step, str):
        holder[step] = value
    elif isinstance(holder, list) and isinstance(step, int) and 0 <= step < _MOST_ITEMS:
        holder.extend([None] * (step + 1 - len(holder)))
        holder[step] = value
    else:
        raise Malformed(f"a change at a place that is not there: {str(step)[:40]!r}")


def session(file: ImportFile, value: dict[str, Any], place: str) -> Iterator[ImportItem]:
    """The conversation of a session."""
    requests = value["requests"]
    first = next((_text(r) for r in requests if isinstance(r, dict)), "")
    key = chat_key(file, value.get("sessionId"), first)
    draft = Draft(file, NAME, key, title=value.get("customTitle"))
    draft.start(value.get("creationDate"), place)
    draft.locate("vscode", directory=folder_of(file))
    draft.add_all(requests, place, _request, "request")
    yield from draft.results()


def _request(draft: Draft, value: object, place: str) -> None:
    request = as_object(value, "a request")
    key = text_or(request, "requestId", "id")
    ts = draft.time(request.get("timestamp"), place)
    asked = _text(request)
    variables = request.get("variableData")
    attached = variables.get("variables") if isinstance(variables, dict) else None
    draft.left_out[LeftOut.ATTACHMENT] += len(attached) if isinstance(attached, list) else 0
    if asked.strip():
        draft.add("user", asked, key=key, ts=ts)
    elif key:
        draft.pass_over(key)
    response = request.get("response")
    said: list[str] = []
    for number, part in enumerate(response if isinstance(response, list) else (), start=1):
        said.append(_part(draft, part, f"{key or place} {number}", ts))
    text = "".join(said).strip("\n")
    if text.strip():
        draft.add("assistant", text, key=f"{key} answer" if key else "", ts=ts)


def _text(request: Mapping[str, object]) -> str:
    message = request.get("message")
    if isinstance(message, str):
        return message
    if not isinstance(message, dict):
        return ""
    if isinstance(message.get("text"), str):
        return cast("str", message["text"])
    found = (part.get("text") for part in objects_in(message.get("parts")))
    return "".join(text for text in found if isinstance(text, str))


def _part(draft: Draft, part: object, key: str, ts: Any) -> str:
    """The words of a part of an answer; what is none is kept or counted elsewhere."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind, value = part.get("kind"), part.get("value")
    if kind in (None, "markdownContent", "markdownVuln", "warning"):
        held = part.get("content", value)
        words = held.get("value") if isinstance(held, dict) else held
        return words if isinstance(words, str) else ""
    if kind == "inlineReference":
        return _reference(part)
    if kind in ("toolInvocationSerialized", "toolInvocation"):
        said = part.get("pastTenseMessage") or part.get("invocationMessage")
        about = said.get("value") if isinstance(said, dict) else said
        given = {"description": about} if isinstance(about, str) else {}
        draft.call_tool(text_or(part, "toolCallId") or key, part.get("toolId"), given, ts)
    elif kind == "thinking":
        draft.left_out[LeftOut.THINKING] += 1
    else:
        draft.left_out[LeftOut.RECORD] += 1
    return ""


def _reference(part: Mapping[str, object]) -> str:
    """The name of what an answer points to, as it was shown within the words."""
    found = part.get("inlineReference")
    name = part.get("name") or (found.get("name") if isinstance(found, dict) else None)
    if not isinstance(name, str) and isinstance(found, dict):
        where = found.get("uri") if isinstance(found.get("uri"), dict) else found
        path = where.get("path") if isinstance(where, dict) else None
        name = path.rsplit("/", 1)[-1] if isinstance(path, str) else None
    return f"`{name}`" if isinstance(name, str) and name else ""


def folder_of(file: ImportFile) -> str:
    """The folder of the workspace that a file of sessions belongs to."""
    for up in (1, 0):
        beside = file.beside("workspace.json", up) if len(file.path.parents) > up else None
        if beside is None or not beside.is_file() or beside.stat().st_size > _MOST_WORKSPACE:
            continue
        try:
            found = decoded(beside.read_bytes())
            where = urlsplit(words_at(as_object(found, "a workspace"), "folder"))
        except (Malformed, OSError, ValueError):
            continue
        return unquote(where.path) if where.scheme == "file" else ""
    return ""


FORMAT = Format(NAME, _detect, _read)
