"""A home: what all of its namespaces share, and the namespaces that are open."""

from __future__ import annotations

# Not when it is first needed: Python lets nobody import it once the main thread has ended.
import concurrent.futures.thread  # noqa: F401
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from anaphora.container.namespace import NamespaceServices
from anaphora.core.calls import Calls
from anaphora.core.config import Settings, remember_embedder
from anaphora.core.progress import Progress, prefixed
from anaphora.errors import Closed
from anaphora.values.memories import Reindexed

if TYPE_CHECKING:
    from anaphora.deep.models.base import ModelRole
    from anaphora.deep.tools import DeepTools
    from anaphora.embed.base import Embedder
    from anaphora.embed.service import EmbedderService, ShareModel
    from anaphora.store.db.engine import Database
    from anaphora.store.home.sealing import Home, Sealing

Handler = Callable[[Any], None]
"""A listener of the caller: called with the value of an event."""

EVENTS = ("cache", "remember", "recall", "sync", "sync_stopped", "mirror", "mirror_stopped")
OPEN_NAMESPACES = 64
"""Namespaces that hold files and vectors at a time; a service may have ten thousand of them."""

_log = logging.getLogger("anaphora")


@dataclass(slots=True)
class Container:
    """What all views on one home share. Safe to share between threads."""

    settings: Settings
    home: Home
    truth: Database
    sealing: Sealing
    embedder: EmbedderService
    tools: DeepTools
    clock: Callable[[], datetime]
    ids: Callable[[], str]
    handlers: dict[str, list[Handler]]
    calls: Calls = field(default_factory=Calls)
    closers: list[Callable[[], object]] = field(default_factory=list)
    on_removal: Callable[[NamespaceServices], object] = lambda _: None
    _open: dict[str, NamespaceServices] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _closed: bool = False

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

        Nothing is written, no model loaded and no namespace opened. Raises `InvalidInput`,
        `EncryptionError` when a sealed home's key is not to be had.
        """
        from anaphora.deep.tools import DeepTools
        from anaphora.embed.service import EmbedderService, spec_for
        from anaphora.store.db.engine import open_database
        from anaphora.store.home.opening import open_home
        from anaphora.store.home.sealing import Home
        from anaphora.store.records.ids import RecordIds

        home = Home(settings.home, settings.conversations, settings.database)
        now = clock or (lambda: datetime.now(UTC))
        service = EmbedderService(
            spec_for(settings.embedder if embedder is None else embedder, share=share_model),
            cache_size=cache_size,
            on_cache=lambda event: container.tell("cache", event),
        )
        container = cls(
            settings=settings,
            home=home,
            truth=open_database(home.truth),
            sealing=open_home(home, encrypt),
            embedder=service,
            tools=DeepTools(settings, model, sub_model),
            clock=now,
            ids=RecordIds(now),
            handlers={event: [] for event in EVENTS},
        )
        return container

    def namespace(self, name: str) -> NamespaceServices:
        """The services of a namespace, the same while it is open. Raises Closed."""
        with self._lock:
            if self._closed:
                raise Closed
            found = self._open.pop(name, None) or NamespaceServices(self, name)
            # The last in the dict is the one used last.
            self._open[name] = found
            for unused in list(self._open)[:-OPEN_NAMESPACES]:
                self._open.pop(unused).release()
            return found

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that holds or held anything, the default one first."""
        from anaphora.store.home.sealing import DEFAULT_NAMESPACE, folder_name
        from anaphora.store.threads.ids import SUFFIX, id_of

        found = set(self.truth.namespaces())
        folders = {folder_name(namespace) for namespace in found}
        for folder, _ in self.home.folders():
            # A long name's folder ends in a hash: such a namespace is known by its head alone.
            name = None if folder in folders else id_of(folder + SUFFIX)
            if name is not None:
                found.add(name)
        found.discard(DEFAULT_NAMESPACE)
        return (DEFAULT_NAMESPACE, *sorted(found))

    def tell(self, event: str, value: object) -> None:
        """Call the listeners of an event. One that fails is logged, and no more:

        what it was told of has happened, and the caller of the call did not ask for a listener.
        """
        for handler in tuple(self.handlers[event]):
            try:
                handler(value)
            except Exception:  # noqa: BLE001 - whatever a listener raises is its own trouble
                _log.exception("a listener to %r failed: %r", event, handler)

    def reindex(self, name: str, embedder: str | None, progress: Progress | None) -> Reindexed:
        """Make the vectors that are missing, of this embedder or another; see `Memory.reindex`."""
        if embedder is None:
            return self.namespace(name).reindex(progress)
        from anaphora.embed.service import EmbedderService, spec_for

        service = EmbedderService(spec_for(embedder), cache_size=0)
        # The embedder is the whole home's: a namespace left behind would have words alone.
        names = (name, *(one for one in self.namespaces() if one != name))
        done = Reindexed(service.name, 0, 0, 0, 0)
        try:
            for one in names:
                other = NamespaceServices(replace(self, embedder=service), one)
                try:
                    done += other.reindex(progress if len(names) == 1 else prefixed(progress, one))
                finally:
                    other.close()
        finally:
            service.close()
        remember_embedder(self.settings, embedder)
        return done

    def close(self, seconds: float | None = None) -> bool:
        """Wait for calls, at most so many seconds, and close all; False when that was done before.

        What still runs then ends in `Closed`.
        """
        # What works in the background for this home ends first.
        while self.closers:
            self.closers.pop()()
        if not self.calls.finish(seconds):
            _log.warning("closing a memory while calls to it are still under way")
        with self._lock:
            if self._closed:
                return False
            self._closed = True
        for namespace in self._open.values():
            namespace.close()
        self.tools.close()
        self.embedder.close()
        self.truth.close()
        return True
