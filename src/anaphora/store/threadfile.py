"""One thread file: read it, add turns at its end, or write it anew.

In come a path and turns; out comes a `Tail`, all that the next append needs to know. Appending
copies the old bytes and adds to them: nothing that stands in a file is parsed or written again
when its identity is the one that this process left. Never takes a lock: the caller holds it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    copy_start,
    identity_of,
    replace_file,
)
from anaphora.store.gojson import Document, encode_turn, escape, parse, render
from anaphora.store.gotime import ZERO_TIME, nanoseconds, utc_text
from anaphora.store.ids import file_name
from anaphora.store.locks import lock_key
from anaphora.values import Turn

__all__ = ["Tail", "append_turns", "key_of", "latest", "read_document", "read_tail", "rewrite"]


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a thread file.

    The list of turns ends at byte `offset`; `count` turns stand before it; `rest` are the bytes
    that follow the value of "updated". `document` is set where the file has to be written anew
    to take a turn (another program's layout).
    """

    identity: Identity
    offset: int
    count: int
    updated: str
    rest: bytes = b"}"
    document: Document | None = None


def key_of(conversation_id: str) -> str:
    """What stands for a conversation in the names of its lock and its temporary files."""
    return lock_key(file_name(conversation_id))


def read_document(path: Path) -> tuple[Document, bytes, Identity]:
    """A thread file taken apart, its bytes and identity. Raises OSError and NotAThread."""
    with path.open("rb") as file:
        identity = identity_of(os.fstat(file.fileno()))
        data = file.read()
    return parse(data), data, identity


def read_tail(path: Path) -> Tail:
    """The end of the file at `path`, or of an empty thread where there is none."""
    try:
        document, data, identity = read_document(path)
    except FileNotFoundError:
        return Tail(NO_FILE, 0, 0, ZERO_TIME, document=Document())
    if document.splice is None:
        return Tail(identity, 0, len(document.turns), document.updated, document=document)
    offset, end = document.splice
    return Tail(identity, offset, len(document.turns), document.updated, data[end:])


def append_turns(path: Path, conversation_id: str, tail: Tail, turns: Sequence[Turn]) -> Tail:
    """Add turns at the end of the file that `tail` describes; returns its new end.

    "updated" becomes the latest of what it was and the turns' times, in UTC. Raises OSError, and
    FileChanged where the file is no longer that one; the old file is then as it was.
    """
    updated = latest(tail.updated, turns)
    if tail.document is not None:
        tail.document.turns.extend(turns)
        tail.document.raw_turns.extend(encode_turn(turn) for turn in turns)
        tail.document.updated = updated
        return rewrite(path, conversation_id, tail.document, tail.identity)
    comma = "," if tail.count else ""
    added = (comma + ",".join(encode_turn(turn) for turn in turns)).encode("utf-8")
    end = f'],"updated":{escape(updated)}'.encode() + tail.rest

    def write(target: BinaryIO) -> None:
        with path.open("rb", buffering=0) as source:
            if identity_of(os.fstat(source.fileno())) != tail.identity:
                raise FileChanged(errno.EAGAIN, "another program wrote the file", str(path))
            copy_start(source.fileno(), target, tail.offset)
        target.write(added)
        target.write(end)

    identity = replace_file(path, key_of(conversation_id), tail.identity, write)
    return Tail(identity, tail.offset + len(added), tail.count + len(turns), updated, tail.rest)


def rewrite(path: Path, conversation_id: str, document: Document, old: Identity) -> Tail:
    """Write the whole document in the place of the file `old`, its turns from `raw_turns`.

    Raises OSError, and FileChanged where another file stands there now.
    """
    if not document.conversation_id:
        document = replace(document, conversation_id=conversation_id)
    head, end = render(document)

    def write(target: BinaryIO) -> None:
        target.write(head)
        target.write(end)

    identity = replace_file(path, key_of(conversation_id), old, write)
    if not document.raw_turns:
        return Tail(identity, 0, 0, document.updated, document=document)
    rest = render_rest(document)
    return Tail(identity, len(head), len(document.raw_turns), document.updated, rest)


def render_rest(document: Document) -> bytes:
    """What follows the value of "updated" in the document's bytes."""
    return ("".join(f",{key}:{value}" for key, value in document.extras) + "}").encode("utf-8")


def latest(updated: str, turns: Sequence[Turn]) -> str:
    """The latest of a time and the turns' times: the text itself, or a turn's in UTC."""
    last = max((turn.ts_text for turn in turns), key=nanoseconds, default=updated)
    return utc_text(last) if nanoseconds(last) > nanoseconds(updated) else updated
