"""The contents of a home, and the checks of every part.

It starts no model, repairs nothing, and changes nothing but the index, which catches up with the
database; one unnamed file is written to check that the home is writable. Linux lists the kinds of
file systems in a file that every user may read; macOS prints them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.calls.progress import Progress, no_progress
from anaphora.errors import (
    AnaphoraError,
    EmbeddingError,
    Locked,
    MissingExtra,
    NoKeyringError,
)
from anaphora.ops.doctor.advisories import library_check
from anaphora.ops.doctor.health import try_writing
from anaphora.ops.doctor.incidents import incident_check
from anaphora.ops.doctor.language import language_check
from anaphora.ops.doctor.repair import repair
from anaphora.ops.doctor.secrets_said import secrets_check, stored_check
from anaphora.settings import Settings
from anaphora.store.home.sealing import Home
from anaphora.system.environment import environment
from anaphora.text.display import counted
from anaphora.values.conversations import FINISH_VECTORS, Check, Stats

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns.index import TurnIndex
    from anaphora.store.db.engine import Database
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.threads.conversations import Conversations


# Rows that are named in a finding; the others are only counted.
_NAMED = 20


def _check_rows(services: NamespaceServices) -> Check:
    """Unreadable rows, the first of them by name."""
    from anaphora.store.mending import misdated, unreadable_records

    truth = services.truth
    try:
        records = unreadable_records(truth, services.namespace, services.rows_sealer)
        problems = [
            f"{kind} {name} cannot be read" for kind, ids in records.items() for name in ids
        ]
        problems += [f"impossible times in {name}" for name in misdated(truth)]
    except AnaphoraError as error:
        return Check("rows", ok=False, detail=str(error))
    if not problems:
        return Check("rows", ok=True, detail="every row can be read")
    more_note = f", and {len(problems) - _NAMED:,} more" if len(problems) > _NAMED else ""
    problem_list = "; ".join(problems[:_NAMED]) + more_note
    detail = f"{problem_list}; `doctor --repair` repairs them and keeps the words"
    return Check("rows", ok=False, detail=detail)


MOUNTS = Path("/proc/self/mounts")
MOUNT = Path("/sbin/mount")
_MACOS_MOUNT = re.compile(r".+? on (/.*) \(([a-z0-9]+)[,)].*")
REMOTE = frozenset((
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "drvfs", "fuse.glusterfs", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "glusterfs", "lustre", "ncpfs", "network-drive", "nfs", "nfs4",
    "smb3", "smbfs", "vboxsf", "webdav",
))  # fmt: skip
"""Kinds that lie on another machine, or on the host of this one (9p and drvfs are WSL's drives).

Their locks, their renames and SQLite's shared memory do not work between machines as they do on one
(https://sqlite.org/wal.html, https://sqlite.org/faq.html#q5), and an fsync may return too early.
"""

_OCTAL = re.compile(r"\\([0-7]{3})")


def kind_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of the file system of `path`, which may not exist yet; None if unknown.

    Raises OSError if the path cannot be resolved.
    """
    resolved_path = path.absolute().resolve()
    if sys.platform == "win32":
        import ctypes

        remote = 4  # DRIVE_REMOTE of fileapi.h
        drive = resolved_path.drive
        drive_type = ctypes.windll.kernel32.GetDriveTypeW(f"{drive}\\")
        return "network-drive" if drive.startswith("\\\\") or drive_type == remote else None
    deepest: tuple[int, str] | None = None
    for mount_point, kind in _list_mounts(mounts):
        length = len(mount_point.parts)
        # A later mount at the same point covers the earlier one.
        if resolved_path.is_relative_to(mount_point) and (deepest is None or length >= deepest[0]):
            deepest = (length, kind)
    return deepest[1] if deepest is not None else None


def _list_mounts(mounts: Path) -> Iterator[tuple[Path, str]]:
    """The mount points with the kinds of their file systems; empty if the system does not say."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        # On macOS from `mount`: `/dev/disk3s1 on /Volumes/x (apfs, local, journaled)`.
        if not MOUNT.exists():
            return
        command = [str(MOUNT)]
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program without arguments
                command, capture_output=True, text=True, errors="replace", timeout=5, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return
        for line in done.stdout.splitlines():
            if match := _MACOS_MOUNT.fullmatch(line):
                yield Path(match[1]), match[2]
        return
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        yield Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), point)), kind


def file_systems(paths: Iterable[Path], mounts: Path = MOUNTS) -> Check:
    """Whether any of these paths is on an unsupported file system (docs/durability.md)."""
    kinds: dict[str, Path] = {}
    for path in paths:
        try:
            kind = kind_of(path, mounts)
        except OSError as error:
            detail = f"{path} cannot be resolved: {error.strerror}"
            return Check("file system", ok=False, detail=detail)
        if kind is not None:
            kinds.setdefault(kind, path)
    if not kinds:
        return Check("file system", ok=True, detail="this system does not report its type")
    remote = [f"{path} is on {kind}" for kind, path in kinds.items() if kind in REMOTE]
    if remote:
        detail = f"{'; '.join(remote)}: durability and locking are not guaranteed there"
        return Check("file system", ok=False, detail=detail)
    return Check("file system", ok=True, detail=", ".join(kinds))


def stats(services: NamespaceServices) -> Stats:
    """Count the contents of a namespace; the index catches up with the files first."""
    settings, embedder = services.container.settings, services.container.embedder
    services.conversation.turn_index.sync(embed="none")
    state = services.conversation.turn_index.check()
    counts: dict[str, int] = {}
    for feature in services.features:
        counts |= feature.counts()
    return Stats(
        home=str(settings.home),
        namespace=services.namespace,
        conversations=state.conversations,
        turns=state.turns,
        indexed=state.turns,
        vectors=state.vectors,
        pending=state.pending,
        memories=services.memory.vectors.current(),
        embedder=embedder.name,
        links_due=services.links.count_due(),
        cleaning_due=services.truth.uncleaned(),
        bytes={
            "threads": _size(services.conversation.threads.directory),
            "truth": sum(_size(path) for path in settings.home.glob("anaphora.db*")),
            "index": state.size,
        },
        **counts,
    )


def doctor(
    services: NamespaceServices, *, mend: bool = False, progress: Progress | None = None
) -> tuple[Check, ...]:
    """Check every part; `mend` first makes the repairs that change no text.

    Nothing raises: a part that fails is a finding. `progress` is called with the name of the next
    part, how many are done, and how many there are.
    """
    container = services.container
    settings, embedder = container.settings, container.embedder
    folders = (settings.home, settings.conversations)
    looks: dict[str, Callable[[], Iterable[Check]]] = {
        "home": lambda: (_check_home(settings), file_systems(folders)),
        "sealing": lambda: _check_sealing(settings),
        "threads": lambda: _check_threads(services.conversation.threads),
        "truth": lambda: (_check_truth(container.truth),),
        "index": lambda: _check_index(services.conversation.turn_index),
        "memories": lambda: (_check_memories(services.memory.vectors, embedder),),
        "embedder": lambda: (_check_embedder(embedder),),
        "links": lambda: (_check_links(services),),
        "language": lambda: language_check(services, embedder.name),
        "rows": lambda: (_check_rows(services),),
        "features": lambda: (
            check for feature in services.features for check in _checks_of(feature)
        ),
        "readers": lambda: (_check_readers(),),
        "secrets": lambda: (secrets_check(services.conversation.threads, services.namespace),),
        "stored secrets": lambda: (stored_check(services),),
        "libraries": lambda: (library_check(),),
        "incidents": lambda: (incident_check(environment(), services.clock()),),
    }
    tell = progress or no_progress
    if mend:
        tell("repair", 0, len(looks))
    checks = list(repair(services) if mend else ())
    for done_count, (name, look) in enumerate(looks.items()):
        tell(name, done_count, len(looks))
        try:
            checks += list(look())
        except (AnaphoraError, OSError) as error:
            checks.append(Check(name, ok=False, detail=str(error)))
            if isinstance(error, Locked):
                # Each of the others would wait for it as long again.
                break
    return tuple(checks)


def _checks_of(feature: FeatureServices) -> Iterator[Check]:
    """The findings of a feature; an error of one is a finding, and the others are checked."""
    try:
        yield from feature.checks()
    except (AnaphoraError, OSError) as error:
        yield Check(feature.name, ok=False, detail=str(error))


def _check_links(services: NamespaceServices) -> Check:
    """What judges which statement replaces which, and how many it has yet to compare."""
    judge = services.container.judge
    if not judge.is_there:
        return Check("links", ok=False, detail="the judge of pairs is missing: nothing is linked")
    failure, due_count = judge.check(), services.links.count_due()
    detail = f"{judge.version}, {due_count:,} statements to be compared"
    if failure is not None:
        detail += f"; features alone judge: {failure}"
    return Check("links", ok=failure is None, detail=detail)


def _check_readers() -> Check:
    """Whether documents and imports can be read here, and the limits of their readers."""
    from anaphora.system.interpreters import interpreter
    from anaphora.system.worker import limits_here

    if interpreter() is None:
        detail = "no Python is found to start: documents and imports cannot be read here"
        return Check("readers", ok=False, detail=detail)
    return Check("readers", ok=True, detail=limits_here())


def _check_home(settings: Settings) -> Check:
    try:
        # A full disk takes a name but no bytes.
        try_writing(settings.home, 64 * 1024)
    except OSError as error:
        detail = f"{settings.home} cannot be written: {error.strerror}"
        return Check("home", ok=False, detail=detail)
    detail = f"{settings.home} can be written"
    if not Home.of(settings).is_begun:
        detail = f"there is no memory at {settings.home} yet; it can be begun"
    return Check("home", ok=True, detail=detail)


def _check_sealing(settings: Settings) -> Iterator[Check]:
    """Whether the home is sealed, its key available, and no file in it left in clear."""
    from anaphora.store.crypto import marker as markers
    from anaphora.store.crypto.key_stores import Keychain
    from anaphora.store.home.conversion import left_in_clear
    from anaphora.store.home.master_key import load_keys

    home = Home.of(settings)
    try:
        marker = markers.read(home.root)
        if marker is not None:
            load_keys(home, marker)
    except AnaphoraError as error:
        yield Check("sealing", ok=False, detail=str(error))
    else:
        if marker is None:
            try:
                detail = f"not encrypted; keychain: {Keychain().name()}"
            except (MissingExtra, NoKeyringError) as error:
                # A clear home needs none.
                detail = f"not encrypted; {error}"
            yield Check("sealing", ok=True, detail=detail)
            return
        key_location = (
            "the keychain" if marker.kept == "keychain" else "a file in the home, unencrypted"
        )
        detail = f"encrypted; key {marker.key_name} is in {key_location}"
        yield Check("sealing", ok=marker.state == "sealed", detail=detail)
    try:
        unsealed_files = left_in_clear(home)
    except AnaphoraError as error:
        yield Check("sealing", ok=False, detail=str(error))
        return
    for path in unsealed_files:
        yield Check(
            "sealing", ok=False, detail=f"{path} is not one of our files and is not encrypted"
        )


def _check_threads(conversations: Conversations) -> Iterator[Check]:
    conversation_list = conversations.list()
    turns = sum(summary.turn_count for summary in conversation_list)
    threads_location = conversations.directory or "the database"
    amounts = f"{counted(len(conversation_list), 'conversation')}, {counted(turns, 'turn')}"
    detail = f"{amounts} in {threads_location}"
    yield Check("threads", ok=True, detail=detail)
    for problem in conversations.problems():
        yield Check("threads", ok=False, detail=str(problem))


def _check_truth(truth: Database) -> Check:
    from anaphora.store.db.health import check_truth

    health = check_truth(truth)
    detail = [f"{health.kind} {health.version}", f"schema {health.revision or 'not created yet'}"]
    if health.wal_is_safe is not None:
        safe = "has the WAL fix" if health.wal_is_safe else "too old for WAL"
        detail.append(f"{health.journal} journal ({safe})")
    return Check("truth", ok=not health.problems, detail="; ".join([*detail, *health.problems]))


def _check_index(index: TurnIndex) -> Iterator[Check]:
    sync_report = index.sync(embed="none")
    state = index.check()
    detail = (
        f"{state.turns:,} turns, {state.vectors:,} vectors, {state.pending:,} pending, "
        f"{state.size / 1e6:.1f} MB" + (f"; {FINISH_VECTORS}" if state.pending else "")
    )
    yield Check("index", ok=not state.problems and not state.failed, detail=detail)
    for problem in [*state.problems, *map(str, sync_report.degraded)]:
        yield Check("index", ok=problem.startswith("vectors:") and not state.failed, detail=problem)


def _check_memories(vectors: RecordVectors, embedder: EmbedderService) -> Check:
    current, waiting = vectors.current(), vectors.lacking(embedder.name)
    past = vectors.records() - current
    by_embedder = {
        name: count for name, (count, _) in vectors.counts().items() if name != embedder.name
    }
    detail = (
        counted(current, "memory", "memories")
        + (f" and {past:,} of the past" if past else "")
        + f", {waiting:,} without a vector of {embedder.name}"
    )
    if by_embedder:
        detail += f"; other embedders: {', '.join(f'{n} ({c:,})' for n, c in by_embedder.items())}"
    if waiting:
        detail += ": found by words only until `ready` or `reindex`"
    return Check("memories", ok=True, detail=detail)


def _check_embedder(embedder: EmbedderService) -> Check:
    if embedder.ready(timeout=60):
        embedder.look()
        if (away_reason := embedder.away) is not None:
            detail = f"{embedder.name}: {away_reason}; the bundled model answers until it is back"
            return Check("embedder", ok=False, detail=detail)
        if damage := _damage_of(embedder):
            return Check("embedder", ok=False, detail=f"{embedder.name}: {damage}")
        line = embedder.calibration.asked
        detail = f"{embedder.name}, {embedder.dimensions} dimensions"
        if not line.identity:
            detail += f"; its cosines count as {line.scale:.3g} × cosine {line.shift:+.3g}"
        return Check("embedder", ok=True, detail=detail)
    reason = embedder.failure or "still loading after 60 s"
    return Check("embedder", ok=False, detail=f"{embedder.name}: {reason}")


def _damage_of(embedder: EmbedderService) -> str:
    """What is wrong with the files of the bundled networks, of which one may not be loaded."""
    from anaphora.embed.bundled import bundled_name, verify_networks

    try:
        if embedder.name == bundled_name():
            verify_networks()
    except EmbeddingError as error:
        return str(error)
    return ""


def _size(path: Path | None) -> int:
    if path is None or not path.exists():
        return 0
    if path.is_file():
        return path.stat().st_size
    return sum(
        (Path(folder) / name).stat().st_size for folder, _, names in os.walk(path) for name in names
    )
