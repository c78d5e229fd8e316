"""Files to import out of what a user names: a file, a directory (walked, sorted), or a zip file.

In a directory or zip file hidden names, what is known to lie beside exports, and files whose names
tell that they have no text are passed over and counted. Of other names than exports have, only what
begins as they do is read for chats (`tentative`). A folder of notes (one with `.obsidian`, or with
more Markdown than other documents, and no exports) is walked as a project is: no links, no keys and
passwords, nothing that it ignores; elsewhere Markdown is no note. A zip file is opened once, for as
long as its members are given; what it would become is bounded before anything of it is unpacked.
What cannot be opened is an `ImportProblem`.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Set
from pathlib import Path, PurePosixPath
from typing import Final

from anaphora.features.importing.formats import aider, basic_memory, markdown
from anaphora.features.importing.formats.base import ImportFile
from anaphora.features.importing.formats.packed import split_name
from anaphora.features.importing.formats.passing import (
    COMPANION,
    HIDDEN,
    LINK,
    PACKED,
    PROGRAM,
    UNREAD,
    PassedOver,
    is_written,
    kind_of_name,
)
from anaphora.features.importing.formats.vault import (
    IGNORED,
    MOST_SETTINGS,
    NO_NOTE,
    SETTINGS,
    TEMPLATE,
    VaultRules,
    templates_of,
)
from anaphora.features.importing.values import ImportedElse, ImportedWhole
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.files.walking import (
    ALWAYS_IGNORED,
    FoundFolder,
    is_secret_file,
    walk,
)
from anaphora.language.word_lists import by_word, words
from anaphora.store.db.driver import dbapi2
from anaphora.store.disk import open_regular
from anaphora.values.conversations import ImportProblem
from anaphora.values.files import Skipped

# What reading a file or a member of a damaged zip file raises, or one that asks for too much.
UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    zlib.error,
    struct.error,
    MemoryError,
    dbapi2.Error,
)
# Of the other kinds the library unpacks a whole block at once, however large it becomes.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_JSON = (".json", ".jsonl", ".ndjson")
_ENDINGS = (*_JSON, ".zip", ".db", ".sqlite", ".sqlite3", ".vscdb", ".af")
# Names of exports with endings that tell nothing: those of Google Takeout.
_NAMES = re.compile(r"(?:my ?activity.*\.html|conversation_\d+\.txt)")
# Files that lie beside a known export and are no part of it.
_BESIDE = {
    "claude-mem.db": words("settings.json"),
    "chatSessions": words("workspace.json state.vscdb.backup"),
}
_WITHIN_NONE = ALWAYS_IGNORED | words(
    "chatEditingSessions file-history paste-cache shell-snapshots statsig tool-results"
)
_NOTES = (markdown.FORMAT.name, basic_memory.FORMAT.name)
_OFFICE: Final = words("[Content_Types].xml mimetype META-INF/MANIFEST.MF META-INF/container.xml")
"""Members of zip files that are documents or programs themselves."""
# A folder of one of these names is distinguished by the folder that it lies in.
_COMMON = words("content docs documents knowledge memory memories notes obsidian vault wiki")
_REFUSED = by_word(
    {
        "it is too large": "too_large",
        "it is no regular file": "not_a_file",
        "it cannot be read": "unreadable gone",
        "its name is no text": "odd_name",
        "it lies too many folders deep: what is in it is not read": "too_deep",
    }
)
_PASSED: Final = by_word(
    {LINK: "link link_outside link_cycle broken_link", UNREAD: "secret secret_name"}
)
_DEEPEST: Final = 200
"""Folders within folders that are looked into: Python's own walk ends in an error at a thousand."""
_Found = ImportFile | ImportProblem | ImportedWhole | ImportedElse
_COMPANIONS = words(
    "user.json users.json user_settings.json projects.json memories.json message_feedback.json "
    "model_comparisons.json shared_conversations.json shopping.json sora.json group_chats.json "
    "export_manifest.json conversation_asset_file_names.json chat.html"
)
_CONVERSATIONS = "conversations"


