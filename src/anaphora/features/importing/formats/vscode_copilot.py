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

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    companions,
    objects_in,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut, chat_key
from anaphora.features.importing.formats.facts import text_or, words_at
from anaphora.features.importing.formats.json_reader import JsonRecord, records
from anaphora.features.importing.formats.sqlite_reader import MAGIC, rows
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
    marks = {"responderUsername", "requesterUsername", "initialLocation", "creationDate"}
    return bool(marks & value.keys())


def _detect(sample: Sample) -> bool:
    if sample.shape == "database":
        return SESSIONS in stored_keys(sample)
    return any(
        is_session(element)
        or (
            isinstance(element, dict)
            and element.get("kind") == _INITIAL
            and is_session(element.get("v"))
        )
        for element in sample.values
    )


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
    """The keys of a state.vscdb. Every editor based on VS Code has the same table; the keys tell
    which editor's chats these are. Raises the driver's Error for damage."""
    if not sample.has_table(ITEMS, "key", "value"):
        return set()
    keys = rows(sample.file, ITEMS, ("key",))
    return {
        str(fetched_row[0]["key"])
        for fetched_row in keys
        if not isinstance(fetched_row, ImportProblem)
    }


def stored_sessions(file: ImportFile) -> Iterator[ImportItem]:
    """The sessions in a state.vscdb of VS Code, or of an editor made out of it."""
    for fetched_row in rows(file, ITEMS, ("key", "value"), beginning=("key", SESSIONS)):
        if isinstance(fetched_row, ImportProblem):
            yield fetched_row
        elif fetched_row[0]["key"] == SESSIONS:
            try:
                decoded_sessions = decoded(fetched_row[0]["value"])
            except Malformed as error:
                yield file.problem(SESSIONS, str(error))
                continue
            for number, listed_session in enumerate(
                decoded_sessions if isinstance(decoded_sessions, list) else [decoded_sessions],
                start=1,
            ):
                position = f"{SESSIONS}, session {number}"
                if is_session(listed_session):
                    yield from session(file, cast("dict[str, Any]", listed_session), position)
                else:
                    yield file.problem(position, "not a session: it has no requests")


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

    def take(self, record: JsonRecord) -> None:
        change = as_object(record.value, "a line")
        kind, path = change.get("kind"), change.get("k")
        if kind == _INITIAL:
            self.state = change.get("v")
            return
        if self.state is None:
            raise Malformed("a change before the beginning of the log")
        if not isinstance(path, list) or not path:
            raise Malformed("a change that names no place")
        if kind == _SET:
            _set(self._find_parent(path), path[-1], change.get("v"))
        elif kind == _DELETE:
            _set(self._find_parent(path), path[-1], None)
        elif kind == _PUSH:
            parent = self._find_parent(path)
            target_list = _get(parent, path[-1])
            if not isinstance(target_list, list):
                target_list = []
                _set(parent, path[-1], target_list)
            start, added_elements = change.get("i"), change.get("v")
            if isinstance(start, int) and not isinstance(start, bool):
                del target_list[max(0, start) :]
            if isinstance(added_elements, list):
                target_list.extend(added_elements)
        else:
            raise Malformed(f"unknown kind of change {str(kind)[:20]!r}")

    def _find_parent(self, path: list[object]) -> Any:
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


def _set(holder: Any, step: object, value: object) -> None:
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
    first_prompt = next((_read_text(r) for r in requests if isinstance(r, dict)), "")
    key = chat_key(file, value.get("sessionId"), first_prompt)
    draft = Draft(file, NAME, key, title=value.get("customTitle"))
    draft.start(value.get("creationDate"), place)
    draft.locate("vscode", directory=folder_of(file))
    draft.add_all(requests, place, _add_request, "request")
    yield from draft.results()


def _add_request(draft: Draft, value: object, place: str) -> None:
    request = as_object(value, "a request")
    key = text_or(request, "requestId", "id")
    ts = draft.time(request.get("timestamp"), place)
    prompt = _read_text(request)
    variables = request.get("variableData")
    attachments = variables.get("variables") if isinstance(variables, dict) else None
    draft.left_out[LeftOut.ATTACHMENT] += len(attachments) if isinstance(attachments, list) else 0
    if prompt.strip():
        draft.add("user", prompt, key=key, ts=ts)
    elif key:
        draft.pass_over(key)
    response = request.get("response")
    answers: list[str] = []
    for number, part in enumerate(response if isinstance(response, list) else (), start=1):
        answers.append(_read_part(draft, part, f"{key or place} {number}", ts))
    text = "".join(answers).strip("\n")
    if text.strip():
        draft.add("assistant", text, key=f"{key} answer" if key else "", ts=ts)


def _read_text(request: Mapping[str, object]) -> str:
    message = request.get("message")
    if isinstance(message, str):
        return message
    if not isinstance(message, dict):
        return ""
    if isinstance(message.get("text"), str):
        return cast("str", message["text"])
    texts = (part.get("text") for part in objects_in(message.get("parts")))
    return "".join(text for text in texts if isinstance(text, str))


def _read_part(draft: Draft, part: object, key: str, ts: Any) -> str:
    """The text of a part of an answer; parts without text are stored or counted."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind, part_value = part.get("kind"), part.get("value")
    if kind in (None, "markdownContent", "markdownVuln", "warning"):
        content = part.get("content", part_value)
        words = content.get("value") if isinstance(content, dict) else content
        return words if isinstance(words, str) else ""
    if kind == "inlineReference":
        # The name of the target, as it was shown within the text.
        target = part.get("inlineReference")
        name = part.get("name") or (target.get("name") if isinstance(target, dict) else None)
        if not isinstance(name, str) and isinstance(target, dict):
            target_uri = target.get("uri") if isinstance(target.get("uri"), dict) else target
            path = target_uri.get("path") if isinstance(target_uri, dict) else None
            name = path.rsplit("/", 1)[-1] if isinstance(path, str) else None
        return f"`{name}`" if isinstance(name, str) and name else ""
    if kind in ("toolInvocationSerialized", "toolInvocation"):
        message = part.get("pastTenseMessage") or part.get("invocationMessage")
        about = message.get("value") if isinstance(message, dict) else message
        arguments = {"description": about} if isinstance(about, str) else {}
        draft.call_tool(text_or(part, "toolCallId") or key, part.get("toolId"), arguments, ts)
    elif kind == "thinking":
        draft.left_out[LeftOut.THINKING] += 1
    else:
        draft.left_out[LeftOut.RECORD] += 1
    return ""


def folder_of(file: ImportFile) -> str:
    """The folder of the workspace that a file of sessions belongs to."""
    for up in (1, 0):
        beside = file.beside("workspace.json", up) if len(file.path.parents) > up else None
        if beside is None or not beside.is_file() or beside.stat().st_size > _MOST_WORKSPACE:
            continue
        try:
            workspace = decoded(beside.read_bytes())
            folder_url = urlsplit(words_at(as_object(workspace, "a workspace"), "folder"))
        except (Malformed, OSError, ValueError):
            continue
        return unquote(folder_url.path) if folder_url.scheme == "file" else ""
    return ""


_COMPANIONS = companions(
    r"(?:argv|extensions|keybindings|languagepacks|mcp|settings|storage|tasks|workspace)\.json",
    "CachedProfilesData|extensions|History|snippets|sync",
)
FORMAT = Format(NAME, _detect, _read, _COMPANIONS)
