"""Opening a home, clear or encrypted, and the conversations of a namespace.

It fails closed: an encrypted home is never opened as a clear one, and no key is ever made for a
home that has one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import InvalidInput, MissingKey
from anaphora.store.crypto import marker as markers
from anaphora.store.crypto.cipher import KEY_BYTES, derive
from anaphora.store.crypto.marker import Kept, Marker
from anaphora.store.disk import translate
from anaphora.store.home.master_key import load_keys, new_marker
from anaphora.store.home.sealing import Home, Sealing, clear_sealing, sealing_of
from anaphora.store.threads.forms import SEALED_SUFFIX
from anaphora.store.threads.ids import SUFFIX

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore

# Sealed threads lie among sealed ones: the first files of a folder tell.
_LOOK_AT = 64


def open_home(home: Home, encrypt: bool | Kept | None = None) -> Sealing:
    """How the home is written and read; a conversion that was interrupted is finished first.

    `encrypt` makes a new home sealed (True: the key goes into the keychain; "file": into a file
    of the home, in clear); a sealed home opens as one whatever it says but False. `NoKeyringError`
    where there is no keychain, `MissingKey` or `WrongKey` where the key is not there,
    `InvalidInput` for a home that has clear contents.
    """
    marker = markers.read(home.root)
    if marker is None and not encrypt:
        _refuse_sealed_leftovers(home)
        return clear_sealing(home, guarded=True)
    if marker is not None and encrypt is False:
        raise InvalidInput("encrypt", False, "the home is encrypted: decrypt it first")
    if marker is None:
        marker = _begin_sealed(home, "file" if encrypt == "file" else "keychain")
    if marker.state != "sealed":
        from anaphora.store.home.conversion import finish_conversion

        finish_conversion(home)
        return open_home(home)
    return sealing_of(home, load_keys(home, marker), guarded=True)


def open_conversations(
    truth: Database,
    sidecar: Sidecar,
    sealing: Sealing,
    folder: Path | None,
    *,
    clock: Callable[[], datetime] | None = None,
    on_removed: Callable[[str], object] | None = None,
) -> ConversationStore | SqlConversationStore:
    """The conversations of the sidecar's namespace: files in `folder`, or rows of `truth`. Strict.

    `folder` is None where the database is a server, from which other machines must see them too. A
    home that was restored from such a server's backup has them in its own database, and keeps them.
    """
    has_rows = "SELECT 1 FROM thread WHERE namespace = :namespace LIMIT 1"
    if folder is None or truth.rows(has_rows, {"namespace": sidecar.namespace}):
        from anaphora.store.threads.sql_store import SqlConversationStore

        return SqlConversationStore(
            truth,
            sidecar.namespace,
            clock=clock,
            sidecar=sidecar,
            on_removed=on_removed,
            sealer=sealing.rows,
        )
    from anaphora.store.threads.file_store import ConversationStore

    return ConversationStore(
        folder,
        clock=clock,
        strict=True,
        sidecar=sidecar,
        on_removed=on_removed,
        form=sealing.threads(sidecar.namespace),
    )


def _begin_sealed(home: Home, kept: Kept) -> Marker:
    # A missing library is reported before anything is made.
    derive(b"\0" * KEY_BYTES, "check")
    with home.locked():
        existing = markers.read(home.root)
        if existing is not None:
            return existing
        _refuse_sealed_leftovers(home)
        truth = home.truth
        if isinstance(truth, Path) and truth.exists():
            raise InvalidInput(
                "encrypt",
                str(home.root),
                "the home has unencrypted contents: run `anaphora encrypt`",
            )
        for _, folder in home.folders():
            with suppress(FileNotFoundError, NotADirectoryError):
                if any(path.suffix == SUFFIX for path in folder.iterdir()):
                    reason = "there are unencrypted threads: run `anaphora encrypt`"
                    raise InvalidInput("encrypt", str(folder), reason)
        marker = new_marker(home, kept, "sealed")
        markers.write(home.root, marker)
        return marker


def _refuse_sealed_leftovers(home: Home) -> None:
    """`MissingKey` for sealed threads without sealed.json: removed, or of half a backup."""
    for _, folder in home.folders():
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in islice(entries, _LOOK_AT)]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise translate(error, "read", folder) from error
        if any(name.endswith(SEALED_SUFFIX) for name in names):
            reason = "its threads are encrypted, but sealed.json is missing: restore that file"
            raise MissingKey(str(home.root), reason)
