"""A home: what all of its namespaces share, and the namespaces that are open."""

from __future__ import annotations

# Imported early: once the main thread has ended, Python refuses to import it.
import concurrent.futures.thread  # noqa: F401
import logging
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from anaphora.calls.counting import Calls
from anaphora.calls.progress import Progress, prefixed
from anaphora.container.feature import registered
from anaphora.container.namespace import NamespaceServices
from anaphora.errors import AnaphoraError, Closed, Locked, StoreError
from anaphora.index.maintenance import Background
from anaphora.language.names import standing_form
from anaphora.settings import Settings, remember_embedder
from anaphora.system.zones import UserClock
from anaphora.values.memories import Reindexed

if TYPE_CHECKING:
    from anaphora.container.languages import LanguageNotice
    from anaphora.embed.base import Embedder
    from anaphora.embed.registry import EmbedderRegistry
    from anaphora.embed.service import EmbedderService, ShareModel
    from anaphora.errors import EndpointError
    from anaphora.ingest.judging import PairJudge
    from anaphora.reading.service import ReaderService
    from anaphora.store.db.engine import Database
    from anaphora.store.home.sealing import Home, Sealing
    from anaphora.values.models import ModelRole

Handler = Callable[[Any], None]
"""A listener of the caller: called with the value of an event."""

_EVENTS: Final = ("cache", "remember", "recall", "contradiction")


class Closable(Protocol):
    """What has files, connections or threads to end."""

    def close(self) -> object:
        """End them."""


SharedT = TypeVar("SharedT", bound=Closable)

OPEN_NAMESPACES = 64
"""Namespaces that hold files and vectors at a time; a service may have ten thousand of them."""

STAND_IN = "minilm"
"""The local embedder that answers while an endpoint is away."""

_log = logging.getLogger("anaphora")


