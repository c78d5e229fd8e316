"""Cursor: transcripts of its agent, and the chats in its databases (`state.vscdb`).

A transcript (`~/.cursor/projects/*/agent-transcripts/**/*.jsonl`) has one message a line, without
ids or times. What the user typed comes out of the tags that the program puts around it; of each
call of a tool comes a line. In `globalStorage/state.vscdb` a chat is one value (`composerData:`)
and its messages are others (`bubbleId:`), or within it; before that chats lay in the databases of
their workspaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from anaphora.ingest.importers.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    mapping_at,
    objects_in,
    text_at,
)
from anaphora.ingest.importers.drafts import Draft, LeftOut, blocks_of
from anaphora.ingest.importers.facts import text_or
from anaphora.ingest.importers.json_reader import Record, read_log
from anaphora.ingest.importers.sqlite_reader import MAGIC, Row, rows
from anaphora.ingest.importers.vscode_copilot import decoded, stored_sessions
from anaphora.ingest.markup import elements
from anaphora.values.conversations import ImportProblem

_ROLES = ("user", "assistant")
_CALLS = frozenset({"tool_use"})
_OUTPUTS = {"tool_result": LeftOut.TOOL_OUTPUT, "thinking": LeftOut.THINKING}
_KEYS: Final = "cursorDiskKV"
_PAIR: Final = ("key", "value")
_COMPOSER, _BUBBLE = "composerData:", "bubbleId:"
_OLD_CHATS = "workbench.panel.aichat.view.aichat.chatdata"
_SPEAKERS = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}
_ENDED = {"completed": False, "error": True, "cancelled": True}


def _is_message(value: dict[str, object]) -> bool:
    message = value.get("message")
    return str(value.get("role")) in _ROLES and isinstance(message, dict) and "type" not in value


def _detect(sample: Sample) -> bool:
    return sample.has_table(_KEYS, *_PAIR) or any(map(_is_message, sample.objects()))


def _read(file: ImportFile) -> Iterator[ImportItem]:
    with file.open() as raw:
        database = raw.peek(len(MAGIC)).startswith(MAGIC)
    if database:
        return chain(_composers(file), _tabs(file), stored_sessions(file))
    draft = Draft(file, "cursor", file.stem)
    draft.locate("cursor")

    def take(record: Record) -> None:
        _take(draft, as_object(record.value, "a record"))

    return read_log(file, take, draft.results)


def _take(draft: Draft, value: dict[str, object]) -> None:
    if str(value.get("role")) not in _ROLES:
        draft.left_out[LeftOut.RECORD] += 1
        return
    role, message = text_at(value, "role"), mapping_at(value, "message")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Malformed(f"the message's content is a {type(content).__name__}, not blocks")
    words = [_typed(text) for text in blocks_of(draft, content, _OUTPUTS, kept=_CALLS)]
    text = "\n\n".join(word for word in words if word.strip())
    if text:
        draft.add(role, text)
    for block in objects_in(content):
        if str(block.get("type")) in _CALLS:
            draft.call_tool(block.get("id"), block.get("name"), block.get("input"), None)


def _typed(text: str) -> str:
    """What the user typed, out of the tags around it; other text as it is."""
    queries = [query.strip() for query in elements(text, "user_query")]
    return "\n\n".join(queries) if queries else _without_time(text)


def _without_time(text: str) -> str:
    before, _, rest = text.partition("<timestamp>")
    _, end, behind = rest.partition("</timestamp>")
    return before.rstrip() + behind.lstrip() if end else text


def _composers(file: ImportFile) -> Iterator[ImportItem]:
    """The chats of the database of all workspaces; the messages of one are held at once."""
    for item in rows(file, _KEYS, _PAIR, beginning=("key", _COMPOSER)):
        found = _decoded(file, item)
        if isinstance(found, ImportProblem):
            yield found
        elif found is not None:
            chat = found[0].removeprefix(_COMPOSER)
            bubbles: dict[str, dict[str, Any]] = {}
            start = f"{_BUBBLE}{chat}:"
            for one in rows(file, _KEYS, _PAIR, beginning=("key", start)):
                bubble = _decoded(file, one)
                if isinstance(bubble, ImportProblem):
                    yield bubble
                elif bubble is not None:
                    bubbles[bubble[0].removeprefix(start)] = _slim(bubble[1])
            yield from _composer(file, chat, found[1], bubbles)


def _decoded(
    file: ImportFile, item: tuple[Row, str] | ImportProblem
) -> tuple[str, dict[str, Any]] | ImportProblem | None:
    """The key and value of a row; None for one that was emptied."""
    if isinstance(item, ImportProblem) or item[0]["value"] is None:
        return item if isinstance(item, ImportProblem) else None
    key = str(item[0]["key"])
    try:
        return key, as_object(decoded(item[0]["value"]), "a value")
    except Malformed as error:
        return file.problem(key, str(error))


def _slim(bubble: Mapping[str, Any]) -> dict[str, Any]:
    """Of a message what is read: it carries its whole context along."""
    wanted = ("type", "text", "rawText", "createdAt", "timingInfo", "toolFormerData", "thinking")
    found = {name: bubble[name] for name in wanted if bubble.get(name)}
    tool = found.get("toolFormerData")
    if isinstance(tool, dict):
        found["toolFormerData"] = {n: tool.get(n) for n in ("name", "rawArgs", "status")}
    return found


def _composer(
    file: ImportFile, chat: str, value: dict[str, Any], bubbles: Mapping[str, dict[str, Any]]
) -> Iterator[ImportItem]:
    draft = Draft(file, "cursor", chat, title=value.get("name"))
    draft.locate("cursor")
    place = f"{_COMPOSER}{chat[:60]}"
    draft.start(value.get("createdAt"), place)
    headers, within = value.get("fullConversationHeadersOnly"), value.get("conversation")
    listed = headers if isinstance(headers, list) and headers else within
    for number, one in enumerate(listed if isinstance(listed, list) else (), start=1):
        where = f"{place}, message {number}"
        if not isinstance(one, dict):
            draft.problem(where, "it is no object")
            continue
        bubble_id = text_or(one, "bubbleId", "id")
        bubble = bubbles.get(bubble_id, one if "text" in one else None)
        if bubble is None:
            draft.problem(where, "its text is missing from the database")
        else:
            _keep(draft, bubble_id, bubble, where)
    yield from draft.results()


def _keep(draft: Draft, bubble_id: str, bubble: Mapping[str, Any], place: str) -> None:
    kind = bubble.get("type")
    role = _SPEAKERS.get(kind) if isinstance(kind, int | str) else None
    timing = bubble.get("timingInfo")
    began = timing.get("clientStartTime") if isinstance(timing, dict) else None
    ts = draft.time(bubble.get("createdAt") or (began if _is_moment(began) else None), place)
    text = text_or(bubble, "text", "rawText")
    if role is None:
        draft.skip(LeftOut.RECORD, bubble_id or None)
    elif text:
        draft.add(role, _typed(text) if role == "user" else text, key=bubble_id, ts=ts)
    elif bubble_id:
        draft.pass_over(bubble_id)
    draft.left_out[LeftOut.THINKING] += isinstance(bubble.get("thinking"), dict)
    tool = bubble.get("toolFormerData")
    if isinstance(tool, dict) and tool.get("name"):
        draft.call_tool(bubble_id, tool["name"], _given(tool.get("rawArgs")), ts)
        failed = _ENDED.get(str(tool.get("status")))
        if failed is not None:
            draft.tool_gave(bubble_id, None, failed=failed)


def _is_moment(value: object) -> bool:
    """Some versions count milliseconds since the program was started instead."""
    return isinstance(value, int | float) and value > 1e12


def _given(arguments: object) -> object:
    try:
        return decoded(arguments)
    except Malformed:
        return {}


def _tabs(file: ImportFile) -> Iterator[ImportItem]:
    """The chats of one workspace, as the first versions kept them."""
    for item in rows(file, "ItemTable", _PAIR, beginning=("key", _OLD_CHATS)):
        if isinstance(item, ImportProblem):
            yield item
        elif item[0]["key"] == _OLD_CHATS:
            try:
                tabs = as_object(decoded(item[0]["value"]), "a value").get("tabs")
            except Malformed as error:
                yield file.problem(_OLD_CHATS, str(error))
                continue
            for number, tab in enumerate(tabs if isinstance(tabs, list) else (), start=1):
                if isinstance(tab, dict):
                    yield from _tab(file, tab, f"{_OLD_CHATS}, tab {number}")


def _tab(file: ImportFile, tab: dict[str, Any], place: str) -> Iterator[ImportItem]:
    draft = Draft(file, "cursor", text_or(tab, "tabId") or place, title=tab.get("chatTitle"))
    draft.locate("cursor")
    draft.start(tab.get("lastSendTime"), place)
    bubbles = tab.get("bubbles")
    for number, bubble in enumerate(bubbles if isinstance(bubbles, list) else (), start=1):
        if isinstance(bubble, dict):
            _keep(draft, text_or(bubble, "id"), bubble, f"{place}, message {number}")
    yield from draft.results()


FORMAT = Format("cursor", _detect, _read)
