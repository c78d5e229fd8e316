"""`Memory.sync`: setting a namespace up to be synced, and syncing it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.arguments import checks_arguments
from anaphora.errors import InvalidInput, RemoteError, SyncError
from anaphora.store.threads.files import ThreadLocks
from anaphora.sync.client import (
    Membership,
    Progress,
    SyncClient,
    membership_of,
    new_device,
    new_membership,
)
from anaphora.sync.loop import EVERY, SyncLoop
from anaphora.sync.remotes.opening import open_remote
from anaphora.sync.store import SyncStore
from anaphora.values.sync import SyncReport, SyncStatus

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_MEMBER: Final = "member"
_REMOTE: Final = "remote"
_LAST: Final = "last"
_STOPPED: Final = "stopped"
_PREFIX: Final = "anaphora-sync-1:"


@checks_arguments
class Sync:
    """One namespace and its remote. Nothing leaves this machine but by its methods."""

    def __init__(self, services: NamespaceServices) -> None:
        self._services = services
        self._store = SyncStore(
            services.truth, services.namespace, services.sealing.rows, lambda item, _: item
        )

    def init(self, remote: str, *, token: str | None = None, key: str | None = None) -> SyncStatus:
        """Sync this namespace with a folder (its absolute path), a server (its URL) or S3 storage.

        `token` is one of that server, or "key id:secret key" of the storage. Without a `key` it
        begins a project of its own; with the key that `export_key` gave on another device it joins
        that one's, and what both have becomes one. Nothing is sent before `now`. Raises
        InvalidInput for a bad address or key, or where it is synced already.
        """
        known = self._store.get(_MEMBER)
        if known is not None:
            raise InvalidInput("remote", remote, "this namespace is synced already; leave it first")
        try:
            with closing(open_remote(remote, token)) as there:
                there.check()
        except RemoteError as error:
            raise InvalidInput("remote", remote, error.reason) from error
        random = self._services.container.home.random
        member = new_membership(random) if key is None else _joined(key, new_device(random))
        with self._store.change() as work:
            work.put(_MEMBER, member.line())
            work.put(_REMOTE, [remote, token])
        return self.status()

    def now(self, *, progress: Progress | None = None) -> SyncReport:
        """Send what was noticed here, and take in what other devices have sent.

        Nothing is lost where it fails: it is sent the next time. Raises InvalidInput where the
        namespace is not synced, SyncError and its kinds, StoreError and its kinds.
        """
        try:
            with self._client() as client:
                report = client.now(progress)
        except SyncError as error:
            lasting = not isinstance(error, RemoteError) or error.lasting
            self._note(_STOPPED, str(error) if lasting else None)
            raise
        with self._store.change() as work:
            work.put(_LAST, self._services.clock().isoformat())
            work.put(_STOPPED, None)
        return report

    def start(self, every: float = EVERY) -> bool:
        """Exchange every so many seconds in the background, until the memory is closed.

        False, and nothing begins, where this namespace is not synced. Exchanges that did anything
        are told as the event "sync"; a remote that is away is asked again, later and later. What
        trying again cannot mend ends it, and `status().stopped` says why.
        """
        if every <= 0:
            raise InvalidInput("every", every, "expected more than 0 seconds")
        if self._store.get(_MEMBER) is None:
            return False
        container = self._services.container
        loop = SyncLoop(self.now, lambda report: container.tell("sync", report), every)
        container.closers.append(loop.stop)
        loop.start()
        return True

    def status(self) -> SyncStatus:
        """How far it has come; reaches for no remote."""
        line = self._store.get(_MEMBER)
        if line is None:
            return SyncStatus()
        member, last = membership_of(line), self._store.get(_LAST)
        with self._client() as client:
            devices = client.devices()
            waiting = client.waiting() + len(client.replica.pending())
        return SyncStatus(
            member.project,
            member.device,
            self._store.get(_REMOTE)[0],
            devices,
            waiting,
            None if last is None else datetime.fromisoformat(last),
            self._store.get(_STOPPED),
        )

    def export_key(self) -> str:
        """The key of the project, for another device. Whoever has it can read everything."""
        member = self._member()
        told = {"project": member.project, "key": member.key.hex(), "epoch": member.epoch}
        return _PREFIX + base64.urlsafe_b64encode(json.dumps(told).encode()).decode("ascii")

    def hash_of(self, name: str) -> str:
        """What a path, or a conversation's id, is found by at a server: its `query_hash`."""
        with self._client() as client:
            return client.hash_of(name)

    def fork(self) -> SyncStatus:
        """Go on as a device of its own: a home that was copied, or restored from a backup.

        What the old name has sent is read as another device's.
        """
        old = self._member()
        fresh = new_device(self._services.container.home.random)
        member = Membership(old.project, fresh, old.key, old.epoch)
        with self._lock(), self._store.change() as work:
            work.put(_MEMBER, member.line())
            work.put(_STOPPED, None)
            work.adopt(old.device)
        return self.status()

    def leave(self) -> None:
        """Stop syncing this namespace. What is here stays; the remote keeps what it has."""
        self._member()
        with self._lock(), self._store.change() as work:
            work.forget_all()

    def note_removal(self) -> None:
        """Let what was forgotten here leave what is kept for other devices; `removal` asks it."""
        with self._client() as client:
            client.note_removal()

    def _member(self) -> Membership:
        line = self._store.get(_MEMBER)
        if line is None:
            raise InvalidInput("sync", None, "this namespace is not synced: `sync init` first")
        return membership_of(line)

    @contextmanager
    def _client(self) -> Iterator[SyncClient]:
        member = self._member()
        random = self._services.container.home.random
        with closing(open_remote(*self._store.get(_REMOTE))) as remote:
            yield SyncClient(self._services, member, remote, random, self._lock, self._try_lock)

    @property
    def _try_lock(self) -> Callable[[], AbstractContextManager[bool]]:
        locks, name = self._locks
        return lambda: locks.try_hold(name)

    @property
    def _lock(self) -> Callable[[], AbstractContextManager[None]]:
        """What one process at a time holds while it syncs this namespace."""
        locks, name = self._locks
        return lambda: locks.hold(name)

    @property
    def _locks(self) -> tuple[ThreadLocks, str]:
        name = hashlib.sha256(self._services.namespace.encode()).hexdigest()[:16]
        return ThreadLocks(self._services.container.home.root), f"sync-{name}"

    def _note(self, name: str, value: Any) -> None:
        with self._store.change() as work:
            work.put(name, value)


def _joined(key: str, device: str) -> Membership:
    text = key.strip()
    try:
        if not text.startswith(_PREFIX):
            raise ValueError("it does not begin so")
        found = json.loads(base64.urlsafe_b64decode(text.removeprefix(_PREFIX)))
        return Membership(
            str(found["project"]), device, bytes.fromhex(found["key"]), int(found["epoch"])
        )
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise InvalidInput("key", "…", "not what `sync key` gave on another device") from error
