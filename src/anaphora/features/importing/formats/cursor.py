"""Cursor: transcripts of its agent, and the chats in its databases (`state.vscdb`).

A transcript (`~/.cursor/projects/*/agent-transcripts/**/*.jsonl`) has one message a line, without
ids or times. What the user typed comes out of the tags that the program puts around it; of each
call of a tool comes a line. In `globalStorage/state.vscdb` a chat is one value (`composerData:`)
and its messages are others (`bubbleId:`), or within it; before that chats lay in the databases of
their workspaces (`ItemTable`), which also list what was typed. What of it stands in no chat, as
what was asked for within a file, is a conversation of the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
    as_object,
    companions,
    mapping_at,
    objects_in,
    text_at,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut, blocks_of
from anaphora.features.importing.formats.facts import text_or
from anaphora.features.importing.formats.json_reader import JsonRecord, read_log
from anaphora.features.importing.formats.sqlite_reader import MAGIC, Row, has_key, rows
from anaphora.features.importing.formats.vscode_copilot import (
    ITEMS,
    decoded,
    folder_of,
    stored_keys,
    stored_sessions,
)
from anaphora.features.importing.values import ImportedElse
from anaphora.ingest.markup import elements
from anaphora.store.db.driver import dbapi2
from anaphora.store.hashing import digest
from anaphora.values.conversations import ImportProblem

_ROLES = ("user", "assistant")
_CALLS = frozenset({"tool_use"})
_OUTPUTS = {"tool_result": LeftOut.TOOL_OUTPUT, "thinking": LeftOut.THINKING}
_KEYS: Final = "cursorDiskKV"
_PAIR: Final = ("key", "value")
_COMPOSER, _BUBBLE = "composerData:", "bubbleId:"
_OLD_CHATS = (
    "workbench.panel.aichat.view.aichat.chatdata",
    "workbench.panel.chat.view.chat.chatdata",
)
_WORKSPACE_CHATS = "composer.composerData"
_PROMPTS, _GENERATIONS = "aiService.prompts", "aiService.generations"
_OWN: Final = frozenset({*_OLD_CHATS, _WORKSPACE_CHATS, _PROMPTS, _GENERATIONS})
_ELSEWHERE: Final = "chat whose messages are in globalStorage/state.vscdb"
_DEEPEST: Final = 50
_SPEAKERS = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}
_ENDED = {"completed": False, "error": True, "cancelled": True}


def _detect(sample: Sample) -> bool:
    if sample.shape != "database":
        return any(
            str(record.get("role")) in _ROLES
            and isinstance(record.get("message"), dict)
            and "type" not in record
            for record in sample.objects()
        )
    if sample.has_table(_KEYS, *_PAIR) and any(
        has_key(sample.file, _KEYS, start) for start in (_COMPOSER, _BUBBLE)
    ):
        return True
    return not _OWN.isdisjoint(stored_keys(sample))


def _read(file: ImportFile) -> Iterator[ImportItem]:
    with file.open() as raw:
        database = raw.peek(len(MAGIC)).startswith(MAGIC)
    if database:
        return _read_database(file)
    draft = Draft(file, "cursor", file.stem)
    draft.locate("cursor")

    def take(record: JsonRecord) -> None:
        fields = as_object(record.value, "a record")
        if str(fields.get("role")) not in _ROLES:
            draft.left_out[LeftOut.RECORD] += 1
            return
        role, message = text_at(fields, "role"), mapping_at(fields, "message")
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise Malformed(f"the message's content is a {type(content).__name__}, not blocks")
        words = [_unwrap_typed(text) for text in blocks_of(draft, content, _OUTPUTS, kept=_CALLS)]
        text = "\n\n".join(word for word in words if word.strip())
        if text:
            draft.add(role, text)
        for block in objects_in(content):
            if str(block.get("type")) in _CALLS:
                draft.call_tool(block.get("id"), block.get("name"), block.get("input"), None)

    return read_log(file, take, draft.results)


def _unwrap_typed(text: str) -> str:
    """The user's text, out of the tags around it; other text unchanged."""
    queries = [query.strip() for query in elements(text, "user_query")]
    if queries:
        return "\n\n".join(queries)
    text_before, _, stamped_text = text.partition("<timestamp>")
    _, end, text_behind = stamped_text.partition("</timestamp>")
    return text_before.rstrip() + text_behind.lstrip() if end else text


