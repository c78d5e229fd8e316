"""Where a question's processor time goes: `python -m bench.speed --data DIR --profile`.

In: calls. Out: milliseconds a call and shares, by package and by module of Anaphora. It looks at
the stack a thousand times a second of the processor, which slows nothing down; what is spent in a
library counts for the module that calls it. "with calls" is a module and all that it calls.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

import anaphora

__all__ = ["profile"]

_SOURCE: Final = f"{Path(anaphora.__file__).parent}/"
_EVERY: Final = 0.001
_SHOWN: Final = 25


class _Samples:
    """Nanoseconds of the processor by module: `own`, and `whole` with what it calls."""

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        self.whole: Counter[str] = Counter()
        self._before = time.process_time_ns()

    def take(self, _: int, frame: FrameType | None) -> None:
        """Count the time since the last sample: a long call of a library delays the signal."""
        now = time.process_time_ns()
        spent, self._before = now - self._before, now
        modules = list(_modules_of(frame)) or ["outside"]
        self.own[modules[0]] += spent
        for module in set(modules):
            self.whole[module] += spent


def _modules_of(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_SOURCE):
            yield frame.f_code.co_filename.removeprefix(_SOURCE)
        frame = frame.f_back


def profile(call: Callable[[str], object], texts: Sequence[str]) -> str:
    """The table of `call` with each text."""
    samples = _Samples()
    signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    for text in texts:
        call(text)
    signal.setitimer(signal.ITIMER_PROF, 0)
    packages: Counter[str] = Counter()
    for module, spent in samples.own.items():
        packages[module.rpartition("/")[0] or module] += spent
    total, calls = packages.total(), 1e6 * len(texts)
    lines = [f"{total / calls:.2f} ms of the processor a call, {len(texts)} calls", ""]
    lines += ["| package | ms | share |", "|---|---:|---:|"]
    for package, spent in packages.most_common():
        lines.append(f"| {package} | {spent / calls:.3f} | {spent / total:.1%} |")
    lines += ["", "| module | ms | with calls, ms |", "|---|---:|---:|"]
    for module, spent in samples.own.most_common(_SHOWN):
        lines.append(f"| {module} | {spent / calls:.3f} | {samples.whole[module] / calls:.3f} |")
    return "\n".join(lines)
