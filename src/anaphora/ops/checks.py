"""What a home holds, and whether all of it is well.

In: the parts that the facade wired. Out: `Stats` and `Check` values. It repairs nothing and writes
nothing but one unnamed file, to see whether the home can be written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.core.config import Settings
from anaphora.errors import AnaphoraError, MissingExtra, NoKeyringError
from anaphora.ops.file_systems import file_systems
from anaphora.ops.lanes import counted, lane_checks, repair_sections
from anaphora.values.conversations import FINISH_VECTORS, Check, Stats

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns.index import TurnIndex
    from anaphora.store.db.engine import Database
    from anaphora.store.home.sealing import Home
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.threads.conversations import Conversations

_PROBE = 64 * 1024


def stats(services: NamespaceServices) -> Stats:
    """Count what a namespace holds; the index catches up with the files first."""
    settings, embedder = services.container.settings, services.container.embedder
    services.turns.sync(embed="none")
    seen = services.turns.check()
    counts = counted(services, embedder.name)
    return Stats(
        home=str(settings.home),
        namespace=services.namespace,
        conversations=seen.conversations,
        turns=seen.turns,
        indexed=seen.words_indexed + seen.words_in_memory,
        vectors=seen.vectors,
        pending=seen.pending,
        memories=services.vectors.records(),
        embedder=embedder.name,
        bytes={
            "threads": _size(services.conversations.directory),
            "truth": sum(_size(path) for path in settings.home.glob("anaphora.db*")),
            "index": seen.size,
        },
        projects=counts.projects,
        files=counts.files,
        sections=counts.sections,
        sections_pending=counts.sections_pending,
        notes=counts.observations + counts.diary,
        gaps=counts.gaps,
        jobs=counts.jobs,
        traces=counts.traces,
    )


def doctor(services: NamespaceServices, *, mend: bool = False) -> tuple[Check, ...]:
    """Look at every part; `mend` first mends what can be mended without touching a word.

    Nothing raises: a part that fails is a finding.
    """
    from anaphora.deep.checks import deep_checks
    from anaphora.ops.repair import repair

    container = services.container
    settings, embedder = container.settings, container.embedder
    mended: tuple[Check, ...] = ()
    if mend:
        mended = repair(
            container,
            services.namespace,
            services.turns,
            fill_vectors=services.remember.fill_vectors,
            mend_sections=lambda: repair_sections(services),
        )
    return (
        *mended,
        _home(settings),
        file_systems((settings.home, settings.conversations)),
        *_sealing(settings),
        *_threads(services.conversations),
        _truth(container.truth),
        *_index(services.turns),
        _memories(services.vectors, embedder),
        _embedder(embedder),
        *lane_checks(services),
        *deep_checks(container.tools),
    )


def _home(settings: Settings) -> Check:
    place = settings.home
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as probe:
            # A full disk takes a name but no bytes.
            probe.write(bytes(_PROBE))
            probe.flush()
            os.fsync(probe.fileno())
            return Check("home", ok=True, detail=f"{settings.home} can be written")
    except OSError as error:
        return Check(
            "home", ok=False, detail=f"{settings.home} cannot be written: {error.strerror}"
        )


def _sealing(settings: Settings) -> Iterator[Check]:
    """Whether the home is sealed, its key to be had, and nothing beside it left in clear."""
    from anaphora.store.home.conversion import left_in_clear
    from anaphora.store.home.sealing import Home

    home = Home(settings.home, settings.conversations, settings.database)
    found, sealed = _seal(home)
    yield found
    try:
        left = left_in_clear(home) if sealed else ()
    except AnaphoraError as error:
        yield Check("sealing", ok=False, detail=str(error))
        return
    for place in left:
        yield Check("sealing", ok=False, detail=f"{place} is not ours, and lies here in clear")


def _seal(home: Home) -> tuple[Check, bool]:
    from anaphora.store.crypto import marker as markers
    from anaphora.store.crypto.key_stores import Keychain
    from anaphora.store.home.master_key import load_keys

    try:
        marker = markers.read(home.root)
        if marker is not None:
            load_keys(home, marker)
            where = "the keychain" if marker.kept == "keychain" else "a file of the home, in clear"
            detail = f"sealed; key {marker.key_name} is in {where}"
            return Check("sealing", ok=marker.state == "sealed", detail=detail), True
    except AnaphoraError as error:
        return Check("sealing", ok=False, detail=str(error)), True
    try:
        return Check("sealing", ok=True, detail=f"clear; keychain: {Keychain().name()}"), False
    except (MissingExtra, NoKeyringError) as error:
        # A clear home needs none.
        return Check("sealing", ok=True, detail=f"clear; {error}"), False


def _threads(conversations: Conversations) -> Iterator[Check]:
    listed = conversations.list()
    turns = sum(summary.turn_count for summary in listed)
    where = conversations.directory or "the database"
    detail = f"{len(listed):,} conversations, {turns:,} turns in {where}"
    yield Check("threads", ok=True, detail=detail)
    for problem in conversations.problems():
        yield Check("threads", ok=False, detail=str(problem))


def _truth(truth: Database) -> Check:
    from anaphora.store.db.health import check_truth

    health = check_truth(truth)
    detail = [f"{health.kind} {health.version}", f"schema {health.revision or 'not made yet'}"]
    if health.wal_is_safe is not None:
        safe = "has the fix for write-ahead logs" if health.wal_is_safe else "too old for WAL"
        detail.append(f"{health.journal} journal ({safe})")
    return Check("truth", ok=not health.problems, detail="; ".join([*detail, *health.problems]))


def _index(index: TurnIndex) -> Iterator[Check]:
    followed = index.sync(embed="none")
    seen = index.check()
    detail = (
        f"{seen.turns:,} turns, {seen.vectors:,} vectors, {seen.pending:,} to come, "
        f"{seen.size / 1e6:.1f} MB" + (f"; {FINISH_VECTORS}" if seen.pending else "")
    )
    yield Check("index", ok=not seen.problems and not seen.failed, detail=detail)
    for problem in [*seen.problems, *map(str, followed.degraded)]:
        yield Check("index", ok=problem.startswith("vectors:") and not seen.failed, detail=problem)


def _memories(vectors: RecordVectors, embedder: EmbedderService) -> Check:
    known = vectors.records()
    here, _ = vectors.counts().get(embedder.name, (0, 0))
    others = {name: count for name, (count, _) in vectors.counts().items() if name != embedder.name}
    detail = f"{known:,} memories, {here:,} with vectors of {embedder.name}"
    if others:
        detail += f"; other embedders: {', '.join(f'{n} ({c:,})' for n, c in others.items())}"
    if here < known:
        detail += "; the rest are found by words until `ready` or `reindex`"
    return Check("memories", ok=True, detail=detail)


def _embedder(embedder: EmbedderService) -> Check:
    if embedder.ready(timeout=60):
        return Check(
            "embedder", ok=True, detail=f"{embedder.name}, {embedder.dimensions} dimensions"
        )
    reason = embedder.failure or "still loading after 60 s"
    return Check("embedder", ok=False, detail=f"{embedder.name}: {reason}")


def _size(place: Path | None) -> int:
    if place is None or not place.exists():
        return 0
    if place.is_file():
        return place.stat().st_size
    return sum(
        (Path(folder) / name).stat().st_size
        for folder, _, names in os.walk(place)
        for name in names
    )