def _read_database(file: ImportFile) -> Iterator[ImportItem]:
    """All chats in a database, those of VS Code's own chat among them."""
    typed_texts: set[str] = set()
    yield from _read_composers(file, typed_texts)
    values: dict[str, Any] = {}
    for fetched_row in rows(file, ITEMS, _PAIR):
        if isinstance(fetched_row, ImportProblem):
            yield fetched_row
        elif str(key := fetched_row[0]["key"]) in _OWN and fetched_row[0]["value"] is not None:
            try:
                values[str(key)] = decoded(fetched_row[0]["value"])
            except Malformed as error:
                yield file.problem(str(key), str(error))
    yield from _read_workspace(file, values, typed_texts)
    yield from stored_sessions(file)


def _read_composers(file: ImportFile, typed: set[str]) -> Iterator[ImportItem]:
    """The chats of the database of all workspaces; the messages of one are held at once."""
    chats: set[str] = set()
    for fetched_row in rows(file, _KEYS, _PAIR, beginning=("key", _COMPOSER)):
        row = _decode_row(file, fetched_row)
        if isinstance(row, ImportProblem):
            yield row
        elif row is not None:
            chat = row[0].removeprefix(_COMPOSER)
            chats.add(chat)
            yield from _read_chat(file, chat, row[1], typed)
    left_behind: dict[str, None] = {}
    for fetched_row in rows(file, _KEYS, ("key",), beginning=("key", _BUBBLE)):
        if not isinstance(fetched_row, ImportProblem):
            left_behind[str(fetched_row[0]["key"]).split(":")[1]] = None
    for chat in left_behind:
        if chat not in chats:
            yield from _read_chat(file, chat, {}, typed)


def _read_chat(
    file: ImportFile, chat: str, value: dict[str, Any], typed: set[str]
) -> Iterator[ImportItem]:
    bubbles: dict[str, dict[str, Any]] = {}
    names = ("type", "text", "rawText", "createdAt", "timingInfo", "toolFormerData", "thinking")
    start = f"{_BUBBLE}{chat}:"
    for fetched_row in rows(file, _KEYS, _PAIR, beginning=("key", start)):
        row = _decode_row(file, fetched_row)
        if isinstance(row, ImportProblem):
            yield row
        elif row is not None:
            # A message carries its whole context along: only the fields that are read are held.
            key, bubble = row
            slim = {name: bubble[name] for name in names if bubble.get(name)}
            if not text_or(slim, "text", "rawText"):
                slim["text"] = _read_words(bubble)
            tool = slim.get("toolFormerData")
            if isinstance(tool, dict):
                slim["toolFormerData"] = {n: tool.get(n) for n in ("name", "rawArgs", "status")}
            bubbles[key.removeprefix(start)] = slim
    yield from _read_composer(file, chat, value, bubbles, typed)


def _decode_row(
    file: ImportFile, fetched: tuple[Row, str] | ImportProblem
) -> tuple[str, dict[str, Any]] | ImportProblem | None:
    """The key and value of a row; None for one that was emptied."""
    if isinstance(fetched, ImportProblem) or fetched[0]["value"] is None:
        return fetched if isinstance(fetched, ImportProblem) else None
    key = str(fetched[0]["key"])
    try:
        return key, as_object(decoded(fetched[0]["value"]), "a value")
    except Malformed as error:
        return file.problem(key, str(error))


def _read_words(bubble: Mapping[str, Any]) -> str:
    """The text of a message; early versions have the typed text as rich text alone."""
    text = text_or(bubble, "text", "rawText")
    if text.strip():
        return text
    for name in ("richText", "initText"):
        rich = bubble.get(name)
        try:
            text = _flatten(decoded(rich) if isinstance(rich, str) else rich).strip("\n")
        except Malformed:
            # It is also kept as plain text.
            text = str(rich)
        if text.strip():
            return text
    delegate = bubble.get("delegate")
    return text_or(delegate, "a") if isinstance(delegate, dict) else ""


def _flatten(node: object, depth: int = 0) -> str:
    """The words of rich text, which is a tree of nodes with `children` or a `text`."""
    if not isinstance(node, dict) or depth > _DEEPEST:
        return ""
    if isinstance(node.get("root"), dict):
        return _flatten(node["root"], depth + 1)
    if node.get("type") == "linebreak":
        return "\n"
    children = node.get("children")
    if isinstance(children, list):
        end = "\n" if node.get("type") == "paragraph" else ""
        return "".join(_flatten(child, depth + 1) for child in children) + end
    return text_or(node, "text")


