"""`Memory.sync`: setting a namespace up to be synced, and syncing it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from anaphora.calls.arguments import checked
from anaphora.calls.caller import CallOrigin, called_from
from anaphora.container.erasing import hold_namespace
from anaphora.errors import AnaphoraError, InvalidInput, RemoteError, SyncError
from anaphora.features.sync.admission import admission_of
from anaphora.features.sync.client import SyncClient
from anaphora.features.sync.conflicts import CONFLICT_AGE, conflict_of
from anaphora.features.sync.membership import (
    MEMBER,
    Membership,
    join_project,
    membership_of,
    new_membership,
)
from anaphora.features.sync.opening import open_entry
from anaphora.features.sync.pairing import PATIENCE, Meeting, new_code, read_code
from anaphora.features.sync.project import Devices, SyncProject
from anaphora.features.sync.reader import Progress
from anaphora.features.sync.remotes.base import Remote
from anaphora.features.sync.remotes.opening import open_remote
from anaphora.features.sync.rollback import roll_back
from anaphora.features.sync.store import CAPTURED, CONFLICTS, SyncStore
from anaphora.features.sync.values import (
    SYNC_EVERY,
    SyncConflict,
    SyncDevice,
    SyncEntry,
    SyncReport,
    SyncRollback,
    SyncStatus,
    SyncVerification,
)
from anaphora.store.crypto.cipher import Random
from anaphora.system.repeating import RepeatedCall

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_REMOTE: Final = "remote"
_LAST: Final = "last"
_STOPPED: Final = "stopped"
_PREFIX: Final = "anaphora-sync-1:"
_TRIES: Final = 8


class Sync:
    """One namespace and its remote. Nothing leaves this machine but by its methods."""

    def __init__(self, services: NamespaceServices) -> None:
        self._services = services
        self._store = SyncStore(
            services.truth, services.namespace, services.sealing.rows, lambda item, _: item
        )

    @checked
    def init(
        self,
        remote: str,
        *,
        token: str | None = None,
        code: str | None = None,
        key: str | None = None,
        name: str = "",
    ) -> SyncStatus:
        """Sync this namespace with a folder (its absolute path), a server (its URL) or S3 storage.

        `token` is one of that server, or "key id:secret key" of the storage; `name` is what the
        other devices call this one. It begins a project of its own, unless it joins one: by the
        `code` that `pair` shows on another device meanwhile, or the key that `export_key` gave
        there. What both have becomes one. Nothing is sent before `now`. Raises InvalidInput for a
        bad address, code or key, or where it is synced already, PairingFailed for a wrong code.
        """
        if self._store.get(MEMBER) is not None:
            raise InvalidInput("remote", remote, "this namespace is synced already; leave it first")
        if code is not None and key is not None:
            raise InvalidInput("code", "…", "give a code or a key, not both")
        random = self._random
        pairing_code = None if code is None else read_code(code)
        invitation: dict[str, Any] = {}
        try:
            with closing(open_remote(remote, token)) as target:
                target.check()
                if pairing_code is not None:
                    invitation = Meeting(target, pairing_code, random, self._wait).join(PATIENCE)
        except RemoteError as error:
            raise InvalidInput("remote", remote, error.reason) from error
        if key is not None:
            invitation = _read_key(key)
        with self._store.change() as work:
            work.put(_REMOTE, [remote, token])
            if invitation:
                keys = {
                    epoch: bytes.fromhex(digits) for epoch, digits in invitation["keys"].items()
                }
                member = join_project(invitation["project"], keys, name, random)
                project = SyncProject(self._store, member, random)
                project.devices = Devices(admission=admission_of(invitation["admission"]))
                project.save(work)
            else:
                work.put(MEMBER, new_membership(name, random).line())
        return self.status()

    @checked
    def now(self, *, progress: Progress | None = None) -> SyncReport:
        """Send what was noticed here, and take in what other devices have sent.

        Nothing is lost where it fails: it is sent the next time. Raises InvalidInput where the
        namespace is not synced, SyncError and its kinds, StoreError and its kinds.
        """
        try:
            with called_from(CallOrigin("sync")), self._client() as client:
                report = client.now(progress)
                clashes = client.clashes
        except SyncError as error:
            lasting = not isinstance(error, RemoteError) or error.lasting
            self._put_state(_STOPPED, str(error) if lasting else None)
            if lasting:
                self._services.container.tell("sync_stopped", self.status())
            raise
        except (RecursionError, ArithmeticError, MemoryError) as error:
            reason = f"what it gave cannot be read ({type(error).__name__})"
            lasting_error = RemoteError(str(self._store.get(_REMOTE)[0]), reason, lasting=True)
            self._put_state(_STOPPED, str(lasting_error))
            self._services.container.tell("sync_stopped", self.status())
            raise lasting_error from error
        except AnaphoraError:
            raise
        except Exception as error:
            # Background sync ends here, and this state is all that tells why.
            reason = f"an unexpected error ({type(error).__name__}); `doctor` tells more"
            self._put_state(_STOPPED, reason)
            raise
        with self._store.change() as work:
            work.put(_LAST, self._services.clock().isoformat())
            work.put(_STOPPED, None)
        if clashes:
            report = replace(report, conflicts=self._read_conflicts(clashes))
        if report.received:
            self._services.link_in_background()
        if report.sent or report.received:
            self._services.container.tell("sync", report)
        return report

    @checked
    def start(self, every: float = SYNC_EVERY) -> bool:
        """Exchange every so many seconds in the background, until the memory is closed.

        False, and nothing begins, where this namespace is not synced. A remote that is away is
        asked again, later and later. What trying again cannot mend ends it: `status().stopped` and
        the event "sync_stopped" say why.
        """
        if every <= 0:
            raise InvalidInput("every", every, "expected more than 0 seconds")
        if self._store.get(MEMBER) is None:
            return False
        loop = RepeatedCall("sync", self.now, every)
        self._services.container.closers.append(loop.stop)
        loop.start()
        return True

    def status(self) -> SyncStatus:
        """How far it has come; reaches for no remote."""
        line = self._store.get(MEMBER)
        if line is None:
            return SyncStatus()
        member, last_synced = membership_of(line), self._store.get(_LAST)
        # A change takes one number or more, and an entry holds many changes: the difference counts
        # no entries.
        has_uncounted = self._services.conversation.sidecar.version() > self._store.get(CAPTURED, 0)
        with self._client() as client:
            devices = {device.device: device.entries for device in client.devices()}
            waiting = client.waiting()
        return SyncStatus(
            member.project,
            member.device,
            self._store.get(_REMOTE)[0],
            devices,
            waiting,
            None if last_synced is None else datetime.fromisoformat(last_synced),
            self._store.get(_STOPPED),
            has_uncounted,
        )

    def conflicts(self) -> tuple[SyncConflict, ...]:
        """What two devices said of one thing without knowledge of each other, the last first.

        Those of the last 30 days of which one side is still current. A new value of the path, or
        forgetting one side, ends a conflict.
        """
        return self._read_conflicts(None)

    def _read_conflicts(self, last: int | None) -> tuple[SyncConflict, ...]:
        """The last `last` conflicts, or all."""
        lines = self._store.get(CONFLICTS, [])
        with self._client() as client:
            names = {device.device: device.name or device.device for device in client.devices()}
        since = self._services.clock() - CONFLICT_AGE
        read = (
            conflict_of(line, self._services.memory.records.find, names, since)
            for line in reversed(lines[-last:] if last else lines)
        )
        return tuple(conflict for conflict in read if conflict is not None)

    def export_key(self) -> str:
        """The key of the project, for another device. It gives access to everything."""
        return _PREFIX + base64.urlsafe_b64encode(json.dumps(self._invitation()).encode()).decode(
            "ascii"
        )

    def pair(self) -> Pairing:
        """Let one device join by a short code: show its `code`, then `wait` until it was typed."""
        member = self._load_membership()
        for _ in range(_TRIES):
            code = new_code(self._random)
            remote = self._open_remote()
            meeting = Meeting(remote, code, self._random, self._wait)
            if meeting.is_free():
                return Pairing(code, remote, meeting, self._invitation)
            remote.close()
        raise SyncError(member.project, "no meeting place is free")

    def devices(self) -> tuple[SyncDevice, ...]:
        """The devices of the project as far as they are known here; reaches for no remote."""
        with self._client() as client:
            return tuple(client.devices())

    @checked
    def remove(self, device: str, *, progress: Progress | None = None) -> tuple[SyncDevice, ...]:
        """Remove a device, by its identifier or its name, and give the others a new key.

        What it has, it has: it reads nothing that is written from now on, and what it writes does
        not count. Raises InvalidInput for none or this one, SyncError and its kinds.
        """
        matches = [
            candidate.device
            for candidate in self.devices()
            if device in (candidate.device, candidate.name)
        ]
        if len(matches) > 1:
            raise InvalidInput("device", device, f"several are called so: {', '.join(matches)}")
        with self._client() as client:
            client.remove(matches[0] if matches else device, progress)
        return self.devices()

    @checked
    def verify(self, *, progress: Progress | None = None) -> SyncVerification:
        """Read everything in the remote once more, and compare it with what was read and sent.

        Raises RemoteTampered for the first entry that is not what it was, RemoteError.
        """
        with self._client() as client:
            return client.verify(progress)

    @checked
    def compact(self, *, progress: Progress | None = None) -> SyncReport:
        """Say all that counts again in few entries, where a new device begins; others are emptied.

        It happens by itself after a thousand entries.
        """
        with self._client() as client:
            return client.compact(progress)

    @checked
    def rollback(self, to: datetime | str, *, dry_run: bool = False) -> SyncRollback:
        """Let what held at a time, or when an entry of this id was made, hold again.

        It says earlier values again, hides memories that were new since (`undo_forget` shows them
        again) and shows those that were hidden: history stays, and devices take it in as any
        change. What was forgotten for good is gone, and turns stay. Raises InvalidInput for a time
        to come, NotFound for an entry that is not known.
        """
        self._load_membership()
        with self._client() as client:
            at = client.time_of(to) if isinstance(to, str) else to
        if at.tzinfo is None or at > self._services.clock():
            raise InvalidInput("to", to, "expected a time in the past, with its time zone")
        return roll_back(self._services, at, dry_run=dry_run)

    @checked
    def hash_of(self, name: str) -> str:
        """What a path, or a conversation's id, is found by at a server: its `query_hash`."""
        with self._client() as client:
            return client.hash_of(name)

    @checked
    def open(self, payload: Mapping[str, Any] | str | bytes) -> SyncEntry:
        """Open what a server gave for a `query_hash`: its `payload`, or the whole answer.

        Nothing is taken in, and no remote is asked. Raises InvalidInput for what is no entry,
        WrongKey for one of another project or of a key that this device does not have,
        RemoteTampered for one that was altered or cut.
        """
        return open_entry(SyncProject(self._store, self._load_membership(), self._random), payload)

    def fork(self) -> SyncStatus:
        """Go on as a device of its own: a home that was copied, or restored from a backup.

        What the old name has sent is read as another device's.
        """
        old_member = self._load_membership()
        forked_member = join_project(
            old_member.project, old_member.keys, old_member.name, self._random
        )
        with self._lock(), self._store.change() as work:
            work.put(MEMBER, forked_member.line())
            work.put(_STOPPED, None)
            work.adopt(old_member.device)
        return self.status()

    def leave(self) -> None:
        """Stop syncing this namespace. What is here stays; the remote keeps what it has."""
        self._load_membership()
        with self._lock(), self._local_lock():
            with self._store.change() as work:
                work.forget_all()
            # The project's key must not stay in the write-ahead log.
            self._services.truth.scrub()

    def note_removal(self) -> None:
        """Let what was forgotten here leave what is kept for other devices; `removal` asks it."""
        with self._client() as client:
            client.note_removal()

    def _load_membership(self) -> Membership:
        line = self._store.get(MEMBER)
        if line is None:
            raise InvalidInput(
                "sync", None, "this namespace is not synced: run `anaphora sync init FOLDER` first"
            )
        return membership_of(line)

    @contextmanager
    def _client(self) -> Iterator[SyncClient]:
        member = self._load_membership()
        with closing(self._open_remote()) as remote:
            yield SyncClient(
                self._services, member, remote, self._random, self._lock, self._local_lock
            )

    def _open_remote(self) -> Remote:
        return open_remote(*self._store.get(_REMOTE))

    def _invitation(self) -> dict[str, Any]:
        """The invitation of a device: the keys of the project, and which devices count."""
        project = SyncProject(self._store, self._load_membership(), self._random)
        admission = project.devices.admission
        return {
            "project": project.name,
            "keys": {epoch: key.hex() for epoch, key in project.membership.keys.items()},
            "admission": admission.line(),
            "removed": dict(admission.limits),
        }

    @property
    def _random(self) -> Random:
        return self._services.container.home.random

    def _wait(self, seconds: float) -> None:
        """Wait for some seconds."""
        Event().wait(seconds)

    def _lock(self) -> AbstractContextManager[None]:
        """The lock of syncing this namespace, of one process at a time."""
        return self._hold_lock("sync")

    def _local_lock(self) -> AbstractContextManager[None]:
        """The lock of the local sync state.

        It is never held while waiting for a remote, so that forgetting waits for no exchange.
        """
        return self._hold_lock("sync here")

    def _hold_lock(self, purpose: str) -> AbstractContextManager[None]:
        return hold_namespace(self._services.container, purpose, self._services.namespace)

    def _put_state(self, name: str, value: Any) -> None:
        with self._store.change() as work:
            work.put(name, value)


class Pairing:
    """A code that lets one device join while `wait` runs."""

    def __init__(
        self,
        code: str,
        remote: Remote,
        meeting: Meeting,
        invitation: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.code = code
        self._remote = remote
        self._meeting = meeting
        self._invitation = invitation
        self._offer = meeting.offer()

    def wait(self, patience: float = PATIENCE) -> None:
        """Until it was typed; so many seconds for each step. PairingFailed, or RemoteError."""
        with closing(self._remote):
            self._meeting.hand_over(self._offer, self._invitation(), patience)


def _read_key(key: str) -> dict[str, Any]:
    text = key.strip()
    try:
        if not text.startswith(_PREFIX):
            raise ValueError("it does not begin so")
        invitation = json.loads(base64.urlsafe_b64decode(text.removeprefix(_PREFIX)))
        keys = {
            str(epoch): bytes.fromhex(digits).hex() for epoch, digits in invitation["keys"].items()
        }
        if not keys:
            raise ValueError("it has no key")
        admission_of(invitation["admission"])
        return {**invitation, "project": str(invitation["project"]), "keys": keys}
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise InvalidInput("key", "…", "not what `sync key` gave on another device") from error
