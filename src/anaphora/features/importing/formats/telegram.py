"""Telegram: `result.json`, as Telegram Desktop exports a chat, or all chats of an account.

A text is a string or a list of runs (bold, links, mentions …), which join as they stand. What is
told beside the words stands in brackets before or behind them: what a message answers, who wrote it
first, a file's name, a poll. Pictures, stickers and the like without words, and service messages
(calls, who joined), are left out and counted. Chats are lines: an answer makes no branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from anaphora.features.importing.formats.base import ImportFile, ImportItem, Malformed, as_object
from anaphora.features.importing.formats.drafts import Draft, LeftOut, chat_key, read_local_time
from anaphora.features.importing.formats.facts import text_or
from anaphora.features.importing.formats.json_reader import conversation_format
from anaphora.features.importing.values import ImportedElse
from anaphora.text.display import one_line

_TYPE: Final = re.compile(
    r"(?:personal|bot)_chat|saved_messages|replies|verification_codes"
    r"|(?:private|public)_(?:group|supergroup|channel)"
)
# What a message of Telegram has beside those of other programs.
_MARKS: Final = frozenset({"from_id", "actor_id", "date_unixtime", "text_entities"})
_BOTS: Final = "bot_chat"
_DELETED: Final = "Deleted account"
_QUOTED: Final = 80
_LISTS: Final = {
    "contacts": "contact",
    "frequent_contacts": "frequent contact",
    "stories": "story",
    "sessions": "session of an account",
    "web_sessions": "session of an account",
}
_MEDIA: Final = {
    "animation": "animation",
    "sticker": "sticker",
    "video_file": "video",
    "video_message": "video message",
    "voice_message": "voice message",
}


def _is_chat(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return False
    if _TYPE.fullmatch(str(value.get("type"))):
        return True
    return any(
        isinstance(m, dict) and m.get("type") in ("message", "service") and _MARKS & m.keys()
        for m in value["messages"][:50]
    )


def _read_list(value: object, name: str = "list") -> list[Any]:
    items = value.get(name) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


def _is_account(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    chats = (*_read_list(value.get("chats")), *_read_list(value.get("left_chats")))
    return any(map(_is_chat, chats))


def _read_export(file: ImportFile, value: dict[str, object], place: str) -> Iterator[ImportItem]:
    if _is_chat(value):
        yield from _read_chat(file, value, place)
        return
    for name in ("chats", "left_chats"):
        for number, chat in enumerate(_read_list(value.get(name)), start=1):
            chat_place = f"{place}, {name} {number}"
            if isinstance(chat, dict) and isinstance(chat.get("messages"), list):
                yield from _read_chat(file, chat, chat_place)
            else:
                yield file.problem(chat_place, "not a chat: it has no list of messages")
    for name, kind in _LISTS.items():
        count = len(_read_list(value.get(name)))
        if count:
            yield ImportedElse(kind, count)


def _read_chat(file: ImportFile, chat: dict[str, Any], place: str) -> Iterator[ImportItem]:
    messages = chat["messages"]
    kind = str(chat.get("type"))
    chat_id = chat.get("id")
    title = text_or(chat, "name") or (
        "Saved Messages" if kind == "saved_messages" else _DELETED if chat_id is not None else ""
    )
    key = chat_key(file, chat_id, messages[0] if messages else None)
    draft = Draft(file, "telegram", key, title=title)
    bot = f"user{chat_id}" if kind == _BOTS else ""
    quotes_by_id: dict[str, str] = {}

    def take(draft: Draft, value: object, place: str) -> None:
        _add_message(draft, as_object(value, "a message"), place, bot, quotes_by_id)

    draft.add_all(messages, place, take)
    yield from draft.results()


def _add_message(
    draft: Draft, message: Mapping[str, Any], place: str, bot: str, quoted: dict[str, str]
) -> None:
    message_id = message.get("id")
    key = (
        str(message_id)
        if isinstance(message_id, int | str) and not isinstance(message_id, bool)
        else ""
    )
    kind = message.get("type", "message")
    if kind == "service":
        draft.skip(LeftOut.SERVICE, key or None)
        return
    words = _read_words(draft, message)
    beside = _describe_attached(draft, message)
    if kind != "message" and not words.strip():
        draft.skip(LeftOut.RECORD, key or None)
        return
    # A deleted account has no name left, but still its number.
    number = text_or(message, "from_id").removeprefix("user")
    name = text_or(message, "from", "author") or f"{_DELETED} {number}".strip()
    # What was sent beside the words and is left out: a picture, a voice, a file.
    any_file = message.get("file") or message.get("media_type")
    kind_of_file = _MEDIA.get(
        str(message.get("media_type")), LeftOut.ATTACHMENT if any_file else ""
    )
    media = "photo" if message.get("photo") else kind_of_file
    shown_text = next((text for text in (words, *beside, media) if text.strip()), "")
    if key:
        quoted[key] = f"{name}: {one_line(shown_text[: 4 * _QUOTED], _QUOTED)}"
    if not words.strip() and not beside:
        # A picture or a voice without words is counted by what it is.
        draft.skip(media or LeftOut.BLANK, key or None)
        return
    draft.left_out[media] += bool(media)
    text = "\n".join(
        part for part in (*_describe_origin(message, quoted), words, *beside) if part.strip()
    )
    role = "assistant" if bot and message.get("from_id") == bot else "user"
    ts = draft.time(message.get("date_unixtime"), place)
    if ts is None:
        try:
            ts = read_local_time(message.get("date"))
        except Malformed as error:
            draft.problem(place, f"{error}; the previous time is used")
    draft.add(role, text, key=key, ts=ts, speaker=name)


def _read_words(draft: Draft, message: Mapping[str, Any]) -> str:
    """The text of a message, its runs joined as they stand."""
    for name in ("text", "text_entities", "caption"):
        field = message.get(name)
        if isinstance(field, str) and field:
            return field
        if isinstance(field, list) and field:
            runs: list[str] = []
            for run in field:
                text = (
                    run if isinstance(run, str) else as_object(run, "a part of a text").get("text")
                )
                if not isinstance(text, str):
                    raise Malformed("a part of a text without its text")
                draft.left_out[LeftOut.ADDRESS] += bool(isinstance(run, dict) and run.get("href"))
                runs.append(text)
            return "".join(runs)
        if field is not None and not isinstance(field, str | list):
            raise Malformed(f"{name!r} is a {type(field).__name__}, not text")
    return ""


def _describe_origin(message: Mapping[str, Any], quoted: Mapping[str, str]) -> Iterator[str]:
    """The message that this one answers, and the author that it was forwarded from."""
    answered_id = str(message.get("reply_to_message_id"))
    # Numbers of messages are those of one chat.
    if answered_id in quoted and "reply_to_peer_id" not in message:
        yield f"[reply to {quoted[answered_id]}]"
    if "forwarded_from" in message or "saved_from" in message:
        first_sender = text_or(message, "forwarded_from", "saved_from") or _DELETED.lower()
        yield f"[forwarded from {first_sender}]"


def _describe_attached(draft: Draft, message: Mapping[str, Any]) -> list[str]:
    """The other contents of a message as text: a poll, a place, a contact, a file."""
    file_name = ""
    # The names of voices and stickers say nothing.
    if message.get("file") and str(message.get("media_type")) not in _MEDIA:
        # What was not exported says so in brackets where its path would be.
        path = text_or(message, "file")
        in_path = "" if path[:1] == "(" else path.rsplit("/", 1)[-1]
        file_name = text_or(message, "file_name") or in_path
    return [
        f"[{kind}: {description}]"
        for kind, description in (
            ("poll", _read_poll(draft, message.get("poll"))),
            ("list", _read_poll(draft, message.get("todo_list"))),
            ("contact", _join_fields(message.get("contact_information"))),
            ("place", _join_fields(message, "place_name", "address")),
            ("location", _join_fields(message.get("location_information"))),
            ("game", _join_fields(message, "game_title", "game_description")),
            ("invoice", _join_fields(message.get("invoice_information"))),
            ("audio", _join_fields(message, "performer", "title")),
            ("dice", _join_fields(message.get("dice"))),
            ("file", file_name),
        )
        if description
    ]


def _join_fields(value: object, *names: str) -> str:
    """The words and numbers of an object, or those in these of its fields."""
    if not isinstance(value, dict):
        return ""
    fields = [value.get(name) for name in names] if names else list(value.values())
    plain = (f for f in fields if isinstance(f, str | int | float) and not isinstance(f, bool))
    return ", ".join(text for f in plain if (text := str(f).strip()))


def _read_poll(draft: Draft, value: object) -> str:
    """The question of a poll or the title of a list, and what there is to choose or to do."""
    if not isinstance(value, dict):
        return ""
    question = _read_phrase(draft, value, "question") or _read_phrase(draft, value, "title")
    items = (*_read_list(value, "answers"), *_read_list(value, "items"))
    choices = [_read_phrase(draft, option, "text") for option in items if isinstance(option, dict)]
    return " / ".join(text for text in (question, *choices) if text)


def _read_phrase(draft: Draft, value: Mapping[str, Any], name: str) -> str:
    return _read_words(draft, {"text": value[name]}) if value.get(name) else ""


FORMAT = conversation_format(
    "telegram",
    lambda value: _is_chat(value) or _is_account(value),
    "not a chat of Telegram: it has no list of messages",
    _read_export,
)
