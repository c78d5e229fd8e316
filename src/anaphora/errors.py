"""Every error that Anaphora raises on purpose, drawn as one tree.

AnaphoraError
├── InvalidInput (also ValueError)      what the caller passed cannot be used
│   ├── InvalidId                       a conversation id or namespace name
│   ├── InvalidTurn                     a turn's role, time or text
│   └── UnknownFormat                   a file that no importer recognises
├── NotFound (also KeyError)            an id that does not exist
├── StoreError                          truth could not be read or written
│   ├── ReadOnly                        the place cannot be written
│   ├── DiskFull                        no room left; nothing was half-written
│   ├── CorruptThread                   a thread file that does not parse; it was kept
│   └── SchemaTooNew                    a home that a newer version wrote
├── EmbeddingError                      a text could not be turned into a vector
│   ├── ModelIntegrityError             the model file is not the one that was shipped
│   └── EmbedderNotReady                the model is still loading
├── MissingExtra (also ImportError)     an optional dependency is not installed
└── Closed                              the memory was used after `close()`

Errors carry data as attributes, so that a surface can build its own message. Nothing here
imports anything else of the package.
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "AnaphoraError",
    "Closed",
    "CorruptThread",
    "DiskFull",
    "EmbedderNotReady",
    "EmbeddingError",
    "InvalidId",
    "InvalidInput",
    "InvalidTurn",
    "MissingExtra",
    "ModelIntegrityError",
    "NotFound",
    "ReadOnly",
    "SchemaTooNew",
    "StoreError",
    "UnknownFormat",
]


class AnaphoraError(Exception):
    """Base of every error raised on purpose."""


class InvalidInput(AnaphoraError, ValueError):
    """What the caller passed cannot be used.

    `what` names the argument or field, `value` is a short form of what was given (at most 80
    characters of its repr), `reason` says what was expected.
    """

    def __init__(self, what: str, value: object, reason: str) -> None:
        shown = repr(value)
        self.what = what
        self.value = shown if len(shown) <= 80 else shown[:77] + "..."
        self.reason = reason
        super().__init__(f"{what}: {reason} (given {self.value})")


class InvalidId(InvalidInput):
    """A conversation id or namespace name that cannot name a file."""


class InvalidTurn(InvalidInput):
    """A turn whose role, time or text cannot be stored."""


class UnknownFormat(InvalidInput):
    """A file or directory that no importer recognises."""


class NotFound(AnaphoraError, KeyError):
    """An id that does not exist: `kind` of thing and its `id`."""

    def __init__(self, kind: str, id: str) -> None:  # noqa: A002 - the field's own name
        self.kind = kind
        self.id = id
        super().__init__(f"no {kind} with id {id!r}")

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, quotes and all; people read this one.
        return str(self.args[0])


class StoreError(AnaphoraError):
    """Truth could not be read or written: `operation` on `path`, and why."""

    def __init__(self, operation: str, path: Path | str, reason: str) -> None:
        self.operation = operation
        self.path = str(path)
        self.reason = reason
        super().__init__(f"cannot {operation} {self.path}: {reason}")


class ReadOnly(StoreError):
    """The place cannot be written (permissions or a read-only file system)."""


class DiskFull(StoreError):
    """No room is left. Nothing was half-written: what was there before is there still."""


class CorruptThread(StoreError):
    """A thread file that does not parse. `set_aside` is where its bytes are kept, if moved."""

    def __init__(self, path: Path | str, reason: str, set_aside: Path | None = None) -> None:
        self.set_aside = set_aside
        kept = f"; its bytes are kept in {set_aside}" if set_aside else ""
        super().__init__("read", path, reason + kept)


class SchemaTooNew(StoreError):
    """The database was written by a newer version of Anaphora (`found` is its revision)."""

    def __init__(self, path: Path | str, found: str) -> None:
        self.found = found
        super().__init__("open", path, f"schema revision {found} is newer than this program")


class EmbeddingError(AnaphoraError):
    """A text could not be turned into a vector."""


class ModelIntegrityError(EmbeddingError):
    """A model file whose SHA-256 is not the one that was shipped."""

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


class MissingExtra(AnaphoraError, ImportError):
    """An optional dependency is not installed: `pip install anaphora[extra]` brings it."""

    def __init__(self, extra: str, needs: str) -> None:
        self.extra = extra
        self.needs = needs
        super().__init__(f"{needs} is not installed: pip install 'anaphora[{extra}]'")


class Closed(AnaphoraError):
    """The memory was used after `close()`."""

    def __init__(self) -> None:
        super().__init__("this memory is closed")
