"""BEAM: long chats with an assistant, in folders of `chat.json` and `probing_questions.json`.

In: one such folder, or a folder of them. The chat is a nesting of lists and mappings down to
messages `{role, id, content, time_anchor}`; a `time_anchor` dates its message and those that
follow. Out: one `Haystack` a chat, all in one namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from anaphora.values.conversations import ImportedConversation
from bench.datasets.common import (
    Haystack,
    Question,
    chained,
    data_files,
    first_number,
    read_json,
    read_time,
)

# The generator's place mark at the end of a user's text: "->-> 1,1", at times "->-> 3,2)" or "N/A".
_MARK: Final = re.compile(r"\s*->->[^\n]{0,24}\Z")


def read_beam(path: Path) -> Iterator[Haystack]:
    """The chats of a BEAM folder, or of a folder of them."""
    for place, file in enumerate(data_files(path, "**/chat.json"), 1):
        name = file.resolve().parent.name
        messages = list(_messages(read_json(file)))
        turns = chained(
            (
                str(message["id"]),
                message["role"],
                _MARK.sub("", message["content"])
                if message["role"] == "user"
                else message["content"],
                read_time(message.get("time_anchor")),
                None,
            )
            for message in messages
        )
        chat = ImportedConversation("beam", name, f"beam-{name}".lower(), turns)
        (asked,) = file.parent.glob("**/probing_questions.json")
        questions = tuple(
            Question(
                question["question"].strip(),
                ability,
                chat.conversation_id,
                frozenset(
                    (chat.conversation_id, key)
                    for key in _ids(question.get("source_chat_ids"))
                    if ability != "abstention" and key in {turn.key for turn in turns}
                ),
                turns[-1].ts,
            )
            for ability, listed in read_json(asked).items()
            for question in listed
        )
        yield Haystack("default", first_number(name, place), (chat,), questions)


def _messages(part: Any, anchor: str | None = None) -> Iterator[Mapping[str, Any]]:
    """The messages in reading order; the first ones of a part are dated as the part is."""
    if isinstance(part, list):
        for inner in part:
            yield from _messages(inner, anchor)
    elif isinstance(part, Mapping):
        anchor = part.get("time_anchor") or anchor
        if "role" in part and "content" in part:
            yield {**part, "time_anchor": anchor}
            return
        for inner in part.values():
            yield from _messages(inner, anchor)


def _ids(ids: Any) -> frozenset[str]:
    """The ids of messages, however nested."""
    if isinstance(ids, list | Mapping):
        inner = ids.values() if isinstance(ids, Mapping) else ids
        return frozenset[str]().union(*map(_ids, inner))
    return frozenset(re.findall(r"\d+", str(ids)))
