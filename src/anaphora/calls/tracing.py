"""Spans for programs that trace with OpenTelemetry.

They are found by `opentelemetry.trace` among the imported modules: a program that traces has
imported it, and no other pays for it. Texts, queries and ids never go into a span.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Attribute = str | bool | int | float


def span(name: str, **attributes: Attribute) -> AbstractContextManager[Any]:
    """A span `anaphora.<name>` around what is done inside; errors are recorded in it.

    Attributes are named `anaphora.<attribute>`. The value of the context manager is the span, or
    None where nobody traces.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return nullcontext()
    prefixed_attributes = {f"anaphora.{key}": attribute for key, attribute in attributes.items()}
    started_span: AbstractContextManager[Any] = trace.get_tracer("anaphora").start_as_current_span(
        f"anaphora.{name}", attributes=prefixed_attributes
    )
    return started_span
