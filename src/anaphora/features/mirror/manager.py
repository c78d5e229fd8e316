"""`Memory.mirror`: setting a namespace up to be mirrored, and comparing it with its folder."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from anaphora.calls.arguments import checked
from anaphora.calls.caller import CallOrigin, called_from
from anaphora.calls.progress import no_progress
from anaphora.container.erasing import hold_namespace
from anaphora.errors import InvalidInput, MirrorError
from anaphora.features.mirror.comparison import MirrorComparison, Progress
from anaphora.features.mirror.folder import MirrorFolder
from anaphora.features.mirror.home_pages import HomePages
from anaphora.features.mirror.ledger import LedgerFile, MirrorState, ledger_path
from anaphora.features.mirror.values import MIRROR_EVERY, MirrorReport, MirrorStatus
from anaphora.system.repeating import RepeatedCall

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


class Mirror:
    """One namespace and its folder of Markdown. Nothing is written there but by its methods."""

    def __init__(self, services: NamespaceServices) -> None:
        self._services = services
        root = services.container.home.root
        self._ledger = LedgerFile(ledger_path(root, services.namespace))

    @checked
    def init(self, folder: str, *, plain: bool = False) -> MirrorStatus:
        """Mirror this namespace in a folder, named by its absolute path; its parent must be there.

        Nothing is written before `now`. Markdown files that are in its `memories`, `facts` and
        `notes` already become memories and notes. An encrypted home is mirrored with `plain` alone:
        the files are not encrypted. Raises InvalidInput for a folder that cannot be, or where
        the namespace is mirrored already.
        """
        root = Path(folder)
        if not root.is_absolute():
            raise InvalidInput("folder", folder, "expected an absolute path")
        if root.resolve().is_relative_to(self._services.container.home.root.resolve()):
            raise InvalidInput("folder", folder, "it is inside the home")
        if self._services.sealing.sealed and not plain:
            raise InvalidInput(
                "folder",
                folder,
                "this home is encrypted, and the files would not be; allow it by `plain`",
            )
        with self._lock():
            if self._ledger.load() is not None:
                raise InvalidInput("folder", folder, "this namespace is mirrored; leave it first")
            try:
                root.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise InvalidInput("folder", folder, error.strerror or str(error)) from error
            self._ledger.save(MirrorState(str(root)))
        return self.status()

    @checked
    def now(
        self,
        *,
        dry_run: bool = False,
        accept_deletions: bool = False,
        progress: Progress | None = None,
    ) -> MirrorReport:
        """Make home and folder alike: an edited file is a new value, a new one a new memory.

        A file that was removed is a memory softly forgotten (`undo_forget`); where both sides
        changed, what was said later holds, and the other is in its history. `dry_run` only tells.
        More than half of the files gone at once take `accept_deletions`. Raises InvalidInput where
        the namespace is not mirrored, MirrorError, StoreError and its kinds.
        """
        try:
            with called_from(CallOrigin("mirror")), self._lock():
                ledger = self._load_ledger()
                comparison = MirrorComparison(
                    MirrorFolder(Path(ledger.folder)),
                    HomePages(self._services),
                    ledger,
                    wait=Event().wait,
                    seconds=time.time,
                    save=self._ledger.save,
                    progress=progress or no_progress,
                )
                try:
                    report = comparison.run(dry_run=dry_run, accept_deletions=accept_deletions)
                finally:
                    if comparison.ledger is not ledger:
                        at = self._services.clock()
                        self._ledger.save(replace(comparison.ledger, at=at, stopped=None))
        except MirrorError as error:
            if error.lasting and not dry_run:
                with self._lock():
                    self._ledger.save(replace(self._load_ledger(), stopped=str(error)))
                self._services.container.tell("mirror_stopped", self.status())
            raise
        if report and not dry_run:
            self._services.container.tell("mirror", report)
        return report

    @checked
    def start(self, every: float = MIRROR_EVERY) -> bool:
        """Compare every so many seconds in the background, until the memory is closed.

        False, and nothing begins, where this namespace is not mirrored. A folder that is not there
        is looked for again, later and later; what trying again cannot mend ends it.
        """
        if every <= 0:
            raise InvalidInput("every", every, "expected more than 0 seconds")
        if self._ledger.load() is None:
            return False
        loop = RepeatedCall("mirror", self.now, every)
        self._services.container.closers.append(loop.stop)
        loop.start()
        return True

    def status(self) -> MirrorStatus:
        """How it is mirrored; looks at no file of the folder."""
        ledger = self._ledger.load()
        if ledger is None:
            return MirrorStatus()
        return MirrorStatus(
            ledger.folder, len(ledger.pairs), ledger.at, ledger.problems, ledger.stopped
        )

    def leave(self) -> None:
        """Stop mirroring this namespace. Both sides keep what they have."""
        with self._lock():
            self._load_ledger()
            self._ledger.drop()

    def _load_ledger(self) -> MirrorState:
        ledger = self._ledger.load()
        if ledger is None:
            raise InvalidInput(
                "mirror",
                None,
                "this namespace is not mirrored: run `anaphora mirror init FOLDER` first",
            )
        return ledger

    def _lock(self) -> AbstractContextManager[None]:
        """The lock of a comparison, of one process at a time."""
        return hold_namespace(self._services.container, "mirror", self._services.namespace)