def _read_composer(
    file: ImportFile,
    chat: str,
    value: dict[str, Any],
    bubbles: Mapping[str, dict[str, Any]],
    typed: set[str],
) -> Iterator[ImportItem]:
    draft = Draft(file, "cursor", chat, title=value.get("name"))
    draft.locate("cursor", directory=folder_of(file))
    position = f"{_COMPOSER}{chat[:60]}"
    draft.start(value.get("createdAt"), position)
    headers, within = value.get("fullConversationHeadersOnly"), value.get("conversation")
    headers_in_order = headers if isinstance(headers, list) and headers else within
    if not headers_in_order:
        # Without the chat's own list its messages are in the order of their times.
        in_time = sorted(bubbles, key=lambda key: str(bubbles[key].get("createdAt", "")))
        headers_in_order = [{"bubbleId": key} for key in in_time]
    unlisted_ids = {key for key, bubble in bubbles.items() if _read_words(bubble).strip()}
    for number, header in enumerate(
        headers_in_order if isinstance(headers_in_order, list) else (), start=1
    ):
        message_place = f"{position}, message {number}"
        if not isinstance(header, dict):
            draft.problem(message_place, "it is no object")
            continue
        bubble_id = text_or(header, "bubbleId", "id")
        bubble = bubbles.get(bubble_id, header if "text" in header or _read_words(header) else None)
        unlisted_ids.discard(bubble_id)
        if bubble is None:
            draft.problem(message_place, "its text is missing from the database")
        else:
            _add_bubble(draft, bubble_id, bubble, message_place, typed)
    # A prompt that was edited and sent again leaves its first form behind.
    draft.left_out[LeftOut.HIDDEN] += len(unlisted_ids)
    yield from draft.results()


def _add_bubble(
    draft: Draft, bubble_id: str, bubble: Mapping[str, Any], place: str, typed: set[str]
) -> None:
    kind = bubble.get("type", "")
    role = _SPEAKERS.get(kind) if isinstance(kind, int | str) else None
    timing = bubble.get("timingInfo")
    began = timing.get("clientStartTime") if isinstance(timing, dict) else None
    # Some versions count milliseconds since the program was started instead.
    ts = draft.time(
        bubble.get("createdAt")
        or (began if (isinstance(began, int | float) and began > 1e12) else None),
        place,
    )
    text = _read_words(bubble)
    if role is None:
        draft.skip(LeftOut.RECORD, bubble_id or None)
    elif text:
        typed_text = _unwrap_typed(text) if role == "user" else text
        draft.add(role, typed_text, key=bubble_id, ts=ts)
        if role == "user":
            typed.add(_digest_prompt(typed_text))
    elif bubble_id:
        draft.pass_over(bubble_id)
    draft.left_out[LeftOut.THINKING] += isinstance(bubble.get("thinking"), dict)
    tool = bubble.get("toolFormerData")
    if isinstance(tool, dict) and tool.get("name"):
        # A call with damaged arguments is kept without them.
        arguments = tool.get("rawArgs")
        try:
            arguments = decoded(arguments)
        except Malformed:
            arguments = {}
        draft.call_tool(bubble_id, tool["name"], arguments, ts)
        is_failed = _ENDED.get(str(tool.get("status")))
        if is_failed is not None:
            draft.tool_gave(bubble_id, None, failed=is_failed)


def _digest_prompt(text: str) -> str:
    """The identity of a text that may be in a chat and in the list of prompts."""
    return digest(text.strip())[:16]


