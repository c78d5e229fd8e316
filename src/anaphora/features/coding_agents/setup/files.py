"""Adds our entries to a client's files or removes them, as changes that are shown first.

Every edit touches only the bytes of our own entry, whatever the form of the file. A file that
cannot be changed like that (TOML with an inline table) is still read, but changing it is refused;
then `by_hand` has what to add.

A file is replaced as a whole, after checking that it was not written meanwhile. Beside it are kept,
until the change is undone, its previous bytes and a record of what was written. Undoing restores
those bytes if nothing but our entries has been changed since; otherwise it takes out our entries
only.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

from anaphora.errors import InvalidInput
from anaphora.features.coding_agents.setup import jsonc, toml
from anaphora.features.coding_agents.setup.clients import SKILL, SettingsEntry
from anaphora.features.coding_agents.setup.ours import (
    COPY,
    RECORD,
    SetupRecord,
    digest_of,
    is_skill,
    own_hooks,
    own_server,
    sibling,
)
from anaphora.store.disk import FileChanged, identity_at, make_directory, replace_file, translate
from anaphora.surfaces.wire import counted

TEXT: Final = "text"
_MARK: Final = "\ufeff".encode()


def read_document(form: str, path: Path, content: bytes) -> dict[str, Any]:
    """The value of a whole file; {} for an empty one. `InvalidInput` if it cannot be parsed."""
    try:
        document: object = _FORMS[form].read(content.decode("utf-8-sig"))
    except ValueError as error:
        raise InvalidInput(
            str(path), None, f"it is not plain {form.upper()} and was not changed: {error}"
        ) from error
    if not isinstance(document, dict):
        raise InvalidInput(str(path), None, "the top level is not an object; it was not changed")
    return document


_FORMS: Final[dict[str, Any]] = {"json": jsonc, "toml": toml}


@dataclass(frozen=True, slots=True)
class _ClientFile:
    """A client's file, as a text, and what is known of it.

    `original` is the value of the file before we came. Every change gives a new one.
    """

    path: Path
    form: str
    text: str
    mark: bool
    record: SetupRecord | None
    original: dict[str, Any]

    @property
    def content(self) -> bytes:
        """The bytes of the file; with a byte order mark if it had one."""
        return _MARK * self.mark + self.text.encode()

    def at(self, path: Sequence[str | int]) -> Any:
        """The value at a path; None where there is none."""
        return _at(_FORMS[self.form].read(self.text), path)

    def is_like(self, other: _ClientFile) -> bool:
        """Whether both say the same, with the same comments; space does not count."""
        texts = [
            re.sub(r"[\s,]+|\A\s*\{\s*\}\s*\Z", "", settings.text) for settings in (self, other)
        ]
        return texts[0] == texts[1] and self.at(()) == other.at(())

    def _edited(self, change: str, *arguments: Any) -> _ClientFile:
        try:
            text = getattr(_FORMS[self.form], change)(self.text, *arguments)
        except ValueError as error:
            raise InvalidInput(str(self.path), None, f"{error}; it was not changed") from error
        return replace(self, text=text)

    def put(self, path: Sequence[str | int], value: Any) -> _ClientFile:
        """With this value at a path."""
        return self._edited("put", path, value)

    def take(self, path: Sequence[str | int]) -> _ClientFile:
        """Without what is at `path`, and without containers that are empty then and not the
        user's."""
        remaining = self._edited("take", path)
        for end in range(len(path) - 1, 0, -1):
            above, current_value = path[:end], remaining.at(path[:end])
            if above[-1] == "hooks" and end > 1:
                # The list of a group goes with the group, if nothing else is in that.
                continue
            is_group = isinstance(above[-1], int)
            is_users = not is_group and _at(self.original, above) is not None
            if is_users or current_value not in ([{"hooks": []}] if is_group else [{}, []]):
                break
            remaining = remaining._edited("take", above)
        return remaining

    def with_entry(self, entry: SettingsEntry) -> _ClientFile:
        """With the entry; unchanged if it is there already."""
        current_value = self.at(entry.keys)
        if entry.hook:
            return self._with_hook(entry, current_value)
        if entry.given:
            return self if current_value is not None else self.put(entry.keys, entry.value)
        own_words = own_server(current_value)
        if own_words is None:
            return self if current_value == entry.value else self.put(entry.keys, entry.value)
        # What a user added to it stays: variables, further arguments.
        settings, (words, more) = self, own_words
        if words != [entry.value["command"], *entry.value["args"]]:
            settings = settings.put([*entry.keys, "command"], entry.value["command"])
            settings = settings.put([*entry.keys, "args"], [*entry.value["args"], *more])
        return settings

    def _with_hook(self, entry: SettingsEntry, members: Any) -> _ClientFile:
        line = _hook_in(entry.value)["command"]
        hook_paths = own_hooks(members, entry.hook, self.record)
        if not hook_paths and members is None:
            return self.put(entry.keys, [entry.value])
        if not hook_paths:
            return self._edited("append", entry.keys, entry.value)
        settings = self
        for hook_path in hook_paths:
            if _at(members, [*hook_path, "command"]) != line:
                settings = settings.put([*entry.keys, *hook_path, "command"], line)
        return settings

    def without_entry(self, entry: SettingsEntry) -> _ClientFile:
        """Without our entry; with what a user had in its place."""
        current_value = self.at(entry.keys)
        if entry.hook:
            settings = self
            for hook_path in reversed(own_hooks(current_value, entry.hook, self.record)):
                settings = settings.take([*entry.keys, *hook_path])
            return settings
        if entry.given or own_server(current_value) is None:
            return self
        users_server = _at(self.original, entry.keys)
        return self.take(entry.keys) if users_server is None else self.put(entry.keys, users_server)