def is_zip(path: Path) -> bool:
    """Whether a file is to be opened as a zip file. An unreadable file, or a document, is not."""
    if path.suffix.lower() == ".zip":
        return True
    try:
        with open_regular(path) as file:
            return zipfile.is_zipfile(file) and not _OFFICE & {*zipfile.ZipFile(file).namelist()}
    except (*UNREADABLE, UnicodeDecodeError):
        return False


def find(
    path: Path,
    bounds: Bounds = BOUNDS,
    format: str | None = None,  # noqa: A002 - users' word
    name: str = "",
    passed: PassedOver | None = None,
) -> Generator[_Found, None, None]:
    """The files under an existing path. Each can be read until the next one is requested.

    What is no file says what was left out, or which notes a folder has. With the `format` of notes
    a folder is one of notes, whatever else is in it. `name` is that of a file that lies elsewhere
    than where it came from. `passed` counts what is passed over.
    """
    passed = passed or PassedOver(path)
    if path.is_dir():
        if format in _NOTES or (format is None and _is_notes(_list_names(path))):
            yield from _walk_notes(path, bounds, passed, takes_others=format is None)
        else:
            yield from _walk(path, bounds, passed)
    elif is_zip(path):
        yield from _walk_members(path, bounds, passed, format, name)
    elif format in _NOTES and is_secret_file(name or path.name):
        passed.add(UNREAD, path.name)
    else:
        yield _open_file(path, bounds, name=name)


def _list_names(root: Path) -> Iterator[str]:
    """Names under a folder, with the folders that they lie in, but for hidden ones."""
    if (root / SETTINGS).is_dir():
        yield f"{SETTINGS}/"
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if _count_depth(folder, root) >= _DEEPEST:
            folders.clear()
        for name in names:
            yield str(PurePosixPath(Path(folder, name).relative_to(root)))


def _count_depth(folder: str, root: Path) -> int:
    """The number of folders between a folder and the root above it."""
    return folder.count(os.sep) - str(root).count(os.sep)


def _is_notes(names: Iterable[str]) -> bool:
    """Whether a folder with these names in it is one of notes."""
    note_count = other_count = 0
    for name in names:
        if name.startswith(f"{SETTINGS}/") or f"/{SETTINGS}/" in name:
            return True
        file_name = name.rpartition("/")[2].lower()
        if file_name == aider.NAME:
            return False
        if not file_name.startswith(".") and (
            split_name(file_name)[0].endswith(_ENDINGS) or _NAMES.fullmatch(file_name)
        ):
            return False
        if file_name.endswith(markdown.NOTES):
            note_count += 1
        elif is_written(file_name):
            other_count += 1
    return note_count > other_count


