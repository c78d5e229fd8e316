"""Gemini, out of Google Takeout: "My Activity" as JSON or HTML, and conversations of Workspace.

The activity has no conversations, only what was asked and answered, newest first: each day (in UTC)
becomes a conversation. Activity of other products, and what is no prompt (feedback, sharing), is
left out and counted. A conversation of Workspace (`conversation_<n>.txt`, one JSON object) stays
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
    objects_in,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut, read_time
from anaphora.features.importing.formats.facts import text_or, words_at
from anaphora.features.importing.formats.html_words import CELL, cells, words_of
from anaphora.features.importing.formats.json_reader import records
from anaphora.features.importing.values import ImportedElse
from anaphora.store.hashing import digest
from anaphora.values.conversations import ImportProblem

_NAME = "gemini_takeout"
_PRODUCTS = ("gemini", "bard")
# How titles begin that are something the user said; the verb is the program's.
_ASKED = re.compile(r"(?:Prompted(?: with:)?|Asked(?: Gemini:| Bard:)?|Said|Branched|Answered)\s+")
_NOT_SAID = re.compile(
    r"(?:Used|Created|Added|Gave|Selected|Shared|Deleted|Viewed|Visited|Searched|Edited|Opened)\s"
)
_ATTACHED = re.compile(r"(?<!\s)\s*Attached \d+ files?\.?\s*$")
_FILES = re.compile(r"Attached \d+ files?\.?$")
_DATE = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4}), "
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)\s?(?P<half>AM|PM)\s?(?P<zone>\S+)?$"
    r"|(?P<day2>\d{1,2}) (?P<month2>[A-Z][a-z]{2,3}) (?P<year2>\d{4}), "
    r"(?P<hour2>\d{1,2}):(?P<minute2>\d\d):(?P<second2>\d\d) (?P<zone2>\S+)$"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ZONES = {
    "UTC": 0.0, "GMT": 0.0, "Z": 0.0, "WET": 0.0, "BST": 1.0, "WEST": 1.0, "CET": 1.0, "CEST": 2.0,
    "EET": 2.0, "EEST": 3.0, "MSK": 3.0, "IST": 5.5, "JST": 9.0, "KST": 9.0, "AEST": 10.0,
    "AEDT": 11.0, "EST": -5.0, "EDT": -4.0, "CST": -6.0, "CDT": -5.0, "MST": -7.0, "MDT": -6.0,
    "PST": -8.0, "PDT": -7.0, "BRT": -3.0,
}  # fmt: skip
_OFFSET = re.compile(r"(?:GMT|UTC)([+-])(\d{1,2})(?::?(\d\d))?$")
_HTML_HEAD = 65_536


def _is_activity(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("title"), str):
        return False
    return "time" in value and ("header" in value or "products" in value)


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("conversation_turns"), list)


def _is_html(head: bytes) -> bool:
    start = head[:_HTML_HEAD].lower()
    # The style sheet before the first entry is longer than what is looked at.
    return b"<html" in start and (b"my activity" in start or CELL.encode() in start)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    with file.open() as raw:
        html = _is_html(raw.peek(_HTML_HEAD)[:_HTML_HEAD])
    if html:
        yield from _read_html(file)
        return
    days = _Days(file)
    for record in records(file, lambda v: _is_activity(v) or _is_conversation(v)):
        if isinstance(record, ImportProblem):
            yield record
        elif _is_conversation(record.value):
            value = cast("dict[str, Any]", record.value)
            began = str(value.get("creation_time") or "")
            draft = Draft(file, _NAME, f"{file.stem} {began}".strip(), title=value.get("title"))
            draft.start(value.get("creation_time"), record.place)
            draft.add_all(value["conversation_turns"], record.place, _add_turn, "turn")
            yield from draft.results()
        else:
            try:
                days.add(_read_entry(as_object(record.value, "an entry"), record.place))
            except Malformed as error:
                yield file.problem(record.place, str(error))
        if file.held > file.bounds.characters:
            yield from days.results()
    yield from days.results()


@dataclass(frozen=True, slots=True)
class _Activity:
    """One prompt and its answer; `asked` is None for activity that is no prompt."""

    at: datetime
    asked: str | None
    answer: str
    files: int
    place: str


class _Days:
    """Entries of a file by day, which come out in the order of their times."""

    def __init__(self, file: ImportFile) -> None:
        self._file = file
        self._days: dict[str, list[_Activity]] = {}
        self._left_out = 0

    def add(self, entry: _Activity | None) -> None:
        """Take an entry in; None is activity of another product."""
        if entry is None or entry.asked is None:
            self._left_out += 1
            return
        self._file.held += len(entry.asked) + len(entry.answer)
        self._days.setdefault(f"{entry.at:%Y-%m-%d}", []).append(entry)

    def results(self) -> Iterator[ImportItem]:
        """A conversation a day, and what was left out."""
        for day, entries in sorted(self._days.items()):
            draft = Draft(self._file, _NAME, day, title=f"Gemini, {day}")
            # Of several at one time the last in the file was the first.
            entries.reverse()
            for prompt_entry in sorted(entries, key=lambda entry: entry.at):
                prompt = prompt_entry.asked or ""
                key = f"{prompt_entry.at.isoformat()} {digest(prompt)[:8]}"
                if prompt_entry.files:
                    draft.left_out[LeftOut.ATTACHMENT] += prompt_entry.files
                try:
                    draft.add("user", prompt, key=key, ts=prompt_entry.at)
                    if prompt_entry.answer.strip():
                        draft.add(
                            "assistant",
                            prompt_entry.answer,
                            key=f"{key} answer",
                            ts=prompt_entry.at,
                        )
                except Malformed as error:
                    draft.problem(prompt_entry.place, str(error))
            yield from draft.results()
        if self._left_out:
            yield ImportedElse(LeftOut.NOT_SAID, self._left_out)
        self._days, self._left_out = {}, 0
        self._file.held = 0


def _read_entry(value: Mapping[str, object], place: str) -> _Activity | None:
    products = value.get("products")
    names = [text_or(value, "header"), *(products if isinstance(products, list) else ())]
    if not any(str(name).lower().startswith(_PRODUCTS) for name in names):
        return None
    at = read_time(value.get("time"))
    if at is None:
        raise Malformed("'time' is missing")
    html_parts = value.get("safeHtmlItem")
    parts = [
        html
        for part in (html_parts if isinstance(html_parts, list) else [html_parts])
        if isinstance(part, dict) and (html := text_or(part, "html", "htmlValue"))
    ]
    files = value.get("attachedFiles")
    count = len(files) if isinstance(files, list) else 0
    prompt = _read_prompt(words_at(value, "title"))
    return _Activity(at, prompt, "\n\n".join(map(words_of, parts)), count, place)


def _read_prompt(title: str) -> str | None:
    """The user's text, without the program's verb; None if it is no prompt."""
    if _NOT_SAID.match(title):
        return None
    verb = _ASKED.match(title)
    typed_text = title[verb.end() :] if verb else title
    return _ATTACHED.sub("", typed_text) or typed_text


def _read_html(file: ImportFile) -> Iterator[ImportItem]:
    days, number = _Days(file), 0
    try:
        with file.open() as raw:
            for number, cell in enumerate(cells(raw, file.bounds.characters), start=1):
                try:
                    days.add(_read_cell(cell, f"entry {number}"))
                except Malformed as error:
                    yield file.problem(f"entry {number}", str(error))
                if file.held > file.bounds.characters:
                    yield from days.results()
        if not number:
            yield file.problem("file", "no entry of an activity is in it")
    except Malformed as error:
        yield file.problem(f"behind entry {number}", str(error))
    yield from days.results()


def _read_cell(cell: str, place: str) -> _Activity | None:
    """An entry: what was asked, a line with the date, and what was answered."""
    product, _, body = cell.partition("\f")
    if not product.strip().lower().startswith(_PRODUCTS):
        return None
    lines = [line.replace("\xa0", " ") for line in body.split("\n")]
    for number, line in enumerate(lines):
        date = _DATE.match(line.strip().replace("\u202f", " "))
        if date is not None:
            lines_before = [before_line for before_line in lines[:number] if before_line.strip()]
            prompt = "\n".join(lines_before).strip()
            files = len(_ATTACHED.findall(prompt.split("\n-")[0]))
            # Without the files that are listed at its end.
            prompt_lines = prompt.split("\n")
            first_attachment = len(prompt_lines) - 1
            while first_attachment > 0 and prompt_lines[first_attachment].startswith("-"):
                first_attachment -= 1
            for at in range(first_attachment, len(prompt_lines)):
                if match := _FILES.search(prompt_lines[at]):
                    words = [*prompt_lines[:at], prompt_lines[at][: match.start()]]
                    prompt = "\n".join(words).removesuffix("\n")
                    break
            answer = "\n".join(lines[number + 1 :]).strip()
            return _Activity(
                _parse_date(date), _read_prompt(prompt) if prompt else None, answer, files, place
            )
    raise Malformed(
        "no date that can be read: ask Takeout for JSON, which has times in any language"
    )


def _parse_date(match: re.Match[str]) -> datetime:
    part = {name.rstrip("2"): text for name, text in match.groupdict().items() if text}
    name = part["month"][:3]
    if name not in _MONTHS:
        raise Malformed(f"cannot parse the time: {match[0][:40]!r}")
    hour = int(part["hour"])
    if "half" in part:
        hour = hour % 12 + (12 if part["half"] == "PM" else 0)
    try:
        return datetime(
            int(part["year"]), _MONTHS.index(name) + 1, int(part["day"]), hour,
            int(part["minute"]), int(part["second"]), tzinfo=_parse_zone(part.get("zone", "UTC")),
        )  # fmt: skip
    except Malformed:
        raise
    except ValueError as error:
        raise Malformed(f"cannot parse the time: {match[0][:40]!r}") from error


def _parse_zone(name: str) -> timezone:
    offset = _OFFSET.match(name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
    if name not in _ZONES:
        raise Malformed(f"the time zone {name[:20]!r} is not known: ask Takeout for JSON")
    return timezone(timedelta(hours=_ZONES[name]))


def _add_turn(draft: Draft, value: object, place: str) -> None:
    turn = as_object(value, "a turn")
    user_turn, system_turn = turn.get("user_turn"), turn.get("system_turn")
    if isinstance(user_turn, dict):
        ts = draft.time(user_turn.get("turn_last_modified"), place)
        draft.add("user", words_at(user_turn, "prompt", "text"), ts=ts)
    elif isinstance(system_turn, dict):
        thoughts = system_turn.get("model_thoughts")
        draft.left_out[LeftOut.THINKING] += len(thoughts) if isinstance(thoughts, list) else 0
        ts = draft.time(system_turn.get("turn_last_modified"), place)
        parts = system_turn.get("text")
        texts = [p.get("data") for p in objects_in(parts)] if isinstance(parts, list) else [parts]
        text = "\n\n".join(t for t in texts if isinstance(t, str) and t.strip())
        if text:
            draft.add("assistant", text, ts=ts)
        else:
            draft.left_out[LeftOut.ATTACHMENT] += 1
    else:
        raise Malformed("neither a user_turn nor a system_turn")


FORMAT = Format(
    _NAME,
    lambda sample: (
        _is_html(sample.head)
        or any(_is_activity(element) or _is_conversation(element) for element in sample.values)
    ),
    _read,
)