def _at(inner: Any, path: Sequence[str | int]) -> Any:
    """The value at a path; None where there is none."""
    for key in path:
        try:
            inner = inner[key]
        except (LookupError, TypeError):
            return None
    return inner


def _hook_in(value: Any) -> Any:
    """The hook of an entry, which may be in a group."""
    return value["hooks"][0] if "hooks" in value else value


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file with its bytes before (None: it does not exist) and after (None: it is deleted).

    `told` says in words what changes. `refused` says why a file stays unchanged, and `by_hand` what
    to add to it then (or, when a setup is undone, to remove). `record` is the new record of what we
    wrote, or when undone that of the setup; `copied` says that `before` is to be kept.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    undoes: bool = False
    told: str = ""
    refused: str = ""
    by_hand: str = ""
    record: SetupRecord | None = None
    copied: bool = False

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
        try:
            # A settings file that is a link, as into a dotfiles folder, stays one.
            real = self.path.resolve()
            identity = identity_at(real)
            if _content(real) != self.before:
                raise FileChanged
            make_directory(real.parent)
            # The original and what is written are kept before it is written.
            kept = {COPY: self.before if self.copied else None}
            kept[RECORD] = self.record.shown() if self.record else None
            for suffix, content in kept.items():
                if content is not None and not self.undoes:
                    beside = sibling(self.path, suffix)
                    replace_file(beside, "anaphora", identity_at(beside), content)
            if self.after is None:
                real.unlink()
            else:
                replace_file(real, "anaphora", identity, self.after)
            if self.undoes:
                self._tidy(real)
        except FileChanged as error:
            raise InvalidInput(str(self.path), None, "it changed meanwhile; try again") from error
        except OSError as error:
            raise translate(error, "write", self.path) from error

    def _tidy(self, real: Path) -> None:
        """Remove what was kept for undoing, and the folders that we made, where they are empty."""
        sibling(self.path, RECORD).unlink(missing_ok=True)
        if self.record or self.after is None or self.after == _content(sibling(self.path, COPY)):
            sibling(self.path, COPY).unlink(missing_ok=True)
        folders = [Path(folder) for folder in self.record.folders] if self.record else []
        for folder in folders or [real.parent] * (real.parent.name == SKILL):
            with suppress(OSError):
                folder.rmdir()


def plan(entries: Iterable[SettingsEntry]) -> tuple[FileChange, ...]:
    """The changes that add the entries, one per file. A refused one does not stop the others."""
    return tuple(_planned(path, mine, undoes=False) for path, mine in _by_file(entries).items())


def plan_undo(entries: Sequence[SettingsEntry]) -> tuple[FileChange, ...]:
    """The changes that remove the entries from the files that exist, the last file first."""
    files = reversed(_by_file(entries).items())
    changes = (_planned(path, mine, undoes=True) for path, mine in files)
    return tuple(change for change in changes if change.before is not None)


def _by_file(entries: Iterable[SettingsEntry]) -> dict[Path, list[SettingsEntry]]:
    entries_by_path: dict[Path, list[SettingsEntry]] = {}
    for entry in entries:
        entries_by_path.setdefault(entry.path, []).append(entry)
    return entries_by_path


def _planned(path: Path, mine: Sequence[SettingsEntry], *, undoes: bool) -> FileChange:
    now, record = _content(path), SetupRecord.beside(path)
    is_text = mine[0].form == TEXT
    try:
        if undoes:
            after = (_text_undone if is_text else _undone)(path, mine, now, record)
            summary = "takes out what setup added"
            if after is None:
                summary = "deleted, as setup made it"
            elif after == _original(path, record):
                summary = "as it was before setup"
            return FileChange(path, now, after, True, summary, record=record)
        return (_text_added if is_text else _added)(path, mine, now, record)
    except InvalidInput as error:
        by_hand = str(mine[0].value) if is_text else _with(_settings(mine[0], b"", None), mine).text
        return FileChange(path, now, now, undoes, refused=error.reason, by_hand=by_hand)


