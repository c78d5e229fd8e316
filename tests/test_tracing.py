"""Spans appear where somebody traces, and cost nothing where nobody does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from anaphora.core.tracing import span

CODE = """
import sys
from anaphora.core.tracing import span
with span("recall", mode="hybrid") as found:
    assert found is None
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""


def test_nothing_is_imported_for_who_does_not_trace() -> None:
    """Without OpenTelemetry in the program a span is nothing, and nothing of it is imported."""
    subprocess.run([sys.executable, "-c", CODE], check=True)


def test_spans_are_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A span has our name and attributes, nests, and records the error that ended it."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    with span("recall", mode="hybrid", top_k=3), span("embed"):
        pass
    with pytest.raises(ValueError, match="went wrong"), span("remember"):
        raise ValueError("went wrong")
    inner, outer, failed = exporter.get_finished_spans()
    assert (inner.name, outer.name) == ("anaphora.embed", "anaphora.recall")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert dict(outer.attributes or {}) == {"anaphora.mode": "hybrid", "anaphora.top_k": 3}
    assert not failed.status.is_ok
    assert [event.name for event in failed.events] == ["exception"]
    provider.shutdown()
