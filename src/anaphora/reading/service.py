"""The reader as recall uses it: loaded beside the first answer, not waited for, cached.

A process that answers one question and ends is the exception: it waits a moment, or it would never
have a reader.

Importing this module loads no model and no model library.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.calls.counting import EXIT_PATIENCE
from anaphora.calls.limits import wait_for_given_up, within_limit
from anaphora.errors import AnaphoraError, InvalidInput, ReaderError
from anaphora.system.late_threads import begins
from anaphora.system.permits import lent

if TYPE_CHECKING:
    from anaphora.reading.model import Lane, Reader

JUDGEMENTS_KEPT: Final = 4_096
"""Judgements of statements that are kept: a few hundred bytes each, with the text."""

PATIENCE: Final = 1.0
"""Seconds that a process of one question waits for its reader; loading takes 0.15 to 0.4."""

BUNDLED: Final = Path(__file__).parent / "models" / "reader"
"""The folder that ships. Without it this installation has no reader."""

_LOAD_FAILURES: Final = (AnaphoraError, RuntimeError, ValueError, OSError, MemoryError, ImportError)


class ReaderService:
    """One reader for all lanes, safe to use from several threads at once.

    `load` gives it; it is called once, in a thread of its own. `cache_size` is how many judgements
    are kept, those used last; 0 keeps none. `patience` is how many seconds the first judgement
    waits for it.
    """

    def __init__(
        self,
        load: Callable[[], Reader],
        *,
        cache_size: int = JUDGEMENTS_KEPT,
        patience: float = 0.0,
    ) -> None:
        self._load_reader = load
        self._patience = patience
        self._cache = _Judgements(cache_size)
        self._lock = threading.Lock()
        self._loader: threading.Thread | None = None
        self._started = False
        self._ended = threading.Event()
        self._reader: Reader | None = None
        self._failure: ReaderError | None = None
        self._judged = 0

    @property
    def loaded(self) -> bool:
        """Whether statements can be read now."""
        return self._reader is not None

    @property
    def begun(self) -> bool:
        """Whether it is loaded, or was to be."""
        return self._started

    @property
    def failure(self) -> ReaderError | None:
        """Why it could not be loaded; None while it is loading, and where it is loaded."""
        return self._failure

    @property
    def judged(self) -> int:
        """How many statements were read; those out of the cache are not counted."""
        return self._judged

    def start(self) -> None:
        """Begin to load in the background. Calling it again does nothing."""
        with self._lock:
            if self._started:
                return
            self._started = True
            loader = threading.Thread(target=self._load, name="anaphora-reader", daemon=True)
            if begins(loader):
                self._loader = loader
            else:
                self._load()

    def ready(self, timeout: float | None = None) -> bool:
        """Wait until loading has ended, at most `timeout` seconds (None: as long as it takes).

        True where statements can be read now. No recall waits here.
        """
        self.start()
        return self._ended.wait(timeout) and self.loaded

    def close(self) -> None:
        """Wait for a load that is under way: a process must not end inside a model library."""
        if self._loader is not None:
            self._loader.join()
        wait_for_given_up(EXIT_PATIENCE)

    def judge_answers(self, question: str, candidates: Sequence[str], lane: Lane) -> list[float]:
        """Whether each candidate answers the question: calibrated log-odds, in their order.

        Raises ReaderError while the reader is loading or where it cannot be had, TimedOut and
        Cancelled as the limit of the call says.
        """
        reader = self._loaded()
        keys = [(lane, question, text) for text in candidates]
        odds = [self._cache.get(key) for key in keys]
        missing = [index for index, cached_odds in enumerate(odds) if cached_odds is None]
        if missing:
            texts = [candidates[index] for index in missing]

            def run() -> list[float]:
                with lent():
                    answers: list[float] = reader.judge_answers(question, texts, lane).tolist()
                    return answers

            answers = within_limit(run)
            with self._lock:
                self._judged += len(missing)
            for index, log_odds in zip(missing, answers, strict=True):
                odds[index] = log_odds
                self._cache.put(keys[index], log_odds)
        return [log_odds for log_odds in odds if log_odds is not None]

    def _loaded(self) -> Reader:
        self.start()
        if self._patience and not self._ended.is_set():
            within_limit(lambda: self._ended.wait(self._patience))
        if self._reader is not None:
            return self._reader
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        raise ReaderError("it is still loading")

    def _load(self) -> None:
        failure = ReaderError("loading it ended unexpectedly")
        try:
            self._reader = self._load_reader()
        except _LOAD_FAILURES as error:
            failure = ReaderError(str(error) or type(error).__name__)
            failure.__cause__ = error
        finally:
            self._failure = None if self._reader else failure
            self._ended.set()


class _Judgements:
    """The log-odds that were used last, at most `size`, by what was read."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._odds: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> float | None:
        with self._lock:
            if key in self._odds:
                self._odds.move_to_end(key)
            return self._odds.get(key)

    def put(self, key: Hashable, odds: float) -> None:
        with self._lock:
            self._odds[key] = odds
            self._odds.move_to_end(key)
            while len(self._odds) > self._size:
                self._odds.popitem(last=False)


_loading = threading.Lock()
_loaded: dict[Path, Reader] = {}


def reader_service(setting: str, *, patience: float = 0.0) -> ReaderService | None:
    """The service of a setting: "on" (the bundled reader), "off", or a folder that `build` wrote.

    `patience` as for `ReaderService`.

    None where it is off, and with "on" in an installation without a reader. Raises InvalidInput for
    a folder that is not there.
    """
    if setting == "off":
        return None
    folder = BUNDLED if setting == "on" else Path(setting).expanduser()
    if not folder.is_dir():
        if setting == "on":
            return None
        raise InvalidInput("ANAPHORA_READER", setting, "expected on, off, or a reader's folder")

    def load() -> Reader:
        from anaphora.reading.model import Reader

        # One in a process, however many homes are open.
        with _loading:
            path = folder.resolve()
            if path not in _loaded:
                _loaded[path] = Reader(path)
            return _loaded[path]

    return ReaderService(load, patience=patience)
