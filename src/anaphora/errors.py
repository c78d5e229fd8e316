"""Every error that Anaphora raises on purpose, drawn as one tree.

AnaphoraError
├── InvalidInput (also ValueError)      invalid input from the caller
│   ├── InvalidId                       a conversation id or namespace name
│   ├── InvalidTurn                     a turn's role, time or text
│   ├── FilterError                     a filter that cannot be read; it names the place
│   ├── Conflict                        another writer came first; read again, then write
│   ├── UnknownFormat                   a file that no importer recognises
│   └── UnreadableDocument              a document whose text cannot be had
├── NotFound (also KeyError)            an id that does not exist
│   └── NoHome                          a home in which nothing was ever stored
├── StoreError                          stored data could not be read or written
│   ├── ReadOnly                        the location is not writable
│   ├── DiskFull                        no space left; nothing was half-written
│   ├── Locked                          another program holds a lock on it
│   ├── CorruptThread                   a thread file that does not parse; it was kept
│   ├── NotEmpty                        the target exists or is not empty
│   ├── DamagedBackup                   a damaged backup or export
│   ├── SchemaTooNew                    a home that a newer version wrote
│   ├── SchemaTooOld                    a home that an older build wrote
│   └── Unreadable                      an invalid row; all others can be read
├── EmbeddingError                      a text could not be turned into a vector
│   ├── ModelIntegrityError             the model file is not the one that was shipped
│   ├── EmbedderNotReady                the model is still loading
│   └── EndpointError                   the embedding endpoint is unavailable
│       ├── EndpointUnreachable         it does not answer, or only that it cannot
│       ├── EndpointDenied              it does not accept the key
│       ├── EndpointModelUnknown        it does not have the model
│       └── EmbedderChanged             it gives other vectors than it did
├── ReaderError                         question and statements could not be read together
├── EncryptionError                     an encrypted home that cannot be opened or trusted
│   ├── NoKeyringError                  there is no keychain to keep the master key in
│   ├── MissingKey                      the keychain or the key file has no key of this home
│   ├── WrongKey                        a key or passphrase that does not match
│   ├── Tampered                        encrypted data that was modified, truncated or moved
│   └── SealChanged                     the home was encrypted or decrypted while in use
├── ModelError                          a language model did not answer, or returned no text
│   ├── ModelTimeout                    it did not answer in the time that it was given
│   └── NoModel                         none is configured, or it has no key
├── SyncError                           devices could not exchange what they have
│   ├── RemoteError                     the remote cannot be reached, or refuses
│   ├── RemoteTampered                  the remote altered, dropped or reordered entries
│   ├── Diverged                        another copy of this device wrote to the remote
│   ├── DeviceRemoved                   this device was removed from the project
│   └── PairingFailed                   wrong or expired code
├── MirrorError                         a folder of Markdown could not be compared with the home
├── ServerError                         a server of Anaphora could not be used
│   ├── ServerUnreachable               it does not answer, or not in time
│   └── AccessDenied                    it refuses the token, or what the token may not do
├── NotOffered (also NotImplementedError)  what only a memory on this machine can do
│   └── FeatureLeftOut                  a call of a feature that is not registered
├── SandboxError                        the sandbox could not be started
├── CommandRefused                      a command of a model's tool that cannot be done
├── TimedOut (also TimeoutError)        a recall could read nothing in the time that it had
├── Cancelled                           a recall was cancelled
├── MissingExtra (also ImportError)     an optional dependency is not installed
└── Closed (also RuntimeError)          a memory or session was used after `close()`

Errors carry data as attributes, so that a surface can build its own message. Nothing here
imports anything else of the package but the command that installs what is missing.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Self

from anaphora.installing import install_command

__all__ = [
    "AccessDenied",
    "AnaphoraError",
    "Cancelled",
    "Closed",
    "CommandRefused",
    "Conflict",
    "CorruptThread",
    "DamagedBackup",
    "DeviceRemoved",
    "DiskFull",
    "Diverged",
    "EmbedderChanged",
    "EmbedderNotReady",
    "EmbeddingError",
    "EndpointDenied",
    "EndpointError",
    "EndpointModelUnknown",
    "EndpointUnreachable",
    "FilterError",
    "InvalidId",
    "InvalidInput",
    "InvalidTurn",
    "Locked",
    "MirrorError",
    "MissingExtra",
    "MissingKey",
    "ModelError",
    "ModelIntegrityError",
    "ModelTimeout",
    "NoHome",
    "NoKeyringError",
    "NoModel",
    "NotEmpty",
    "NotFound",
    "NotOffered",
    "PairingFailed",
    "ReadOnly",
    "ReaderError",
    "RemoteError",
    "RemoteTampered",
    "SandboxError",
    "SchemaTooNew",
    "SchemaTooOld",
    "SealChanged",
    "ServerError",
    "ServerUnreachable",
    "StoreError",
    "SyncError",
    "Tampered",
    "TimedOut",
    "UnknownFormat",
    "Unreadable",
    "UnreadableDocument",
    "WrongKey",
]


class AnaphoraError(Exception):
    """Base of every error raised on purpose."""


class InvalidInput(AnaphoraError, ValueError):
    """What the caller passed cannot be used.

    `what` names the argument or field, `value` is a short form of what was given (at most 80
    characters of its repr), `reason` says what was expected.
    """

    def __init__(self, what: str, value: object, reason: str) -> None:
        text = _shown(value)
        self.what = what
        self.value = text if len(text) <= 80 else text[:77] + "..."
        self.reason = reason
        # What was not given at all needs no words.
        super().__init__(f"{what}: {reason}" + ("" if value is None else f" (given {self.value})"))

    def named(self, what: str) -> Self:
        """The same error about what the caller knows by another name."""
        renamed = type(self)(what, None, self.reason)
        renamed.value = self.value
        renamed.args = (str(self).replace(self.what, what, 1),)
        return renamed


_NAME = 70


def _shown(value: object) -> str:
    """The repr, of as much as is needed of it; of a time its usual form."""
    try:
        if isinstance(value, datetime):
            return value.isoformat()
        return repr(value[:100] if isinstance(value, str) else value)
    except ValueError:
        # Python writes no number of more than 4,300 digits.
        return f"a very large {type(value).__name__}"


class InvalidId(InvalidInput):
    """A conversation id or namespace name that cannot name a file."""


class InvalidTurn(InvalidInput):
    """A turn that cannot be stored because of its role, time or text."""


class FilterError(InvalidInput):
    """A filter that cannot be read. `what` is the place, such as `filters.AND[1].tags.contains`."""


class Conflict(InvalidInput):
    """Another writer came between reading and writing: `what` changed. Nothing was written."""


class UnknownFormat(InvalidInput):
    """A file or directory that no importer recognises."""


class UnreadableDocument(InvalidInput):
    """A document that cannot be read: too large, encrypted, damaged, or of another format.

    `value` is the file's name, the end of a long one.
    """

    def __init__(self, what: str, value: object, reason: str) -> None:
        long = isinstance(value, str) and len(value) > _NAME
        super().__init__(what, f"…{str(value)[-_NAME:]}" if long else value, reason)


class NotFound(AnaphoraError, KeyError):
    """An id that does not exist: `kind` of thing and its `id`."""

    def __init__(self, kind: str, id: str) -> None:  # noqa: A002 - the field's own name
        self.kind = kind
        self.id = id
        super().__init__(f"no {kind} with id {id!r}")

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, quotes and all; people read this one.
        return str(self.args[0])


class NoHome(NotFound):
    """There is no memory at a path, and what was asked for begins none."""

    def __init__(self, path: Path | str) -> None:
        super().__init__("home", str(path))
        self.args = (f"there is no memory at {path}",)


class StoreError(AnaphoraError):
    """Stored data could not be read or written: `operation` on `path`, and why."""

    def __init__(self, operation: str, path: Path | str, reason: str) -> None:
        self.operation = operation
        self.path = str(path)
        self.reason = reason
        super().__init__(f"cannot {operation} {self.path}: {reason}")


class ReadOnly(StoreError):
    """The location is not writable (permissions or a read-only file system)."""


class DiskFull(StoreError):
    """No space is left. Nothing was half-written: existing data is unchanged."""


class Locked(StoreError):
    """Another program holds a lock on it: `holder`, where the system tells which. Try again."""

    def __init__(self, operation: str, path: Path | str, holder: str = "") -> None:
        self.holder = holder
        super().__init__(operation, path, f"it is locked by {holder or 'another program'}")


class CorruptThread(StoreError):
    """A thread file that does not parse. `set_aside` is where its bytes are kept, if moved."""

    def __init__(self, path: Path | str, reason: str, set_aside: Path | None = None) -> None:
        self.set_aside = set_aside
        location = f"; its bytes are kept in {set_aside}" if set_aside else ""
        super().__init__("read", path, reason + location)


class SchemaTooNew(StoreError):
    """The database was written by a newer version of Anaphora (`found` is its revision)."""

    def __init__(self, path: Path | str, found: str) -> None:
        self.found = found
        super().__init__("open", path, f"schema revision {found} is newer than this program")


class SchemaTooOld(StoreError):
    """The home was written by an older build of Anaphora in a form that this one does not read.

    `found` is the version that it has, `needed` the one that this program reads. It is unchanged:
    an export by the build that wrote it can be imported here.
    """

    def __init__(self, path: Path | str, found: str, needed: str) -> None:
        self.found, self.needed = found, needed
        reason = (
            f"an older build of Anaphora wrote it (version {found}, this one reads {needed}): "
            "run `anaphora export FILE` with that build, then `anaphora import FILE` with this one"
        )
        super().__init__("open", path, reason)


class Unreadable(StoreError):
    """An invalid stored row: its `table` and `id`. All others can be read.

    `doctor` names it, and `doctor --repair` mends it.
    """

    def __init__(self, table: str, id: str, reason: str) -> None:  # noqa: A002 - the field's name
        self.table = table
        self.id = id
        super().__init__("read", f"{table} {id}", f"{reason}; `doctor --repair` repairs it")


class NotEmpty(StoreError):
    """The target exists or is not empty. It was not changed."""


class DamagedBackup(StoreError):
    """A backup or an export that is not what was written: cut short, changed, or something else."""


class EmbeddingError(AnaphoraError):
    """A text could not be turned into a vector."""


class ModelIntegrityError(EmbeddingError):
    """A model file with another SHA-256 than the one that was shipped."""

    def __init__(self, path: Path | str, expected: str, found: str) -> None:
        self.path = str(path)
        self.expected = expected
        self.found = found
        super().__init__(f"{self.path}: SHA-256 is {found}, expected {expected}")


class EmbedderNotReady(EmbeddingError):
    """The model is still loading after `waited` seconds."""

    def __init__(self, waited: float) -> None:
        self.waited = waited
        super().__init__(f"the embedding model is still loading after {waited:.1f} s")


class ReaderError(AnaphoraError):
    """A question and statements could not be read together by the reader.

    No recall raises it: the answer has the order without a reader, and `degraded` says why.
    """


class EndpointError(EmbeddingError):
    """The embedding endpoint is unavailable: its `url` and `model`, and the `reason`.

    Neither `url` nor `reason` ever holds a key.
    """

    def __init__(self, url: str, model: str, reason: str) -> None:
        self.url = url
        self.model = model
        self.reason = reason
        super().__init__(f"{model} at {url}: {reason}")


class EndpointUnreachable(EndpointError):
    """It does not answer in time, or only that it cannot now."""


class EndpointDenied(EndpointError):
    """It does not accept the key, or wants one: `ANAPHORA_EMBEDDER_KEY` has it."""


class EndpointModelUnknown(EndpointError):
    """It does not have the model, or the URL does not lead to where models are."""


class EmbedderChanged(EndpointError):
    """It gives other vectors under the same name than before, so that old ones cannot be compared.

    `anaphora reindex --embedder …` with the same embedder makes all of them anew.
    """


class EncryptionError(AnaphoraError):
    """A sealed home cannot be opened or trusted: `what` it is about, and the `reason`."""

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what}: {reason}")


class NoKeyringError(EncryptionError):
    """There is no keychain, or it refuses. A key file is used only by explicit choice."""


class MissingKey(EncryptionError):
    """An encrypted home whose key is missing. Nothing was opened, no key was created."""


class WrongKey(EncryptionError):
    """A key or passphrase that does not belong to what it was tried on."""


class Tampered(EncryptionError):
    """Encrypted data that was modified, truncated or moved. None of it is returned."""


class SealChanged(EncryptionError):
    """The home was encrypted, decrypted or re-keyed meanwhile: reopen it."""


class CommandRefused(AnaphoraError):
    """A command of a model's tool that cannot be done; the message is for the model to read."""


