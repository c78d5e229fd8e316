"""Loads and runs models. The only module that imports `onnxruntime`, with its telemetry off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import EmbeddingError
from anaphora.settings import silence_libraries

if TYPE_CHECKING:
    from anaphora.embed.word_table import Array

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


def value_of(array: Array) -> Any:
    """An array as the runtime has it, without a copy."""
    return onnx_runtime().OrtValue.ortvalue_from_numpy(array)


def load_session(
    model: bytes | Path, threads: int | None = None, weights: Mapping[str, Any] | None = None
) -> Any:
    """A session of a model on the CPU; a path also finds weights that lie beside the model.

    `threads` is how many cores one run may use, by default two at most. `weights` are values that
    take the place of those in the file; whoever has the session keeps them. Raises EmbeddingError.
    """
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads make one query a little faster on an idle machine, but cost twice the
    # processor time and a third of the throughput on a busy one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # An arena would keep as much memory as the largest run took.
    options.enable_cpu_mem_arena = False
    for name, weight in (weights or {}).items():
        options.add_initializer(name, weight)
    source = model if isinstance(model, bytes) else str(model)
    try:
        return runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except _failures() as error:
        raise EmbeddingError(f"the model cannot be loaded: {error}") from error


def run_session(session: Any, feed: Mapping[str, Any], output: str | None = None) -> Any:
    """One output of a run, the first unless named. Raises EmbeddingError."""
    try:
        return session.run(None if output is None else [output], feed)[0]
    except _failures() as error:
        raise EmbeddingError(f"the model failed to run: {error}") from error


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions of onnxruntime: its own classes, with no common base except Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    failure_types = (getattr(state, name, None) for name in _FAILURES)
    return (
        RuntimeError,
        *(error_class for error_class in failure_types if isinstance(error_class, type)),
    )
