"""Backups: the data of a home that cannot be derived, as of one moment, in one file.

A backup is a zip file with a manifest. It contains the database and the threads, damaged ones that
were set aside too; never the index, and never a key. The home may be in use by any number of
processes, and nothing in it is changed or locked.

Threads are copied first, the database last. So the database may have notes of turns that the copied
threads do not have yet, as after a crash between the two writes of an append: such a note of the
sidecar is void, since it carries the hash of its turn, and every reader checks that. The other
order would lose data: turns without speaker and source, which the next import would add a second
time, and redactions without the note that keeps the text from being imported again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.calls.progress import Progress
from anaphora.errors import DamagedBackup, InvalidInput, SealChanged, StoreError
from anaphora.ops.backup import archive, staging
from anaphora.store.crypto import marker as markers
from anaphora.store.disk import identity_of, temporary_key, translate
from anaphora.store.maintenance import MEMORIES, THREADS, copy_database, count_rows
from anaphora.store.threads.files import CORRUPT
from anaphora.system.incidents import program_version

if TYPE_CHECKING:
    from anaphora.store.crypto.marker import Marker
    from anaphora.store.db.engine import Database
    from anaphora.store.home.sealing import Home

DATABASE = "anaphora.db"
"""The member, and the file of a home, that is the database."""

# Retries for a file that another program writes in place while it is copied.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds.

    `database` is "sqlite", "postgresql" or "" (nothing was ever remembered); `schema` its revision.
    `rows` counts the rows of each table, `threads` the conversations, `memories` those that hold
    now, `bytes` the file itself.
    `needs_key` names the key without which a sealed backup cannot be read: the exported one, since
    no backup holds it. `left_out` are files whose names no zip file can hold.
    """

    path: str
    created: datetime
    schema: str | None
    database: str
    threads: int
    memories: int
    bytes: int
    rows: dict[str, int]
    needs_key: str | None = None
    left_out: tuple[str, ...] = ()

    @property
    def sealed(self) -> bool:
        """Whether it is encrypted, as its home was."""
        return self.needs_key is not None


def backup(
    home: Home,
    truth: Database,
    path: str | os.PathLike[str],
    *,
    clock: Callable[[], datetime],
    progress: Progress | None = None,
) -> Backup:
    """Write a backup of `home` and its database `truth` to `path`. Others may go on writing.

    Every write that was acknowledged before the call is in it. `progress` is called with a label,
    what is done and how much there is. `NotEmpty` when something stands at `path`; `StoreError` and
    its kinds when the home cannot be read (a damaged database is none that can be restored) or the
    place cannot be written; `SealChanged` when the home was encrypted or decrypted meanwhile.
    """
    target = staging.free_path(path)
    for _, folder in home.folders():
        if target.is_relative_to(folder):
            raise InvalidInput("path", str(target), "it is inside the folder of thread files")
    seal_place = markers.place_of(home.root)
    marker = markers.read(home.root)
    if marker is not None and marker.state != "sealed":
        raise StoreError(
            "back up", home.root, "an encryption or decryption is unfinished: open the home first"
        )
    when = clock().astimezone(UTC)
    with staging.staged(target) as stage:
        with (
            staging.open_new(stage / "backup.zip") as file,
            archive.Packer(file, when, dense=marker is not None) as packer,
        ):
            left_out = _add_threads(home, packer, progress)
            threads = sum(
                name.endswith((".json", ".json.sealed")) and name != markers.MARKER
                for name in packer.members
            )
            facts = _add_truth(truth, stage, packer, progress)
            threads += count_rows(truth, THREADS)
            if marker is not None:
                packer.add(markers.MARKER, _bytes_of(home.root / markers.MARKER))
            manifest = _manifest(when, marker, threads, facts, left_out)
            packer.finish(manifest)
        if markers.place_of(home.root) != seal_place:
            reason = "it was encrypted, decrypted or re-keyed meanwhile: back it up again"
            raise SealChanged(str(home.root), reason)
        summary = backup_of(stage / "backup.zip", manifest)
        # Last of all: nothing may fail after the backup has its name.
        staging.put_file(stage / "backup.zip", target)
    return replace(summary, path=str(target))