@dataclass(slots=True)
class Container:
    """What all views on one home share. Safe to share between threads."""

    settings: Settings
    home: Home
    truth: Database
    sealing: Sealing
    embedder: EmbedderService
    registry: EmbedderRegistry
    # Answers while an endpoint is away; None where the embedder runs here.
    stand_in: EmbedderService | None
    # Reads questions with what was found; None where it is off, or none is installed.
    reader: ReaderService | None
    languages: LanguageNotice
    # The language models that the caller gave: the one that writes, and the one that reads.
    models: tuple[ModelRole | None, ModelRole | None]
    # The present as it was given, and in the user's zone.
    clock: UserClock
    ids: Callable[[], str]
    handlers: dict[str, list[Handler]]
    calls: Calls = field(default_factory=Calls)
    closers: list[Callable[[], object]] = field(default_factory=list)
    cleaning: Background = field(default_factory=partial(Background, "anaphora-cleaning"))
    _shared: dict[type, Any] = field(default_factory=dict)
    _open: dict[str, NamespaceServices] = field(default_factory=dict)
    _standing: dict[str, NamespaceServices] = field(default_factory=dict)
    _filled: dict[str, EndpointError] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _closed: bool = False
    _erasures: int | None = None

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        encrypt: bool | Literal["keychain", "file"] | None = None,
        embedder: str | Embedder | None = None,
        share_model: ShareModel | None = None,
        cache_size: int = 256,
        model: ModelRole | None = None,
        sub_model: ModelRole | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> Container:
        """The container of the home in `settings`; the other arguments are those of `Memory.open`.

        Nothing is written, no model loaded and no namespace opened. An endpoint that the home has
        not used before is asked what its vectors are. Raises `InvalidInput`, `EndpointError` when
        that fails, `EncryptionError` when a sealed home's key is not to be had.
        """
        from anaphora.container.languages import LanguageNotice
        from anaphora.embed.registry import EmbedderRegistry
        from anaphora.embed.service import EmbedderService, spec_for
        from anaphora.reading.service import PATIENCE, reader_service
        from anaphora.store.db.engine import open_database
        from anaphora.store.home.opening import open_home
        from anaphora.store.home.sealing import Home
        from anaphora.store.records.ids import RecordIds

        home = Home.of(settings)
        user_clock = UserClock(
            clock or partial(datetime.now, UTC), settings.timezone, settings.local_zone
        )
        registry = EmbedderRegistry(settings.home)

        def service_of(one: str | Embedder) -> EmbedderService:
            return EmbedderService(
                spec_for(one, share=share_model, settings=settings, registry=registry),
                cache_size=cache_size,
                on_cache=lambda event: container.tell("cache", event),
                registry=registry,
            )

        service = service_of(settings.embedder if embedder is None else embedder)
        truth = open_database(home.truth)
        truth.clock = user_clock
        features = registered()
        events = (*_EVENTS, *(event for feature in features for event in feature.events))
        container = cls(
            settings=settings,
            home=home,
            truth=truth,
            sealing=open_home(home, encrypt),
            embedder=service,
            registry=registry,
            stand_in=service_of(STAND_IN) if service.remote else None,
            # Without a model of its own a process is one command, which ends with its answer.
            reader=reader_service(
                settings.reader, patience=PATIENCE if share_model == "running" else 0.0
            ),
            languages=LanguageNotice(settings, service.name, registry),
            models=(model, sub_model),
            clock=user_clock,
            ids=RecordIds(user_clock),
            handlers={event: [] for event in events},
        )
        for feature in features:
            feature.open(container)
        return container

    def namespace(self, name: str, *, anew: bool = True) -> NamespaceServices:
        """The services of a namespace, the same while it is open. Raises Closed.

        `anew` looks first whether another process has deleted it; once in a call is enough.
        While the embedder is away they are others, with the local one: its vectors lie beside the
        endpoint's, are made as they are needed, and are never compared with them.
        """
        away_error = None if self.stand_in is None else self.embedder.away
        if self.stand_in is None or away_error is None:
            return self.own(name, anew=anew)
        services = self.own(name, anew=anew, stand_in=self.stand_in)
        if self._filled.get(name) is not away_error:
            # Once per outage of the endpoint.
            self._filled[name] = away_error
            services.filling.begin()
        return services

    def own(
        self, name: str, *, anew: bool = True, stand_in: EmbedderService | None = None
    ) -> NamespaceServices:
        """The same with the home's own embedder, even while it is away, or with this `stand_in`."""
        among = self._open if stand_in is None else self._standing
        with self._lock:
            if self._closed:
                raise Closed
            if anew:
                self._follow_erasures()
            services = among.pop(name, None)
            if services is None:
                container = self if stand_in is None else replace(self, embedder=stand_in)
                services = NamespaceServices(container, name)
                services.link_once_open()
            # Ordered by last use, the most recent at the end.
            among[name] = services
            for unused_name in list(among)[:-OPEN_NAMESPACES]:
                among.pop(unused_name).release()
            return services

    @property
    def judge(self) -> PairJudge:
        """Says what a later statement makes of an earlier one."""
        # A process that only recalls memories does without it.
        from anaphora.ingest.judging import bundled_judge

        return bundled_judge()

    def clean_in_background(self) -> None:
        """Begin to let words leave the files of which a forgetting did not wait for that."""
        from anaphora.container.forgetting import clean_due

        def clean() -> None:
            # What cannot be done now stays due.
            with suppress(AnaphoraError):
                while self.truth.uncleaned() and not self.cleaning.stopping.is_set():
                    if not clean_due(self):
                        break

        self.cleaning.begin(clean)

    def shared(self, kind: type[SharedT], make: Callable[[], SharedT]) -> SharedT:
        """What a feature shares among the namespaces of a home, made once; closed with the home."""
        with self._lock:
            if kind not in self._shared:
                self._shared[kind] = make()
            part: SharedT = self._shared[kind]
            return part

    def instead(self, services: NamespaceServices) -> str:
        """Which embedder replaces the endpoint, and why; "" if the endpoint itself answers."""
        away_error = self.embedder.away
        if away_error is None or services.embedder is self.embedder:
            return ""
        return f"{services.embedder.name} answers instead: {away_error}"

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that holds or held anything, the default one first."""
        from anaphora.store.home.sealing import DEFAULT_NAMESPACE, folder_name
        from anaphora.store.threads.ids import SUFFIX, id_of_escaped

        names = set(self.truth.namespaces())
        folders = {folder_name(namespace) for namespace in names}
        for folder, _ in self.home.folders():
            # A long name's folder ends in a hash: such a namespace is known by its head alone.
            name = None if folder in folders else id_of_escaped(folder + SUFFIX)
            if name is not None:
                names.add(name)
        names.discard(DEFAULT_NAMESPACE)
        return (DEFAULT_NAMESPACE, *sorted(names))

    def standing_namespace(self, name: str) -> str:
        """The form, composed or not, in which this namespace stands; composed where none does."""
        if name.isascii():
            return name
        try:
            return standing_form(name, self.namespaces().__contains__)
        except Locked:
            raise
        except StoreError:
            # The first real call reports what is wrong with the database.
            return name

    def erase_namespace(self, name: str) -> bool:
        """Delete everything that a namespace holds or held: rows, threads, index, and its name.

        No listing, count, backup or export has it afterwards; other processes that have it open
        let go of it with their next call. False where another program kept the write-ahead log of
        the database from being cut. Raises `StoreError` and its kinds.
        """
        from anaphora.container.erasing import remove_files

        with self._lock:
            for among in (self._open, self._standing):
                if (services := among.pop(name, None)) is not None:
                    services.close()
            self.truth.erase(name)
            self._erasures = self.truth.erasures()
        clean = self.truth.scrub(anew=True)
        remove_files(self, name)
        return clean

    def _follow_erasures(self) -> None:
        """Close all namespaces if another process has deleted one. The lock must be held."""
        try:
            count = self.truth.erasures()
        except Locked:
            # It has been waited for; the call that follows would wait as long again.
            raise
        except StoreError:
            # The call that follows reads the same database and reports its error.
            return
        previous, self._erasures = self._erasures, count
        if previous is None or previous == count:
            return
        from anaphora.container.erasing import remove_orphans

        for services in (*self._open.values(), *self._standing.values()):
            services.close()
        self._open.clear()
        self._standing.clear()
        remove_orphans(self)

    def tell(self, event: str, value: object) -> None:
        """Call the listeners of an event. A failing one is only logged:

        the event has happened, and the caller is not responsible for the listener.
        """
        for handler in tuple(self.handlers[event]):
            try:
                handler(value)
            except Exception:  # noqa: BLE001 - errors of a listener must not fail the call
                _log.exception("a listener to %r failed: %r", event, handler)

    def reindex(
        self, name: str, embedder: str | None, progress: Progress | None, *, links: bool
    ) -> Reindexed:
        """Make the vectors that are missing, of this embedder or another; see `Memory.reindex`."""
        from anaphora.container.filling import reindex

        if embedder is None:
            # With the home's own embedder, which may be available again, not with its replacement.
            self.embedder.look()
            return reindex(self.own(name), progress, anew=False, links=links)
        from anaphora.embed.service import EmbedderService, spec_for, whole_setting

        setting = whole_setting(embedder)
        spec = spec_for(setting, settings=self.settings, registry=self.registry, anew=True)
        service = EmbedderService(spec, cache_size=0, registry=self.registry)
        # The embedder is the whole home's: a namespace left behind would have words alone.
        names = (name, *(namespace for namespace in self.namespaces() if namespace != name))
        reindexed = Reindexed(service.name, 0, 0, 0, 0)
        try:
            for namespace in names:
                services = NamespaceServices(replace(self, embedder=service), namespace)
                try:
                    named_progress = progress if len(names) == 1 else prefixed(progress, namespace)
                    reindexed += reindex(services, named_progress, anew=True, links=links)
                finally:
                    services.close()
        finally:
            service.close()
        remember_embedder(self.settings, setting)
        return reindexed

    def cut_logs(self, least: int = 1 << 18) -> None:
        """Merge write-ahead logs of `least` bytes and more into their databases, and cut them.

        One that another program reads for long stays as it is. Raises `StoreError` and its kinds.
        """
        from anaphora.store.db import sqlite

        truth = () if self.truth.path is None else (self.truth.path,)
        for path in (*truth, *self.home.root.glob("index/*/turns.sqlite")):
            log = path.with_name(f"{path.name}-wal")
            if log.is_file() and log.stat().st_size >= least:
                with closing(sqlite.connect(path)) as connection:
                    sqlite.cut_log(connection, path)

    def close(self, seconds: float | None = None) -> bool:
        """Wait for calls, at most so many seconds, and close all; False when that was done before.

        What still runs then ends in `Closed`.
        """
        # What works in the background for this home ends first.
        while self.closers:
            self.closers.pop()()
        self.cleaning.stop()
        if not self.calls.finish(seconds):
            _log.warning("closing a memory while calls to it are still under way")
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            if self._open or self._standing:
                with suppress(Locked):
                    self._follow_erasures()
        for namespace in (*self._open.values(), *self._standing.values()):
            namespace.close()
        for part in self._shared.values():
            part.close()
        self.embedder.close()
        if self.stand_in is not None:
            self.stand_in.close()
        if self.reader is not None:
            self.reader.close()
        self.truth.close()
        return True
