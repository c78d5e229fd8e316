"""One thread file: read it, add turns at its end, or write it anew.

In come a path and turns; out comes a `Tail`, all that the next append needs to know. Appending
copies the old bytes and adds to them: nothing that stands in a file is parsed or written again
when its identity is the one that this process left. The bytes are those of the store's form
(Go's JSON, or sealed). Never takes a lock: the caller holds it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from anaphora.errors import Tampered
from anaphora.store.crypto.threads import PLAIN, Opened, Seam, ThreadForm
from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    copy_start,
    identity_of,
    replace_file,
)
from anaphora.store.threads.gojson import Document, NotAThread, encode_turn, escape, parse, render
from anaphora.store.threads.gotime import ZERO_TIME, nanoseconds, utc_text
from anaphora.store.threads.locks import lock_key
from anaphora.values.conversations import Turn


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a thread file.

    New turns go to `seam`; `count` turns stand before it; `rest` are the bytes of the JSON that
    follow the value of "updated". `document` is set where the file has to be written anew to take
    a turn (another program's layout).
    """

    identity: Identity
    seam: Seam
    count: int
    updated: str
    rest: bytes = b"}"
    document: Document | None = None


def key_of(conversation_id: str, form: ThreadForm = PLAIN) -> str:
    """What stands for a conversation in the names of its lock and its temporary files."""
    return lock_key(form.file_name(conversation_id))


def read_bytes(path: Path, conversation_id: str, form: ThreadForm) -> tuple[Opened, Identity]:
    """A thread file's JSON, and its identity. Raises OSError, WrongKey and NotAThread.

    A sealed file that was changed or cut is no thread: it is set aside as a damaged one is.
    """
    with path.open("rb") as file:
        identity = identity_of(os.fstat(file.fileno()))
        data = file.read()
    try:
        return form.decode(conversation_id, data), identity
    except Tampered as error:
        raise NotAThread(error.reason) from error


def read_document(
    path: Path, conversation_id: str, form: ThreadForm
) -> tuple[Document, Opened, Identity]:
    """A thread file taken apart, its JSON and identity. Raises as `read_bytes` does."""
    opened, identity = read_bytes(path, conversation_id, form)
    return parse(opened.data), opened, identity


def read_tail(path: Path, conversation_id: str, form: ThreadForm) -> Tail:
    """The end of the file at `path`, or of an empty thread where there is none."""
    try:
        document, opened, identity = read_document(path, conversation_id, form)
    except FileNotFoundError:
        return Tail(NO_FILE, Seam(0), 0, ZERO_TIME, document=Document())
    count = len(document.turns)
    seam = opened.seam_at(document.splice[0]) if document.splice is not None else None
    if document.splice is None or seam is None:
        return Tail(identity, Seam(0), count, document.updated, document=document)
    return Tail(identity, seam, count, document.updated, opened.data[document.splice[1] :])


def append_turns(
    path: Path, conversation_id: str, tail: Tail, turns: Sequence[Turn], form: ThreadForm
) -> Tail:
    """Add turns at the end of the file that `tail` describes; returns its new end.

    "updated" becomes the latest of what it was and the turns' times, in UTC. Raises OSError, and
    FileChanged where the file is no longer that one; the old file is then as it was.
    """
    updated = latest(tail.updated, turns)
    if tail.document is not None:
        tail.document.turns.extend(turns)
        tail.document.raw_turns.extend(encode_turn(turn) for turn in turns)
        tail.document.updated = updated
        return rewrite(path, conversation_id, tail.document, tail.identity, form)
    comma = "," if tail.count else ""
    added = (comma + ",".join(encode_turn(turn) for turn in turns)).encode("utf-8")
    end = f'],"updated":{escape(updated)}'.encode() + tail.rest
    data, seam = form.more(conversation_id, tail.seam, added, end)

    def write(target: BinaryIO) -> None:
        with path.open("rb", buffering=0) as source:
            if identity_of(os.fstat(source.fileno())) != tail.identity:
                raise FileChanged(errno.EAGAIN, "another program wrote the file", str(path))
            copy_start(source.fileno(), target, tail.seam.offset)
        target.write(data)

    identity = replace_file(path, key_of(conversation_id, form), tail.identity, write)
    return Tail(identity, seam, tail.count + len(turns), updated, tail.rest)


def rewrite(
    path: Path, conversation_id: str, document: Document, old: Identity, form: ThreadForm
) -> Tail:
    """Write the whole document in the place of the file `old`, its turns from `raw_turns`.

    Raises OSError, and FileChanged where another file stands there now.
    """
    if not document.conversation_id:
        document = replace(document, conversation_id=conversation_id)
    head, end = render(document)
    data, seam = form.whole(conversation_id, head, end)

    def write(target: BinaryIO) -> None:
        target.write(data)

    identity = replace_file(path, key_of(conversation_id, form), old, write)
    if not document.raw_turns:
        return Tail(identity, Seam(0), 0, document.updated, document=document)
    rest = render_rest(document)
    return Tail(identity, seam, len(document.raw_turns), document.updated, rest)


def render_rest(document: Document) -> bytes:
    """What follows the value of "updated" in the document's bytes."""
    return ("".join(f",{key}:{value}" for key, value in document.extras) + "}").encode("utf-8")


def latest(updated: str, turns: Sequence[Turn]) -> str:
    """The latest of a time and the turns' times: the text itself, or a turn's in UTC."""
    last = max((turn.ts_text for turn in turns), key=nanoseconds, default=updated)
    return utc_text(last) if nanoseconds(last) > nanoseconds(updated) else updated
