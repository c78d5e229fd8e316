"""The files of a client: an entry put in or taken out, as changes that are shown, made and undone.

JSON keeps its indentation, the order of its members and its comments; TOML keeps every byte but
those of Anaphora's own table. A file that cannot be changed without losing something of the user's
(a table written inline) is read all the same, so that what stands in it already is known, and
refused where it would have to change; then `snippet` has what to put in by hand.

A file is replaced whole, after it was made sure that nobody wrote it meanwhile; the bytes from
before are kept beside it until the change is undone, so that undoing gives them back exactly where
nobody else wrote since.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from anaphora.errors import InvalidInput
from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    identity_of,
    make_directory,
    replace_file,
    translate,
)
from anaphora.surfaces.setup import jsonc
from anaphora.surfaces.setup.clients import SKILL, Entry

TEXT: Final = "text"


def read_document(form: str, path: Path, content: bytes) -> dict[str, Any]:
    """The value of a whole file; {} for an empty one. `InvalidInput` when it cannot be read."""
    try:
        text = content.decode("utf-8-sig")
        value = tomllib.loads(text) if form == "toml" else _json(text)
    except ValueError as error:
        raise InvalidInput(
            str(path), None, f"it is not plain {form.upper()} and was not changed: {error}"
        ) from error
    if not isinstance(value, dict):
        raise InvalidInput(str(path), None, "the top level is not an object; it was not changed")
    return value


def with_entry(entry: Entry, content: bytes) -> bytes:
    """The file with the entry in it; the same bytes when it is there already."""
    if entry.form == TEXT:
        return str(entry.value).encode()
    return _edited(entry, content, _put, _with_table)


def without_entry(entry: Entry, content: bytes) -> bytes:
    """The file without the entry, and without what is empty because of that.

    A text is the skill, of this version or another, by the name in it; any other text stays.
    """
    if entry.form == TEXT:
        return b"" if _is_skill(content) else content
    return _edited(entry, content, _taken, _without_table)


def _edited(
    entry: Entry,
    content: bytes,
    change: Callable[[Entry, Mapping[str, Any]], dict[str, Any]],
    change_table: Callable[[Entry, str], str],
) -> bytes:
    before = read_document(entry.form, entry.path, content)
    after = change(entry, before)
    if after == before:
        return content
    if entry.form == "json":
        return _json_like(entry, before, after, content)
    made = change_table(entry, content.decode())
    try:
        found = tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        found = {}
    if found != after:
        reason = "its format cannot be edited automatically, and it was not changed"
        raise InvalidInput(str(entry.path), None, reason)
    return made.encode()


def snippet(entries: Sequence[Entry]) -> str:
    """What somebody would put into one file by hand: all that belongs there, as it stands there."""
    if entries[0].form == TEXT:
        return str(entries[0].value)
    if entries[0].form == "toml":
        return "\n".join(map(_table, entries))
    whole: dict[str, Any] = {}
    for entry in entries:
        whole = _put(entry, whole)
    return json.dumps(whole, indent=2, ensure_ascii=False)


def _json(text: str) -> object:
    """The value of JSON, with comments and commas too many passed over. ValueError."""
    if _is_plain(text):
        return json.loads(text or "{}")
    return jsonc.tree(text).value


def _is_plain(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def _put(entry: Entry, whole: Mapping[str, Any]) -> dict[str, Any]:
    after = copy.deepcopy(dict(whole))
    place = after
    for key in entry.keys[:-1]:
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise InvalidInput(
                str(entry.path), place, f"{key} is not an object; it was not changed"
            )
    last = entry.keys[-1]
    if entry.member_of is None:
        if not (entry.given and last in place):
            place[last] = copy.deepcopy(entry.value)
        return after
    members = place.setdefault(last, [])
    if not isinstance(members, list):
        raise InvalidInput(str(entry.path), members, f"{last} is not a list; it was not changed")
    mine = [n for n, one in enumerate(members) if _is_mine(entry, one)]
    if not mine:
        members.append(copy.deepcopy(entry.value))
    else:
        members[mine[0]] = copy.deepcopy(entry.value)
        place[last] = [one for n, one in enumerate(members) if n not in mine[1:]]
    return after


def _taken(entry: Entry, whole: Mapping[str, Any]) -> dict[str, Any]:
    after = copy.deepcopy(dict(whole))
    if entry.given:
        return after
    places = [after]
    for key in entry.keys[:-1]:
        inner = places[-1].get(key)
        if not isinstance(inner, dict):
            return after
        places.append(inner)
    last = entry.keys[-1]
    if entry.member_of is None:
        if places[-1].pop(last, None) is None:
            return after
    else:
        members = places[-1].get(last)
        if not isinstance(members, list) or not any(_is_mine(entry, one) for one in members):
            return after
        places[-1][last] = [one for one in members if not _is_mine(entry, one)]
        if not places[-1][last]:
            del places[-1][last]
    for place, key in zip(reversed(places[:-1]), reversed(entry.keys[:-1]), strict=True):
        if not place[key]:
            del place[key]
    return after


def _is_mine(entry: Entry, member: object) -> bool:
    return entry.member_of is not None and entry.member_of in json.dumps(member)


def _json_like(
    entry: Entry, before: Mapping[str, Any], after: Mapping[str, Any], content: bytes
) -> bytes:
    """JSON in the manner of what was there: indentation, the line at the end, a byte order mark.

    Where it has comments, only what changes is written.
    """
    text = content.decode("utf-8-sig")
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    if not _is_plain(text):
        made = _changed(entry, before, after, text)
        if jsonc.tree(made).value != after:
            reason = "its format cannot be edited automatically, and it was not changed"
            raise InvalidInput(str(entry.path), None, reason)
        return mark + made.encode()
    found = re.search(r"^[{\[]\r?\n([ \t]+)", text)
    indent = found[1] if found else (None if text.strip() not in {"", "{}"} else "  ")
    made = json.dumps(after, indent=indent, ensure_ascii="\\u" in text)
    if text.endswith("\n") or not text:
        made += "\n"
    if "\r\n" in text:
        made = made.replace("\n", "\r\n")
    return mark + made.encode()


def _changed(entry: Entry, before: Mapping[str, Any], after: Mapping[str, Any], text: str) -> str:
    """The text with the entry put in, or taken out, where it stands or should stand."""
    keys = entry.keys
    old, new = _under(before, keys), _under(after, keys)
    if new is None:
        # Places that are empty because of it go with it.
        while len(keys) > 1 and _under(after, keys[:-1]) is None:
            keys = keys[:-1]
        return jsonc.take(text, keys)
    if not isinstance(old, list) or not isinstance(new, list):
        return jsonc.put(text, keys, new)
    mine = [n for n, one in enumerate(old) if _is_mine(entry, one)]
    for n in reversed(mine):
        text = jsonc.take(text, keys, n)
    return jsonc.append(text, keys, entry.value) if len(new) > len(old) - len(mine) else text


def _under(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _table(entry: Entry) -> str:
    lines = [f"[{'.'.join(entry.keys)}]"]
    for key, value in entry.value.items():
        # A JSON string or list of strings is also one of TOML.
        lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _with_table(entry: Entry, text: str) -> str:
    rest = _without_table(entry, text)
    if rest and not rest.endswith("\n"):
        rest += "\n"
    return rest + ("\n" if rest else "") + _table(entry)


def _without_table(entry: Entry, text: str) -> str:
    name = r"\s*\.\s*".join(f'"?{re.escape(key)}"?' for key in entry.keys)
    # The table and tables within it, up to the next table of somebody else.
    mine = rf"^[ \t]*\[\s*{name}\s*(?:\.[^\]\n]*)?\][^\n]*(?:\n(?![ \t]*\[)[^\n]*)*\n?"
    rest = re.sub(rf"(?m){mine}", "", text)
    return rest if rest == text else rest.rstrip("\n") + ("\n" if rest.strip() else "")


BACKUP = ".before-anaphora"
"""What the name of the copy from before ends in."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file: its bytes now (None: it is not there) and its bytes then (None: it goes).

    `refused` says why a file is left as it is, and `by_hand` what then belongs in it (or, where a
    setup is undone, comes out of it).
    """

    path: Path
    before: bytes | None
    after: bytes | None
    undoes: bool = False
    refused: str = ""
    by_hand: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the file is as it should be."""
        return self.before == self.after

    def shown(self) -> str:
        """The change as a unified diff; "" where there is none."""
        if self.nothing:
            return ""
        before, after = (
            (side or b"").decode("utf-8-sig", "replace").splitlines()
            for side in (self.before, self.after)
        )
        lines = difflib.unified_diff(
            before,
            after,
            fromfile=str(self.path) if self.before is not None else "/dev/null",
            tofile=str(self.path) if self.after is not None else "/dev/null",
            lineterm="",
        )
        return "\n".join(lines)

    def make(self) -> None:
        """Do it. `InvalidInput` for a refused one, or when somebody wrote the file meanwhile;
        `StoreError` otherwise."""
        if self.refused:
            raise InvalidInput(str(self.path), None, self.refused)
        if self.nothing:
            return
        backup = _backup(self.path)
        try:
            # A file of settings that is a link into somebody's dotfiles stays one.
            real = self.path.resolve()
            make_directory(real.parent)
            seen = _identity(real)
            if _content(real) != self.before:
                raise FileChanged
            if self.before is not None and not self.undoes and not backup.exists():
                _write(backup, NO_FILE, self.before)
            if self.after is None:
                real.unlink()
            else:
                _write(real, seen, self.after)
            if self.undoes:
                backup.unlink(missing_ok=True)
                _drop_empty(real.parent)
        except FileChanged as error:
            raise InvalidInput(str(self.path), None, "it changed meanwhile; try again") from error
        except OSError as error:
            raise translate(error, "write", self.path) from error