def _walk_notes(
    root: Path, bounds: Bounds, passed: PassedOver, *, takes_others: bool
) -> Iterator[_Found]:
    """The notes of a folder, what of it is not read, and in the end which there are.

    `takes_others`: documents that lie beside them, too.
    """
    # Keys do not depend on where the folder lies: folders move.
    real = root.resolve()
    parent_name = real.parent.name
    name, keys = (
        (
            f"{parent_name}/{real.name}"
            if real.name.lower() in _COMMON and parent_name
            else real.name
        ),
        set[str](),
    )
    rules, left_out = VaultRules(), Counter[str]()
    for candidate in walk(root, telling=True):
        if isinstance(candidate, FoundFolder):
            base = "" if candidate.path == "." else f"{candidate.path}/"
            rules = rules.with_vault(base, _find_templates(root / base))
            continue
        kind = rules.kind_of(candidate.path)
        skipped_file = candidate if isinstance(candidate, Skipped) else None
        # A folder that was not looked into may hold notes.
        if kind is None or (kind and skipped_file and (root / candidate.path).is_dir()):
            kind = IGNORED if skipped_file and skipped_file.reason == "ignored" else None
        relative = f"{name}/{candidate.path}"
        is_other = takes_others and kind == NO_NOTE and is_written(candidate.path)
        if kind is not None and not is_other:
            yield from _leave_out(kind, relative, left_out, keys, passed)
            continue
        if not is_other:
            keys.add(markdown.key_of_note(relative))
        # How long a note may be, and what a document is, is not for the files of a project to say.
        if skipped_file is None or skipped_file.reason in {"too_large", "binary"}:
            yield _open_file(
                root / candidate.path,
                bounds,
                relative=relative,
                tentative=is_other,
                of_notes=not is_other,
            )
        elif skipped_file.reason in _PASSED:
            passed.add(_PASSED[skipped_file.reason], candidate.path)
        else:
            reason = _REFUSED.get(skipped_file.reason, skipped_file.reason)
            yield ImportProblem(str(root / candidate.path), "file", reason)
    yield from _report_left_out(left_out)
    yield from _report_wholes(name, keys)


def _report_left_out(counts: Mapping[str, int]) -> Iterator[ImportedElse]:
    return (ImportedElse(kind, count) for kind, count in sorted(counts.items()) if kind)


def _find_templates(folder: Path) -> tuple[str, ...]:
    """The templates of the vault that a folder is, if it is one."""
    try:
        settings = sorted(child.name for child in folder.glob(f"{SETTINGS}*") if child.is_dir())
    except OSError:
        return ()

    def read(path: str) -> bytes | None:
        try:
            with open_regular(folder / path) as file:
                return file.read(MOST_SETTINGS)
        except OSError:
            return None

    return templates_of(read, settings)


def _report_wholes(name: str, keys: set[str]) -> Iterator[ImportedWhole]:
    for form in _NOTES:
        yield ImportedWhole(form, markdown.key_of_note(f"{name}/"), frozenset(keys))


def _walk(root: Path, bounds: Bounds, passed: PassedOver) -> Iterator[_Found]:
    errors: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=errors.append):
        if ".git" in {*folders, *names} and SETTINGS not in folders:
            passed.add_project(Path(folder))
        for name in sorted(folders):
            if kind := _kind_of_folder(Path(folder, name)):
                folders.remove(name)
                passed.add(kind, name)
        folders.sort()
        if folders and _count_depth(folder, root) >= _DEEPEST:
            folders.clear()
            reason = f"it lies more than {_DEEPEST} folders deep: what is in it is not read"
            yield ImportProblem(folder, "directory", reason)
        beside = set().union(*(_BESIDE.get(name, ()) for name in (*names, *folders)))
        for name, tentative in _choose_names(names, passed, beside):
            path = Path(folder, name)
            if path.is_symlink() and not path.exists():
                passed.add(LINK, name)
            elif path.suffix.lower() == ".zip":
                yield from _walk_members(path, bounds, passed)
            else:
                relative = f"{root.name}/{path.relative_to(root).as_posix()}"
                yield _open_file(path, bounds, relative=relative, tentative=tentative)
        for error in errors:
            yield ImportProblem(str(error.filename), "directory", reason_of(error))
        errors.clear()


def _kind_of_folder(path: Path) -> str:
    """What a folder is that is not looked into; "" for any other."""
    if path.name.startswith("."):
        return HIDDEN
    if path.is_symlink():
        return LINK
    is_program = path.name in _WITHIN_NONE or (path / "pyvenv.cfg").exists()
    return PROGRAM if is_program or (path / "CACHEDIR.TAG").exists() else ""


