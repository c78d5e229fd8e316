"""aider: `.aider.chat.history.md`, to which it appends every chat in a project.

A chat begins with "# aider chat started at" and the local time. Lines that begin with "####" are
the user's, several in a row one message; those with ">" are the program's own, and left out and
counted; all else is the answer. aider ends the lines of the first two kinds with two spaces, so
headings and quotations in an answer are told from them, unless an editor has taken the spaces away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    Sample,
)
from anaphora.features.importing.formats.drafts import Draft, LeftOut, read_local_time
from anaphora.ingest.files.reading import text_of
from anaphora.store.hashing import digest

NAME: Final = ".aider.chat.history.md"
_START: Final = re.compile(r"# aider chat started at[ \t]*(\S[^\r\n]*?)?[ \t]*$")
_BLANK: Final = "<blank>"
_END: Final = "  "
_FENCES: Final = ("```", "~~~")
_LONGEST_CODE: Final = 2_000
_USER, _PROGRAM, _ANSWER = "user", "program", "assistant"
_Message = tuple[str, list[str], int]


def _detect(sample: Sample) -> bool:
    if sample.shape == "database" or b"\0" in sample.head:
        return False
    text = sample.head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    first_line = text.split("\n", 1)[0]
    is_named = sample.file.name.lower().endswith(NAME) and not sample.values
    return bool(_START.match(first_line.rstrip())) or is_named


def _read(file: ImportFile) -> Iterator[ImportItem]:
    with file.open() as raw:
        content = raw.read(file.bounds.characters + 1)
    if len(content) > file.bounds.characters:
        yield file.problem("file", f"longer than {file.bounds.characters:,} bytes; it was skipped")
        return
    text = text_of(content)
    if text is None:
        yield file.problem("file", "it is no text; it was skipped")
        return
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    begin, start_time = 0, ""
    for number, line in enumerate(lines):
        match = _START.match(line)
        if match:
            yield from _read_chat(file, start_time, lines[begin:number], begin)
            begin, start_time = number + 1, match[1] or ""
    yield from _read_chat(file, start_time, lines[begin:], begin)


def _read_chat(
    file: ImportFile, started: str, lines: list[str], begin: int
) -> Iterator[ImportItem]:
    messages = _split_messages(lines, begin)
    first_prompt = next((spoken_lines for kind, spoken_lines, _ in messages if kind == _USER), [])
    key = f"{re.sub(r'[^0-9]+', '-', started)}-{digest(started, *first_prompt)[:8]}".lstrip("-")
    # Programs start several chats in a second.
    file.made_keys[key] += 1
    if file.made_keys[key] > 1:
        key = f"{key}-{file.made_keys[key]}"
    draft = Draft(file, "aider", key)
    # A history lies in the folder of its project.
    draft.locate(
        "aider",
        directory=str(file.path.parent.resolve())
        if file.member is None and file.name == NAME
        else "",
    )
    if started:
        try:
            draft.started = read_local_time(started) or file.modified
        except Malformed as error:
            draft.problem(f"line {begin}", f"{error}; that of the file is used")
    for kind, spoken_lines, number in messages:
        try:
            text = "\n".join(spoken_lines).strip("\n")
            if kind == _PROGRAM:
                draft.left_out[LeftOut.RECORD] += len(spoken_lines)
            elif kind == _USER and (text.strip() in {"", _BLANK}):
                draft.skip(LeftOut.BLANK)
            elif kind == _USER and text.startswith("/") and len(text.split()) == 1:
                draft.skip(LeftOut.COMMAND)
            elif text.strip():
                draft.add("user" if kind == _USER else "assistant", text)
        except Malformed as error:
            draft.problem(f"line {number}", str(error))
    yield from draft.results()


def _split_messages(lines: list[str], begin: int) -> list[_Message]:
    """The messages of a chat: kind of speaker, lines, and the number of the first line."""
    has_end_by_mark = {
        mark: any(line.startswith(mark) and line.endswith(_END) for line in lines)
        for mark in ("####", ">")
    }
    fence = ""
    messages: list[_Message] = []
    for number, line in enumerate(lines):
        kind = _ANSWER
        for mark, marked_kind in (("####", _USER), (">", _PROGRAM)):
            begins = line.startswith(f"{mark} ") or line.rstrip() == mark
            if begins and (line.endswith(_END) or not has_end_by_mark[mark]):
                kind = marked_kind
        if fence and not (kind == _USER and has_end_by_mark["####"]):
            kind = _ANSWER
        if kind != _ANSWER or line.strip() == fence:
            fence = ""
        elif not fence and (opening_fence := line.lstrip()[:3]) in _FENCES:
            # An unclosed fence does not count: the answer may have been broken off.
            later_lines = (line.strip() for line in lines[number + 1 : number + 1 + _LONGEST_CODE])
            fence = opening_fence if opening_fence in later_lines else ""
        text = line[5:].removesuffix(_END) if kind == _USER else line
        if messages and messages[-1][0] == kind:
            messages[-1][1].append(text)
        else:
            messages.append((kind, [text], begin + number + 1))
    return messages


FORMAT = Format("aider", _detect, _read)