def plan(entries: Iterable[Entry]) -> tuple[Change, ...]:
    """What putting the entries in would change, one change a file. One refused stops no other."""
    return tuple(_planned(path, mine, undo=False) for path, mine in _by_file(entries).items())


def plan_undo(entries: Sequence[Entry]) -> tuple[Change, ...]:
    """What taking the entries out would change, in the files that are there."""
    found = (_planned(path, mine, undo=True) for path, mine in _by_file(entries).items())
    return tuple(change for change in found if change.before is not None)


def _by_file(entries: Iterable[Entry]) -> dict[Path, list[Entry]]:
    found: dict[Path, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.path, []).append(entry)
    return found


def _planned(path: Path, mine: Sequence[Entry], *, undo: bool) -> Change:
    before = _content(path)
    after: bytes | None = before or b""
    try:
        for entry in mine:
            after = (without_entry if undo else with_entry)(entry, after or b"")
        after = _as_it_was(path, mine, after or b"") if undo else after
    except InvalidInput as error:
        return Change(path, before, before, undo, refused=error.reason, by_hand=snippet(mine))
    return Change(path, before, after, undo)


def _as_it_was(path: Path, entries: Sequence[Entry], after: bytes) -> bytes | None:
    """The very bytes from before, where what is left says the same; no file where none was."""
    form = entries[0].form
    backup = _content(_backup(path))
    if form == TEXT:
        # What was there may be the skill of an earlier version.
        return after or (None if backup is None or _is_skill(backup) else backup)
    left = read_document(form, path, after)
    if backup is None:
        given = {one.keys[0] for one in entries if one.given}
        return after if left.keys() - given else None
    # What was there, as it is after putting in and taking out: empty places go with the entry.
    round_trip = backup
    for change in (with_entry, without_entry):
        for entry in entries:
            round_trip = change(entry, round_trip)
    return backup if read_document(form, path, round_trip) == left else after


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translate(error, "read", path) from error


def _is_skill(content: bytes) -> bool:
    return f"name: {SKILL}\n".encode() in content


def _drop_empty(folder: Path) -> None:
    """Take away the folder of the skill, which nothing else is in; any other stays."""
    if folder.name == SKILL and not any(folder.iterdir()):
        folder.rmdir()


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _identity(path: Path) -> Identity:
    return identity_of(path.stat()) if path.exists() else NO_FILE


def _write(path: Path, seen: Identity, content: bytes) -> None:
    def fill(file: BinaryIO) -> None:
        file.write(content)

    replace_file(path, "anaphora", seen, fill)
