"""Restoring: a home from a backup, whole or not at all.

Everything is written into a folder beside the home, checked against the manifest, synced, and then
renamed: a killed process leaves the target as it was, and at most such a folder, which the next
restore removes. No existing file is changed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

from anaphora.calls.progress import Progress
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
        summary = backup_of(source, unpacker.manifest)
        if summary.schema is not None:
            check_revision(summary.schema, source)
        for name in unpacker.members:
            if not _is_home_file(name):
                raise DamagedBackup("read", source, f"{name!r} does not belong in a home")
        _refuse_unread(summary, unpacker, database, target, conversations)
        with staging.staged(target) as stage:
            staged_home = stage / "home"
            staged_home.mkdir(mode=0o700)
            for done_count, name in enumerate(unpacker.members):
                if not name.startswith(_TABLES):
                    file_path = staged_home.joinpath(*PurePosixPath(name).parts)
                    file_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    with staging.open_new(file_path) as file:
                        unpacker.read(name, file.write)
                        file.flush()
                        sync(file.fileno())
                if progress is not None:
                    progress("files", done_count + 1, len(unpacker.members))
            if summary.database == "postgresql":
                from anaphora.store.db import dump

                dump.load(unpacker.members, unpacker.read, database or staged_home / DATABASE)
            _settle(staged_home, target)
    return summary


def _refuse_unread(
    summary: Backup,
    unpacker: archive.Unpacker,
    database: str | None,
    target: Path,
    conversations: Path | None,
) -> None:
    """Refuse to restore data that a memory with the same settings would look for elsewhere."""
    if database is not None and summary.database != "postgresql":
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


def _is_home_file(name: str) -> bool:
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


def _settle(staged_home: Path, target: Path) -> None:
    """Give the staged home its name. On POSIX it replaces an empty folder atomically."""
    for companion in ("-wal", "-shm"):
        if (staged_home / (DATABASE + companion)).exists():
            raise DamagedBackup("restore", target, "its database has an unfinished log")
    if (staged_home / DATABASE).exists():
        staging.sync_file(staged_home / DATABASE)
    staging.sync_tree(staged_home)
    try:
        try:
            staged_home.rename(target)
        except FileExistsError:
            # Windows replaces no folder, not even an empty one.
            target.rmdir()
            staged_home.rename(target)
    except OSError:
        _refuse_taken(target)
        raise
    try:
        sync_directory(target.parent)
    except OSError:
        # It may not be durable: after the error, the same target must be free again.
        with suppress(OSError):
            target.rename(staged_home)
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