class MissingExtra(AnaphoraError, ImportError):
    """An optional dependency is not installed; `command` is what installs it here.

    `needs` is what is missing and `extra` what brings it; without an extra, `needs` is the package
    itself. The command may name a folder of this machine: `summary` says the same without it.
    """

    command = ""
    """Nothing where a server is what lacks it: then it cannot be installed from here."""

    def __init__(self, extra: str, needs: str) -> None:
        self.extra = extra
        self.needs = needs
        self.command = install_command(extra, () if extra else (needs,))
        super().__init__(f"{self.summary}; run: {self.command}")

    @property
    def summary(self) -> str:
        """What is missing, and the extra that brings it."""
        brought = f" (extra {self.extra})" if self.extra else ""
        return f"{self.needs} is not installed{brought}"


class Closed(AnaphoraError, RuntimeError):
    """`what` was used after `close()`: the memory, or something of an adapter's."""

    def __init__(self, what: str = "this memory") -> None:
        self.what = what
        super().__init__(f"{what} is closed")


class TimedOut(AnaphoraError, TimeoutError):
    """A recall could read nothing in its `seconds`; what it could read, it answers with."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the time limit of {seconds:g} s is over")


class Cancelled(AnaphoraError):
    """A recall was ended by `Cancellation.cancel()`, or with the task that awaited it."""

    def __init__(self) -> None:
        super().__init__("the recall was cancelled")


class ModelError(AnaphoraError):
    """A language model did not answer: its name, why, and the HTTP `status` where there was one.

    `reason` never holds a key.
    """

    def __init__(self, model: str, reason: str, status: int | None = None) -> None:
        self.model = model
        self.reason = reason
        self.status = status
        super().__init__(f"the model {model} did not answer: {reason}")


class ModelTimeout(ModelError):
    """A language model did not answer in `seconds`."""

    def __init__(self, model: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(model, f"nothing came within {seconds:.1f} s")


class NoModel(ModelError):
    """No language model is configured, or it has no key: `reason` says what to set."""

    def __init__(self, reason: str, model: str = "") -> None:
        super().__init__(model, reason)
        self.args = (reason,)


class SyncError(AnaphoraError):
    """Devices could not exchange what they have. Nothing is lost: it is kept to be sent."""

    def __init__(self, remote: str, reason: str) -> None:
        self.remote = remote
        self.reason = reason
        super().__init__(f"{remote}: {reason}")


class RemoteError(SyncError):
    """The remote cannot be reached, or refuses. `lasting`: trying again will not help."""

    def __init__(self, remote: str, reason: str, *, lasting: bool = False) -> None:
        self.lasting = lasting
        super().__init__(remote, reason)


class RemoteTampered(SyncError):
    """The remote gave entries that no device wrote so. Nothing of them was taken in.

    `device` and `number` say which entry, `reason` what is wrong with it.
    """

    def __init__(self, remote: str, device: str, number: int, reason: str) -> None:
        self.device = device
        self.number = number
        super().__init__(remote, f"entry {number} of device {device}: {reason}")


class Diverged(SyncError):
    """The remote has entries of this device that it has not written: a copy of it did.

    A home that was copied, or restored from a backup, goes on as a device of its own.
    """


class DeviceRemoved(SyncError):
    """This device is no longer part of the project. Its data stays here, and nothing is sent."""


class PairingFailed(SyncError):
    """A device was not paired: wrong or expired code."""


class MirrorError(AnaphoraError):
    """A folder of Markdown could not be compared with the home. Neither was changed.

    `lasting`: trying again will not help; `reason` says what to do.
    """

    def __init__(self, folder: str, reason: str, *, lasting: bool = False) -> None:
        self.folder = folder
        self.reason = reason
        self.lasting = lasting
        super().__init__(f"{folder}: {reason}")


class ServerError(AnaphoraError):
    """A server of Anaphora could not be used: its `url`, why, and the HTTP `status` if it answered.

    `reason` never holds a token.
    """

    def __init__(self, url: str, reason: str, status: int | None = None) -> None:
        self.url = url
        self.reason = reason
        self.status = status
        super().__init__(f"{url}: {reason}")


class ServerUnreachable(ServerError):
    """It does not answer, or not in time.

    `sent`: it may have got the request, and what was asked for may be done.
    """

    def __init__(self, url: str, reason: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(url, reason)


class AccessDenied(ServerError):
    """It does not accept the token, or the token may not do that there."""


class NotOffered(AnaphoraError, NotImplementedError):
    """`what` a memory on this machine can do and a server does not offer, and the `reason`."""

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what} is not offered by a server: {reason}")


class FeatureLeftOut(NotOffered):
    """`what` belongs to a feature that this program has not registered."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.reason = "this program was made without it"
        AnaphoraError.__init__(self, f"{what}: {self.reason}")


class SandboxError(AnaphoraError):
    """What runs a model's code could not be started. No code was run."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the sandbox does not start: {reason}")
