"""The one place that imports `onnxruntime`, with its telemetry off."""

from __future__ import annotations

from typing import Any

from anaphora.core.config import silence_libraries


def onnx_runtime() -> Any:
    """The module `onnxruntime`, its telemetry off."""
    silence_libraries()
    import onnxruntime

    return onnxruntime
