"""Adds an entry to a client's file or removes it, as changes that are shown, made and undone.

JSON keeps its indentation, the order of its members and its comments; TOML keeps every byte except
Anaphora's own table. A file that cannot be changed without losing something of the user's (an
inline table) is still read, so that existing entries are recognised, but changing it is refused;
then `snippet` has what to add by hand.

A file is replaced as a whole, after checking that it was not written meanwhile. Its previous bytes
are stored beside it until the change is undone, so that undoing restores them exactly unless the
file was edited since.
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
from anaphora.features.coding_agents.setup import jsonc
from anaphora.features.coding_agents.setup.clients import SKILL, SettingsEntry
from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    identity_of,
    make_directory,
    replace_file,
    translate,
)

TEXT: Final = "text"


def read_document(form: str, path: Path, content: bytes) -> dict[str, Any]:
    """The value of a whole file; {} for an empty one. `InvalidInput` if it cannot be parsed."""
    try:
        text = content.decode("utf-8-sig")
        if form == "toml":
            document: object = tomllib.loads(text)
        else:
            document = json.loads(text or "{}") if _is_plain(text) else jsonc.tree(text).value
    except ValueError as error:
        raise InvalidInput(
            str(path), None, f"it is not plain {form.upper()} and was not changed: {error}"
        ) from error
    if not isinstance(document, dict):
        raise InvalidInput(str(path), None, "the top level is not an object; it was not changed")
    return document


def with_entry(entry: SettingsEntry, content: bytes) -> bytes:
    """The file with the entry; the same bytes if it is there already."""
    if entry.form == TEXT:
        return str(entry.value).encode()
    return _edited(entry, content, _put, _with_table)


def without_entry(entry: SettingsEntry, content: bytes) -> bytes:
    """The file without the entry, and without containers that become empty.

    A text is removed only if it is the skill, of any version, by the name in it.
    """
    if entry.form == TEXT:
        return b"" if _is_skill(content) else content
    return _edited(entry, content, _taken, _without_table)


def _edited(
    entry: SettingsEntry,
    content: bytes,
    change: Callable[[SettingsEntry, Mapping[str, Any]], dict[str, Any]],
    change_table: Callable[[SettingsEntry, str], str],
) -> bytes:
    document_before = read_document(entry.form, entry.path, content)
    document_after = change(entry, document_before)
    if document_after == document_before:
        return content
    if entry.form == "json":
        return _json_like(entry, document_before, document_after, content)
    edited_text = change_table(entry, content.decode())
    try:
        parsed_document = tomllib.loads(edited_text)
    except tomllib.TOMLDecodeError:
        parsed_document = {}
    if parsed_document != document_after:
        reason = "its format cannot be edited automatically, and it was not changed"
        raise InvalidInput(str(entry.path), None, reason)
    return edited_text.encode()


def snippet(entries: Sequence[SettingsEntry]) -> str:
    """All entries of one file in its form, for adding them by hand."""
    if entries[0].form == TEXT:
        return str(entries[0].value)
    if entries[0].form == "toml":
        return "\n".join(map(_table, entries))
    document: dict[str, Any] = {}
    for entry in entries:
        document = _put(entry, document)
    return json.dumps(document, indent=2, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def _put(entry: SettingsEntry, whole: Mapping[str, Any]) -> dict[str, Any]:
    document_after = copy.deepcopy(dict(whole))
    parent = document_after
    for key in entry.keys[:-1]:
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            raise InvalidInput(
                str(entry.path), parent, f"{key} is not an object; it was not changed"
            )
    last_key = entry.keys[-1]
    if entry.member_of is None:
        if not (entry.given and last_key in parent):
            parent[last_key] = copy.deepcopy(entry.value)
        return document_after
    members = parent.setdefault(last_key, [])
    if not isinstance(members, list):
        raise InvalidInput(
            str(entry.path), members, f"{last_key} is not a list; it was not changed"
        )
    own_indexes = [n for n, member in enumerate(members) if _is_mine(entry, member)]
    if not own_indexes:
        members.append(copy.deepcopy(entry.value))
    else:
        members[own_indexes[0]] = copy.deepcopy(entry.value)
        parent[last_key] = [member for n, member in enumerate(members) if n not in own_indexes[1:]]
    return document_after


def _taken(entry: SettingsEntry, whole: Mapping[str, Any]) -> dict[str, Any]:
    document_after = copy.deepcopy(dict(whole))
    if entry.given:
        return document_after
    parents = [document_after]
    for key in entry.keys[:-1]:
        inner_table = parents[-1].get(key)
        if not isinstance(inner_table, dict):
            return document_after
        parents.append(inner_table)
    last_key = entry.keys[-1]
    if entry.member_of is None:
        if parents[-1].pop(last_key, None) is None:
            return document_after
    else:
        members = parents[-1].get(last_key)
        if not isinstance(members, list) or not any(_is_mine(entry, member) for member in members):
            return document_after
        parents[-1][last_key] = [member for member in members if not _is_mine(entry, member)]
        if not parents[-1][last_key]:
            del parents[-1][last_key]
    for parent, key in zip(reversed(parents[:-1]), reversed(entry.keys[:-1]), strict=True):
        if not parent[key]:
            del parent[key]
    return document_after


def _is_mine(entry: SettingsEntry, member: object) -> bool:
    return entry.member_of is not None and entry.member_of in json.dumps(member)


def _json_like(
    entry: SettingsEntry, before: Mapping[str, Any], after: Mapping[str, Any], content: bytes
) -> bytes:
    """JSON in the style of the original: indentation, final newline, byte order mark.

    If it has comments, the entry is added or removed at its own position, without other changes.
    """
    text = content.decode("utf-8-sig")
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    if not _is_plain(text):
        keys, edited_text = entry.keys, text
        old_part, new_part = _under(before, keys), _under(after, keys)
        if new_part is None:
            # Containers that become empty are removed with it.
            while len(keys) > 1 and _under(after, keys[:-1]) is None:
                keys = keys[:-1]
            edited_text = jsonc.take(text, keys)
        elif not isinstance(old_part, list) or not isinstance(new_part, list):
            edited_text = jsonc.put(text, keys, new_part)
        else:
            own_indexes = [n for n, member in enumerate(old_part) if _is_mine(entry, member)]
            for n in reversed(own_indexes):
                edited_text = jsonc.take(edited_text, keys, n)
            if len(new_part) > len(old_part) - len(own_indexes):
                edited_text = jsonc.append(edited_text, keys, entry.value)
        if jsonc.tree(edited_text).value != after:
            reason = "its format cannot be edited automatically, and it was not changed"
            raise InvalidInput(str(entry.path), None, reason)
        return mark + edited_text.encode()
    match = re.search(r"^[{\[]\r?\n([ \t]+)", text)
    indent = match[1] if match else (None if text.strip() not in {"", "{}"} else "  ")
    edited_text = json.dumps(after, indent=indent, ensure_ascii="\\u" in text)
    if text.endswith("\n") or not text:
        edited_text += "\n"
    if "\r\n" in text:
        edited_text = edited_text.replace("\n", "\r\n")
    return mark + edited_text.encode()


def _under(inner: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        inner = inner.get(key) if isinstance(inner, Mapping) else None
    return inner


def _table(entry: SettingsEntry) -> str:
    lines = [f"[{'.'.join(entry.keys)}]"]
    for key, content in entry.value.items():
        # A JSON string or list of strings is also valid TOML.
        lines.append(f"{key} = {json.dumps(content, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _with_table(entry: SettingsEntry, text: str) -> str:
    remainder = _without_table(entry, text)
    if remainder and not remainder.endswith("\n"):
        remainder += "\n"
    return remainder + ("\n" if remainder else "") + _table(entry)


def _without_table(entry: SettingsEntry, text: str) -> str:
    name = r"\s*\.\s*".join(f'"?{re.escape(key)}"?' for key in entry.keys)
    # The table and its subtables, up to the next foreign table.
    pattern = rf"^[ \t]*\[\s*{name}\s*(?:\.[^\]\n]*)?\][^\n]*(?:\n(?![ \t]*\[)[^\n]*)*\n?"
    remainder = re.sub(rf"(?m){pattern}", "", text)
    return (
        remainder
        if remainder == text
        else remainder.rstrip("\n") + ("\n" if remainder.strip() else "")
    )


BACKUP = ".before-anaphora"
"""The suffix of the copy of the original file."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file with its bytes before (None: it does not exist) and after (None: it is deleted).

    `refused` says why a file stays unchanged, and `by_hand` what to add to it then (or, when a
    setup is undone, to remove).
    """

    path: Path
    before: bytes | None
    after: bytes | None
    undoes: bool = False
    refused: str = ""
    by_hand: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the file needs no change."""
        return self.before == self.after

    def shown(self) -> str:
        """The change as a unified diff; "" if there is none."""
        if self.nothing:
            return ""
        text_before, text_after = (
            (side or b"").decode("utf-8-sig", "replace").splitlines()
            for side in (self.before, self.after)
        )
        lines = difflib.unified_diff(
            text_before,
            text_after,
            fromfile=str(self.path) if self.before is not None else "/dev/null",
            tofile=str(self.path) if self.after is not None else "/dev/null",
            lineterm="",
        )
        return "\n".join(lines)

    def make(self) -> None:
        """Write the change. `InvalidInput` if it is refused, or if the file changed meanwhile;
        `StoreError` otherwise."""
        if self.refused:
            raise InvalidInput(str(self.path), None, self.refused)
        if self.nothing:
            return
        backup = _backup(self.path)
        try:
            # A settings file that is a link, as into a dotfiles folder, stays one.
            real = self.path.resolve()
            make_directory(real.parent)
            identity = identity_of(real.stat()) if real.exists() else NO_FILE
            if _content(real) != self.before:
                raise FileChanged
            if self.before is not None and not self.undoes and not backup.exists():
                _write(backup, NO_FILE, self.before)
            if self.after is None:
                real.unlink()
            else:
                _write(real, identity, self.after)
            if self.undoes:
                backup.unlink(missing_ok=True)
                # Only the folder of the skill is ours to remove.
                if real.parent.name == SKILL and not any(real.parent.iterdir()):
                    real.parent.rmdir()
        except FileChanged as error:
            raise InvalidInput(str(self.path), None, "it changed meanwhile; try again") from error
        except OSError as error:
            raise translate(error, "write", self.path) from error