def _read_workspace(
    file: ImportFile, values: Mapping[str, Any], typed: set[str]
) -> Iterator[ImportItem]:
    """The chats of one workspace, as earlier versions kept them, and what else was typed there."""
    for key in _OLD_CHATS:
        for number, tab in enumerate(_read_list(values.get(key), "tabs"), start=1):
            position = f"{key}, tab {number}"
            if not isinstance(tab, dict):
                yield file.problem(position, f"a tab that is a {type(tab).__name__}, not an object")
                continue
            tab_id = text_or(tab, "tabId") or position
            draft = Draft(file, "cursor", tab_id, title=tab.get("chatTitle"))
            draft.locate("cursor", directory=folder_of(file))
            draft.start(tab.get("lastSendTime"), position)
            for bubble_number, bubble in enumerate(_read_list(tab, "bubbles"), start=1):
                message_place = f"{position}, message {bubble_number}"
                if isinstance(bubble, dict):
                    _add_bubble(draft, text_or(bubble, "id"), bubble, message_place, typed)
                else:
                    draft.problem(message_place, "it is no object")
            yield from draft.results()
    elsewhere: list[str] = []
    for number, chat in enumerate(
        _read_list(values.get(_WORKSPACE_CHATS), "allComposers"), start=1
    ):
        position = f"{_WORKSPACE_CHATS}, chat {number}"
        if not isinstance(chat, dict):
            yield file.problem(position, f"a chat that is a {type(chat).__name__}, not an object")
        elif _read_list(chat, "conversation"):
            yield from _read_composer(
                file, text_or(chat, "composerId") or position, chat, {}, typed
            )
        else:
            elsewhere.append(text_or(chat, "composerId"))
    if elsewhere:
        yield ImportedElse(_ELSEWHERE, len(elsewhere))
    yield from _read_prompts(file, values, typed | _find_typed_elsewhere(file, elsewhere))


def _read_list(value: object, name: str) -> list[Any]:
    items = value.get(name) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


def _read_prompts(
    file: ImportFile, values: Mapping[str, Any], typed: set[str]
) -> Iterator[ImportItem]:
    """What was typed in a workspace and stands in no chat: asked for within a file, or in a chat
    that is gone. The lists keep the latest only, so each is known by its words, not by its place.
    """
    times: dict[str, object] = {}
    for generation in objects_in(values.get(_GENERATIONS)):
        times.setdefault(text_or(generation, "textDescription"), generation.get("unixMs"))
    prompts = [text_or(prompt, "text") for prompt in objects_in(values.get(_PROMPTS))]
    workspace = file.path.parent if file.member is None else None
    within = workspace is not None and workspace.parent.name == "workspaceStorage"
    key = f"prompts-{workspace.name}" if workspace is not None and within else "prompts"
    draft = Draft(file, "cursor", key, title="Prompts")
    draft.locate("cursor", directory=folder_of(file))
    for text in (*prompts, *(text for text in times if text not in set(prompts))):
        if text.strip() and _digest_prompt(text) in typed:
            draft.left_out[LeftOut.REPEATED] += 1
        elif text.strip():
            draft.add(
                "user", text, key=_digest_prompt(text), ts=draft.time(times.get(text), _PROMPTS)
            )
    yield from draft.results()


def _find_typed_elsewhere(file: ImportFile, chats: list[str]) -> set[str]:
    """What was typed in these chats of a workspace, out of the database of all workspaces beside
    it; nothing if that is not there or cannot be read."""
    typed_texts: set[str] = set()
    parents = file.path.parents
    database = file.beside("globalStorage/state.vscdb", 2) if len(parents) > 2 else None
    if not chats or database is None or not database.is_file():
        return typed_texts
    try:
        shared_file = ImportFile(database, bounds=file.bounds)
        for chat in chats:
            for key in (f"{_COMPOSER}{chat}", f"{_BUBBLE}{chat}:"):
                for fetched_row in rows(shared_file, _KEYS, _PAIR, beginning=("key", key)):
                    row = _decode_row(shared_file, fetched_row)
                    if isinstance(row, tuple):
                        bubbles = _read_list(row[1], "conversation") or [row[1]]
                        typed_texts.update(
                            _digest_prompt(_unwrap_typed(_read_words(bubble)))
                            for bubble in objects_in(bubbles)
                        )
    except (OSError, dbapi2.Error):
        return typed_texts
    return typed_texts


_COMPANIONS = companions(
    r"(?:argv|cli-config|extensions|hooks|ide_state|keybindings|languagepacks|mcp|meta|prompt_history"
    r"|repo|settings|statsig-cache|storage|workspace)\.json",
    "ai-tracking|agent-tools|CachedProfilesData|extensions|History|mcps|plans|plugins|rules|skills"
    "|snippets|sync|terminals|worktrees",
)
FORMAT = Format("cursor", _detect, _read, _COMPANIONS)
