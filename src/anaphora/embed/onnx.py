"""The one place that imports `onnxruntime`, with its telemetry off: loading a model, running it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from anaphora.core.config import silence_libraries
from anaphora.errors import EmbeddingError

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


def onnx_runtime() -> Any:
    """The module `onnxruntime`, its telemetry off."""
    silence_libraries()
    import onnxruntime

    return onnxruntime


def load_session(model: bytes | Path, threads: int | None = None) -> Any:
    """A session of a model on the processor; from a path, so that weights beside it are found.

    `threads` is how many cores one run may use, by default two at most. Raises EmbeddingError.
    """
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that spin between runs make one query a little faster on an idle machine, and cost
    # twice the processor time and a third of the throughput on a busy one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    given = model if isinstance(model, bytes) else str(model)
    try:
        return runtime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    except _failures() as error:
        raise EmbeddingError(f"the model cannot be loaded: {error}") from error


def run_session(session: Any, feed: Mapping[str, Any], output: str | None = None) -> Any:
    """One output of a run, the first unless named. Raises EmbeddingError."""
    try:
        return session.run(None if output is None else [output], feed)[0]
    except _failures() as error:
        raise EmbeddingError(f"the model failed to run: {error}") from error


def _failures() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: classes of its own, whose only common base is Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = (getattr(state, name, None) for name in _FAILURES)
    return (RuntimeError, *(found for found in own if isinstance(found, type)))
