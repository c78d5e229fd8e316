"""A plugin of pytest that runs chosen tests on an older source, and records what each does.

It is copied out of this package, because the older source may have a package of this name.

A name that the older source lacks is a placeholder in the test file, and using it fails: so the
tests of a file that do not need the new name run, where the import alone would fail them all.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

import pytest

TASK: Final = json.loads(Path(os.environ["PROOFS_TASK"]).read_text("utf-8"))
WANTED: Final = frozenset(TASK["tests"])
TESTS: Final = Path(TASK["folder"])
OURS: Final = frozenset(TASK["packages"])
RECORD: Final = Path(TASK["record"])
_import = builtins.__import__


class MissingFeature(BaseException):
    """What the test needs is not there. No `except Exception` of a test takes it for its own."""


class Placeholder:
    """Stands for a name that is not there."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> object:
        # pytest asks everything in a test file for such names.
        if name.startswith("_"):
            raise AttributeError(name)
        return self._raise()

    def __repr__(self) -> str:
        return f"<{self._name} is not there>"

    def __hash__(self) -> int:
        return hash(self._name)

    def _raise(self, *_: object, **__: object) -> NoReturn:
        raise MissingFeature(f"{self._name} is not there")

    __call__ = __iter__ = __getitem__ = __len__ = __bool__ = __contains__ = __enter__ = _raise
    __or__ = __ror__ = __add__ = __radd__ = __lt__ = __gt__ = __mro_entries__ = __aenter__ = _raise
    __setattr__ = __delattr__ = _raise
    __eq__ = __ne__ = _raise


class _Partly:
    """A module, and placeholders for the names that it lacks."""

    def __init__(self, module: ModuleType, lacking: Sequence[str]) -> None:
        self.module, self.lacking = module, lacking

    def __getattr__(self, name: str) -> object:
        if name in self.lacking:
            return Placeholder(f"{self.module.__name__}.{name}")
        return getattr(self.module, name)


def _import_for_tests(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002 - names of the builtin
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """Import; in a file of the tests, with placeholders for what our packages lack."""
    if level or not _is_ours(name) or not _is_of_tests((globals or {}).get("__file__")):
        return _import(name, globals, locals, fromlist or (), level)
    try:
        module = _import(name, globals, locals, fromlist or (), level)
    except ModuleNotFoundError as error:
        # Any other module is lacking within the older source, which is then broken.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        top = name.partition(".")[0]
        return _import(top) if not fromlist and error.name != top else Placeholder(name)
    lacking = [item for item in fromlist or () if item != "*" and not hasattr(module, item)]
    return _Partly(module, lacking) if lacking else module


builtins.__import__ = _import_for_tests


def _is_ours(name: str | None) -> bool:
    return (name or "").partition(".")[0] in OURS


def _is_of_tests(file: object) -> bool:
    return isinstance(file, str) and Path(file).is_relative_to(TESTS)


def _write(**event: object) -> None:
    # A line for each: what was recorded stays when the process is ended for its time.
    with RECORD.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tests."""
    left = [item for item in items if not WANTED.isdisjoint(_owners(item.nodeid))]
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    items[:] = left


def _owners(nodeid: str) -> Iterator[str]:
    """The ids of the test, with and without its parameters, and of the class around it."""
    plain = nodeid.partition("[")[0]
    while plain:
        yield plain
        plain = plain.rpartition("::")[0]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the outcome of a test: that of its call, or of the set-up that did not reach it."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        _write(event="test", test=report.nodeid, outcome=report.outcome, why=_reason(report))


def pytest_exception_interact(call: pytest.CallInfo[object], report: object) -> None:
    """Record why a file could not be collected."""
    if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
        error = call.excinfo.value.__cause__ or call.excinfo.value
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        _write(event="file", file=report.nodeid, missing=_is_missing(error), why=why)


def _is_missing(error: BaseException) -> bool:
    """Whether the error says that a name of ours is not there, asked for by a test file."""
    if isinstance(error, MissingFeature):
        return True
    if not isinstance(error, AttributeError):
        return False
    thing = error.obj
    owner = thing.__name__ if isinstance(thing, ModuleType) else type(thing).__module__
    if isinstance(thing, type):
        owner = thing.__module__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return _is_ours(owner) and trace is not None and _is_of_tests(trace.tb_frame.f_code.co_filename)


def _reason(report: pytest.TestReport) -> str:
    if report.passed:
        return ""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    return (text.strip().splitlines() or [""])[0]
