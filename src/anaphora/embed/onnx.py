"""The runtime of the models, imported so that it reports to nobody.

In: nothing. Out: the module `onnxruntime`. Whatever needs it takes it from here, never by an import
of its own.
"""

from __future__ import annotations

from typing import Any

from anaphora.core.config import silence_libraries


def onnx_runtime() -> Any:
    """The module `onnxruntime`, its telemetry off."""
    silence_libraries()
    import onnxruntime

    return onnxruntime
