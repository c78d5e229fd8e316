"""Loads and runs models. The only module that imports `onnxruntime`, with its telemetry off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import EmbeddingError
from anaphora.settings import silence_libraries

_FAILURES: Final = (
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)

_TYPES: Final[Mapping[str, type[np.generic]]] = {
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
}
_sessions: Final[WeakSet[Any]] = WeakSet()


def onnx_runtime() -> Any:
    """The module `onnxruntime`, its telemetry off."""
    silence_libraries()
    import onnxruntime

    return onnxruntime


def load_session(model: bytes | Path, threads: int | None = None) -> Any:
    """A session of a model on the CPU; a path also finds weights that lie beside the model.

    `threads` is how many cores one run may use, by default two at most. Raises EmbeddingError.
    """
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads make one query a little faster on an idle machine, but cost twice the
    # processor time and a third of the throughput on a busy one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = model if isinstance(model, bytes) else str(model)
    try:
        session = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except _failures() as error:
        raise EmbeddingError(f"the model cannot be loaded: {error}") from error
    _sessions.add(session)
    return session


def run_session(session: Any, feed: Mapping[str, Any], output: str | None = None) -> Any:
    """One output of a run, the first unless named. Raises EmbeddingError."""
    try:
        return session.run(None if output is None else [output], feed)[0]
    except _failures() as error:
        raise EmbeddingError(f"the model failed to run: {error}") from error


def shrink_arenas() -> int:
    """Free the unused memory of sessions; some milliseconds each. Returns for how many.

    A session keeps as much memory as its largest run took. It is freed by a run with a special
    option, for which the smallest input is used.
    """
    count = 0
    for session in list(_sessions):
        options = onnx_runtime().RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        # Sessions with inputs of other types, or that need longer ones, are left alone.
        with suppress(KeyError, *_failures()):
            feed: dict[str, NDArray[np.generic]] = {}
            for argument in session.get_inputs():
                # Ones, with open dimensions of length one.
                shape = [length if isinstance(length, int) else 1 for length in argument.shape]
                feed[argument.name] = np.ones(shape, _TYPES[argument.type])
            session.run(None, feed, options)
            count += 1
    return count


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions of onnxruntime: its own classes, with no common base except Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    failure_types = (getattr(state, name, None) for name in _FAILURES)
    return (
        RuntimeError,
        *(error_class for error_class in failure_types if isinstance(error_class, type)),
    )
