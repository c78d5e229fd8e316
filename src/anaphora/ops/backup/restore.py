"""Restoring: a home out of a backup, whole or not at all.

Everything is written into a folder beside the home, held against the manifest, synced, and then
renamed: whoever is killed leaves the place as it was, and at most such a folder, which the next
restore removes. Nothing that stands anywhere is changed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

from anaphora.core.progress import Progress
from anaphora.errors import DamagedBackup, InvalidInput, NotEmpty
from anaphora.ops.backup import archive, staging
from anaphora.ops.backup.create import DATABASE, Backup, backup_of
from anaphora.store.crypto.marker import MARKER
from anaphora.store.db.revision import check_revision
from anaphora.store.disk import sync, sync_directory, translate

_TABLES = "tables/"
_THREADS = "conversations"


def restore(
    path: str | os.PathLike[str],
    home: str | os.PathLike[str],
    *,
    database: str | None = None,
    conversations: Path | None = None,
    progress: Progress | None = None,
) -> Backup:
    """Make the home `home` out of the backup at `path`. Its index is made again by its first use.

    All threads go into the home, the default namespace's into its folder "conversations", wherever
    they were before. A backup of a PostgreSQL database goes into a SQLite file of the new home, or
    into the empty database at the URL `database`. A sealed backup needs its exported key after
    that (`Backup.needs_key`): restoring alone reads nothing of it.

    `InvalidInput` where the restored home would not be read with these settings: a backup of SQLite
    with a `database`, thread files with another folder `conversations`. `NotEmpty` when there is
    anything in `home` (or tables of ours in `database`); `DamagedBackup` when the backup is not
    what was written; `SchemaTooNew`, `SchemaTooOld`; `StoreError` and its kinds.
    """
    source, target = Path(path).expanduser().absolute(), Path(home).expanduser().absolute()
    _refuse_taken(target)
    with archive.opened(source) as unpacker:
        made = backup_of(source, unpacker.manifest)
        _check(made, unpacker, source)
        _refuse_unread(made, unpacker, database, target, conversations)
        with staging.staged(target) as stage:
            whole = stage / "home"
            whole.mkdir(mode=0o700)
            for done, name in enumerate(unpacker.members):
                if not name.startswith(_TABLES):
                    _unpack(unpacker, name, whole)
                if progress is not None:
                    progress("files", done + 1, len(unpacker.members))
            if made.database == "postgresql":
                from anaphora.store.db import dump

                dump.load(unpacker.members, unpacker.read, database or whole / DATABASE)
            _settle(whole, target)
    return made


def _check(made: Backup, unpacker: archive.Unpacker, source: Path) -> None:
    if made.schema is not None:
        check_revision(made.schema, source)
    for name in unpacker.members:
        if not _is_ours(name):
            raise DamagedBackup("read", source, f"{name!r} does not belong in a home")


def _refuse_unread(
    made: Backup,
    unpacker: archive.Unpacker,
    database: str | None,
    target: Path,
    conversations: Path | None,
) -> None:
    """Refuse to restore what a memory opened with the same settings would look for elsewhere."""
    if database is not None and made.database != "postgresql":
        reason = (
            "this backup is from SQLite: restore it without a database (unset ANAPHORA_DATABASE), "
            "export each namespace of that home, and import it with the database"
        )
        raise InvalidInput("database", database.split("@")[-1], reason)
    inside = target / _THREADS
    has_files = any(name.startswith(f"{_THREADS}/") for name in unpacker.members)
    if has_files and database is None and conversations not in (None, inside):
        reason = (
            f"a backup restores conversations into {inside}: restore it without this setting, "
            "then move them there"
        )
        raise InvalidInput("conversations_dir", str(conversations), reason)


def _is_ours(name: str) -> bool:
    """Whether a member may be written: into the folders of a home, and nowhere else."""
    parts = PurePosixPath(name).parts
    if "\\" in name or name.startswith("/") or ".." in parts or "/".join(parts) != name:
        return False
    if name in {DATABASE, MARKER}:
        return True
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    if parts[0] == "conversations":
        return len(parts) == 2 or (len(parts) == 3 and parts[1] == ".corrupt")
    return name.startswith(_TABLES) and len(parts) == 2


def _unpack(unpacker: archive.Unpacker, name: str, whole: Path) -> None:
    place = whole.joinpath(*PurePosixPath(name).parts)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with staging.open_new(place) as file:
        unpacker.read(name, file.write)
        file.flush()
        sync(file.fileno())


def _settle(whole: Path, target: Path) -> None:
    """Give the whole home its name. On POSIX it takes the place of an empty folder in one step."""
    for companion in ("-wal", "-shm"):
        if (whole / (DATABASE + companion)).exists():
            raise DamagedBackup("restore", target, "its database has an unfinished log")
    if (whole / DATABASE).exists():
        staging.sync_file(whole / DATABASE)
    staging.sync_tree(whole)
    try:
        try:
            whole.rename(target)
        except FileExistsError:
            # Windows puts nothing in the place of a folder, not even of an empty one.
            target.rmdir()
            whole.rename(target)
    except OSError:
        _refuse_taken(target)
        raise
    try:
        sync_directory(target.parent)
    except OSError:
        # It may not last: whoever is told so must be able to restore into the same place again.
        with suppress(OSError):
            target.rename(whole)
        raise


def _refuse_taken(target: Path) -> None:
    try:
        if next(target.iterdir(), None) is None:
            return
    except FileNotFoundError:
        return
    except NotADirectoryError:
        pass
    except OSError as error:
        raise translate(error, "restore into", target) from error
    raise NotEmpty("restore into", target, "the home must be new or empty")