def plan(entries: Iterable[SettingsEntry]) -> tuple[FileChange, ...]:
    """The changes that add the entries, one per file. A refused one does not stop the others."""
    return tuple(
        _planned(path, entries_, undo=False) for path, entries_ in _by_file(entries).items()
    )


def plan_undo(entries: Sequence[SettingsEntry]) -> tuple[FileChange, ...]:
    """The changes that remove the entries from the files that exist."""
    changes = (_planned(path, entries_, undo=True) for path, entries_ in _by_file(entries).items())
    return tuple(change for change in changes if change.before is not None)


def _by_file(entries: Iterable[SettingsEntry]) -> dict[Path, list[SettingsEntry]]:
    entries_by_path: dict[Path, list[SettingsEntry]] = {}
    for entry in entries:
        entries_by_path.setdefault(entry.path, []).append(entry)
    return entries_by_path


def _planned(path: Path, mine: Sequence[SettingsEntry], *, undo: bool) -> FileChange:
    content_before = _content(path)
    content_after: bytes | None = content_before or b""
    try:
        for entry in mine:
            content_after = (without_entry if undo else with_entry)(entry, content_after or b"")
        content_after = _as_it_was(path, mine, content_after or b"") if undo else content_after
    except InvalidInput as error:
        return FileChange(
            path, content_before, content_before, undo, refused=error.reason, by_hand=snippet(mine)
        )
    return FileChange(path, content_before, content_after, undo)


def _as_it_was(path: Path, entries: Sequence[SettingsEntry], after: bytes) -> bytes | None:
    """The original bytes if the rest is unchanged; None if there was no file."""
    form = entries[0].form
    backup = _content(_backup(path))
    if form == TEXT:
        # The backup may be the skill of an earlier version.
        return after or (None if backup is None or _is_skill(backup) else backup)
    remaining = read_document(form, path, after)
    if backup is None:
        presets = {preset.keys[0] for preset in entries if preset.given}
        return after if remaining.keys() - presets else None
    # The original after adding and removing the entry: empty containers are removed with it.
    round_trip = backup
    for change in (with_entry, without_entry):
        for entry in entries:
            round_trip = change(entry, round_trip)
    return backup if read_document(form, path, round_trip) == remaining else after


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translate(error, "read", path) from error


def _is_skill(content: bytes) -> bool:
    return f"name: {SKILL}\n".encode() in content


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _write(path: Path, seen: Identity, content: bytes) -> None:
    def fill(file: BinaryIO) -> None:
        file.write(content)

    replace_file(path, "anaphora", seen, fill)