def _choose_names(
    names: list[str], passed: PassedOver, beside: Set[str] = frozenset()
) -> Iterator[tuple[str, bool]]:
    """The names in one folder that may hold conversations, in order; whether only perhaps."""
    export = any(name.startswith(_CONVERSATIONS) and name.endswith(".json") for name in names)
    for name in sorted(names):
        lower = name.lower()
        if lower.endswith(aider.NAME):
            yield name, False
        elif name.startswith("."):
            passed.add(HIDDEN, name)
        elif is_secret_file(name) or lower.startswith("oauth_"):
            passed.add(UNREAD, name)
        elif name in beside or (export and name in _COMPANIONS):
            passed.add(COMPANION, name)
        elif lower.endswith(_ENDINGS) or _NAMES.fullmatch(lower) or split_name(name)[1]:
            yield name, False
        elif kind_of_name(name):
            passed.add_file(name)
        else:
            yield name, True


def _walk_members(
    path: Path,
    bounds: Bounds,
    passed: PassedOver,
    format: str | None = None,  # noqa: A002 - users' word
    name: str = "",
) -> Iterator[_Found]:
    try:
        file = open_regular(path)
    except OSError as error:
        yield ImportProblem(str(path), "file", reason_of(error))
        return
    with file:
        try:
            archive = zipfile.ZipFile(file)
            room = bounds.room(path.stat().st_size)
        except UnicodeDecodeError:
            yield ImportProblem(str(path), "file", "the names in it are not valid UTF-8")
            return
        except UNREADABLE as error:
            yield ImportProblem(str(path), "file", reason_of(error))
            return
        infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        stem = Path(name or path.name).stem
        if format in _NOTES or (format is None and _is_notes(infos)):
            takes_others = format is None
            yield from _walk_packed_notes(
                path, archive, infos, stem, bounds, passed, takes_others=takes_others
            )
            return
        for info, tentative in _order_members(infos, passed):
            if info.filename.lower().endswith(".zip"):
                passed.add(PACKED, info.filename)
                continue
            reason = _check_member(info, room)
            if reason:
                yield ImportProblem(f"{path}/{info.filename}", "file", reason)
                continue
            room -= info.file_size
            member_path = f"{stem}/{info.filename}"
            yield _open_file(path, bounds, info, archive, member_path, tentative=tentative)


def _leave_out(
    kind: str, relative: str, left_out: Counter[str], keys: set[str], passed: PassedOver
) -> Iterator[_Found]:
    """Count a file of a vault that is no note; a template ends what came in of it before."""
    if kind == NO_NOTE:
        passed.add_file(relative)
        return
    left_out[kind] += 1
    if kind == TEMPLATE:
        keys.add(markdown.key_of_note(relative))
        # Earlier releases imported templates as notes: their memories end here.
        yield from (
            ImportedWhole(form, markdown.key_of_note(relative), frozenset()) for form in _NOTES
        )


def _walk_packed_notes(
    path: Path,
    archive: zipfile.ZipFile,
    infos: Mapping[str, zipfile.ZipInfo],
    stem: str,
    bounds: Bounds,
    passed: PassedOver,
    *,
    takes_others: bool,
) -> Iterator[_Found]:
    """The notes in a zip file, what of it is not read, and in the end which there are."""
    room = bounds.room(path.stat().st_size)
    relative_root = _make_relative("", "", infos)
    rules = _read_packed_rules(archive, infos, "" if relative_root == "/" else relative_root)
    keys, left_out = set[str](), Counter[str]()
    for name in sorted(infos, key=lambda member: member.rpartition("/")[::2]):
        if name.startswith("__MACOSX"):
            # Macs put a shadow of every file there.
            continue
        info, relative = infos[name], _make_relative(stem, name, infos)
        kind = rules.kind_of(relative.partition("/")[2])
        is_other = takes_others and kind == NO_NOTE and is_written(name)
        if kind is not None and not is_other:
            yield from _leave_out(kind, relative, left_out, keys, passed)
            continue
        if not is_other:
            keys.add(markdown.key_of_note(relative))
        if relative and is_secret_file(relative):
            passed.add(UNREAD, relative)
            continue
        if reason := _check_member(info, room):
            yield ImportProblem(f"{path}/{name}", "file", reason)
            continue
        room -= info.file_size
        yield _open_file(
            path, bounds, info, archive, relative, tentative=is_other, of_notes=not is_other
        )
    yield from _report_left_out(left_out)
    yield from _report_wholes(_make_relative(stem, "", infos).rstrip("/"), keys)