def _added(
    path: Path, mine: Sequence[SettingsEntry], now: bytes | None, record: SetupRecord | None
) -> FileChange:
    settings = _settings(mine[0], now or b"", record)
    # Where nothing of ours is in it, what an earlier setup has left beside it is stale.
    is_new = _without(settings, mine).text == settings.text
    servers = [entry for entry in mine if not entry.hook and not entry.given]
    replaced = [entry for entry in servers if is_new and settings.at(entry.keys) is not None]
    hooks = [entry for entry in mine if entry.hook]
    lines = {_hook_in(entry.value)["command"] for entry in hooks}
    parts = ["the memory server"] * bool(servers)
    parts += [f"hooks for {counted(len(hooks), 'event')}"] * bool(hooks)
    note = "; your own server of that name is replaced until you undo it" if replaced else ""
    return _noted(
        FileChange(path, now, _with(settings, mine).content),
        " and ".join(parts) + note,
        None if is_new else record or SetupRecord(made=_content(sibling(path, COPY)) is None),
        commands=lines,
    )


def _text_added(
    path: Path, mine: Sequence[SettingsEntry], now: bytes | None, record: SetupRecord | None
) -> FileChange:
    after = str(mine[0].value).encode()
    if now is None or is_skill(now, record):
        earlier_record = None if now is None else record or SetupRecord(made=True)
        return _noted(
            FileChange(path, now, after), "the skill", earlier_record, digest=digest_of(after)
        )
    if record is not None:
        # The user has rewritten it since.
        return FileChange(path, now, now)
    note = "the skill; your own file of that name is replaced until you undo it"
    return _noted(FileChange(path, now, after), note, None, digest=digest_of(after))


def _noted(
    change: FileChange,
    what: str,
    known: SetupRecord | None,
    commands: Iterable[str] = (),
    digest: str = "",
) -> FileChange:
    """The change with its words and its record; `known` is that of an earlier setup."""
    if known is not None:
        lines = tuple(sorted({*known.commands, *commands}))
        record = replace(known, commands=lines, digest=digest)
        return replace(change, told=f"renews {what}", record=record)
    above = [change.path.resolve().parent]
    while not above[-1].exists():
        above.append(above[-1].parent)
    is_new_file = change.before is None
    record = SetupRecord(tuple(sorted(commands)), digest, is_new_file, tuple(map(str, above[:-1])))
    verb = "a new file, with" if is_new_file else "adds"
    return replace(change, told=f"{verb} {what}", record=record, copied=not is_new_file)


def _undone(
    path: Path, mine: Sequence[SettingsEntry], now: bytes | None, record: SetupRecord | None
) -> bytes | None:
    """The original bytes if all but our entries is as it was; None if there was no file."""
    if now is None:
        return None
    settings = _settings(mine[0], now, record)
    remaining = _without(settings, mine)
    if remaining.text == settings.text:
        return now
    copy = _original(path, record)
    if copy is not None or record is None or record.made:
        # What is left of the original if the entries are added and taken out again.
        with suppress(InvalidInput):
            round_trip = _without(_with(_settings(mine[0], copy or b"", record), mine), mine)
            if remaining.is_like(round_trip):
                return copy
    return remaining.content


def _text_undone(
    path: Path, mine: Sequence[SettingsEntry], now: bytes | None, record: SetupRecord | None
) -> bytes | None:
    """The original text if it is our skill; the copy may be that of an earlier version."""
    copy = _original(path, record)
    return (None if is_skill(copy, None) else copy) if is_skill(now, record) else now


def _settings(entry: SettingsEntry, content: bytes, record: SetupRecord | None) -> _ClientFile:
    original: dict[str, Any] = {}
    with suppress(InvalidInput):
        copy = _original(entry.path, record) or b""
        original = read_document(entry.form, entry.path, copy)
    read_document(entry.form, entry.path, content)
    mark = content.startswith(_MARK)
    text = content.decode("utf-8-sig")
    return _ClientFile(entry.path, entry.form, text, mark, record, original)


def _with(settings: _ClientFile, mine: Sequence[SettingsEntry]) -> _ClientFile:
    return reduce(_ClientFile.with_entry, mine, settings)


def _without(settings: _ClientFile, mine: Sequence[SettingsEntry]) -> _ClientFile:
    return reduce(_ClientFile.without_entry, mine, settings)


def _original(path: Path, record: SetupRecord | None) -> bytes | None:
    """The file before we came; None if we made it: a copy is that of an earlier setup then."""
    return None if record is not None and record.made else _content(sibling(path, COPY))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translate(error, "read", path) from error