def verify(path: str | os.PathLike[str]) -> Backup:
    """Read a whole backup and check it against its manifest. `DamagedBackup`, `StoreError`."""
    file = Path(path).expanduser().absolute()
    with archive.opened(file) as unpacker:
        for name in unpacker.members:
            unpacker.read(name, lambda _: None)
        return backup_of(file, unpacker.manifest)


def backup_of(path: Path, manifest: dict[str, Any]) -> Backup:
    """The contents of a manifest. `DamagedBackup` for an invalid one."""
    try:
        sealing = manifest.get("sealed")
        summary = Backup(
            path=str(path),
            created=datetime.fromisoformat(manifest["created"]),
            schema=manifest["schema"],
            database=manifest["database"],
            threads=manifest["threads"],
            memories=manifest["memories"],
            bytes=path.stat().st_size,
            rows=dict(manifest["rows"]),
            needs_key=sealing["key"] if sealing else None,
            left_out=tuple(manifest["left_out"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedBackup("read", path, "its manifest is invalid") from error
    numbers = (summary.threads, summary.memories, *summary.rows.values())
    texts = (summary.database, *summary.rows, *summary.left_out)
    valid = (
        summary.created.utcoffset() is not None
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(maybe, str | None) for maybe in (summary.schema, summary.needs_key))
        and all(isinstance(number, int) for number in numbers)
    )
    if not valid:
        raise DamagedBackup("read", path, "its manifest is invalid")
    return summary


def _manifest(
    when: datetime,
    marker: Marker | None,
    threads: int,
    facts: dict[str, Any],
    left_out: list[str],
) -> dict[str, Any]:
    sealing = None
    if marker is not None:
        note = "Everything here is encrypted. To read it, import the key that `key export` wrote."
        sealing = {"key": marker.key_name, "note": note}
    return {
        "anaphora": "backup",
        "version": 1,
        "program": program_version(),
        "created": when.isoformat(),
        "sealed": sealing,
        "threads": threads,
        "left_out": left_out,
        **facts,
    }


def _add_threads(home: Home, packer: archive.Packer, progress: Progress | None) -> list[str]:
    left_out: list[str] = []
    for namespace, folder in home.folders():
        prefix = Path("namespaces", namespace) if folder != home.conversations else Path()
        # Damaged files move out of the folder and never back: their folder is listed afterwards.
        for directory in (folder, folder / CORRUPT):
            try:
                with os.scandir(directory) as entries:
                    names = sorted(
                        file.name
                        for file in entries
                        if file.is_file() and temporary_key(file.name) is None
                    )
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise translate(error, "read", directory) from error
            for done_count, name in enumerate(names):
                content = _bytes_of(directory / name)
                if content is None:
                    continue  # Deleted, or set aside, since the folder was listed.
                member = prefix / "conversations" / directory.relative_to(folder) / name
                try:
                    member.as_posix().encode("utf-8")
                except UnicodeEncodeError:
                    left_out.append(ascii(str(directory / name)))
                    continue
                packer.add(member.as_posix(), content)
                if progress is not None:
                    progress("conversations", done_count + 1, len(names))
    return left_out


def _bytes_of(path: Path) -> Any:
    """A file's bytes as of one moment; None if it was deleted."""
    try:
        for _ in range(_ATTEMPTS):
            with path.open("rb") as file:
                identity_before = identity_of(os.fstat(file.fileno()))
                content = file.read()
                # A replaced file does not change this one; a write in place changes its state.
                if identity_of(os.fstat(file.fileno()))[1:3] == identity_before[1:3]:
                    return content
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translate(error, "read", path) from error
    raise StoreError("back up", path, "another program keeps overwriting it")


def _add_truth(
    truth: Database, stage: Path, packer: archive.Packer, progress: Progress | None
) -> dict[str, Any]:
    empty: dict[str, Any] = {"database": "", "schema": None, "rows": {}, "memories": 0}
    if progress is not None:
        progress("database", 0, 1)
    if truth.path is None:
        from anaphora.store.db import dump

        facts = dump.dump(truth, packer.member) | {"memories": count_rows(truth, MEMORIES)}
    else:
        copied_database = stage / DATABASE
        details = copy_database(truth.path, copied_database)
        facts = empty | details if details else empty
        if details:
            packer.add_file(DATABASE, copied_database)
            copied_database.unlink()
    if progress is not None:
        progress("database", 1, 1)
    return facts