def _read_packed_rules(
    archive: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], above: str
) -> VaultRules:
    """The rules for leaving out files below the folder `above` ("harbour/") of a zip file."""
    rules = VaultRules()
    vaults: dict[str, set[str]] = {}
    for name in infos:
        parts = name.split("/")
        at = next((at for at, part in enumerate(parts) if part.startswith(SETTINGS)), None)
        if at is not None:
            base = "".join(f"{part}/" for part in parts[:at])
            vaults.setdefault(base, set()).add(parts[at])

    for base, folders in vaults.items():

        def read(path: str, base: str = base) -> bytes | None:
            info = infos.get(base + path)
            if info is None or _check_member(info, MOST_SETTINGS):
                return None
            try:
                with archive.open(info) as file:
                    return file.read(MOST_SETTINGS)
            except UNREADABLE:
                return None

        rules = rules.with_vault(base.removeprefix(above), templates_of(read, sorted(folders)))
    return rules


def _make_relative(stem: str, name: str, names: Iterable[str]) -> str:
    """A member's path below the folder of notes: the one that all lie in, or the file's name."""
    tops = {member.partition("/")[0] if "/" in member else "" for member in names}
    tops -= {"__MACOSX"}
    if len(tops) == 1 and (top := next(iter(tops))) and top != SETTINGS:
        return name or f"{top}/"
    return f"{stem}/{name}"


def _order_members(
    infos: Mapping[str, zipfile.ZipInfo], passed: PassedOver
) -> Iterator[tuple[zipfile.ZipInfo, bool]]:
    """The members that may be imported, folder by folder; whether only perhaps."""
    folders: dict[str, list[str]] = {}
    for name in infos:
        folder, _, file_name = name.rpartition("/")
        # Macs put a shadow of every file there.
        if not (folder.startswith("__MACOSX") or _WITHIN_NONE & {*folder.split("/")}):
            folders.setdefault(folder, []).append(file_name)
    for folder, names in sorted(folders.items()):
        for file_name, tentative in _choose_names(names, passed):
            yield infos[f"{folder}/{file_name}" if folder else file_name], tentative


def _check_member(info: zipfile.ZipInfo, room: int) -> str:
    """Why a member is left out, "" if it is not. Nothing of it is unpacked for that.

    The size that it claims binds: no more than that is read of it.
    """
    if info.flag_bits & 1:
        return "it is encrypted"
    if info.compress_type not in _BOUNDED:
        return "it is packed in a way that is not read here: pack it again as usual (deflate)"
    if info.file_size > room:
        return (
            f"it would become {info.file_size:,} bytes, more than a zip file of this size may; "
            "unpack it yourself if it is what you expect, and import the file"
        )
    return ""


def _open_file(
    path: Path,
    bounds: Bounds,
    member: zipfile.ZipInfo | None = None,
    archive: zipfile.ZipFile | None = None,
    relative: str = "",
    name: str = "",
    *,
    tentative: bool = False,
    of_notes: bool = False,
) -> ImportFile | ImportProblem:
    try:
        file = ImportFile(path, member, archive, bounds, relative, name)
        file.tentative, file.of_notes = tentative, of_notes
        return file
    except UNREADABLE as error:
        return ImportProblem(str(path), "file", reason_of(error))


def reason_of(error: Exception) -> str:
    """The error as a readable reason."""
    if isinstance(error, MemoryError):
        return "there is not memory enough for it"
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or str(error) or type(error).__name__
