"""Spans appear where a program traces, and cost nothing elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from anaphora.errors import InvalidInput
from anaphora.testing import open_memory

CODE = """
import sys
from anaphora.testing import open_memory
with open_memory() as memory:
    memory.remember("The ferry leaves at nine.")
    assert memory.recall("when does the ferry leave?")
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""


def test_nothing_is_imported_for_who_does_not_trace() -> None:
    """Without OpenTelemetry in the program a span is nothing, and nothing of it is imported."""
    subprocess.run([sys.executable, "-c", CODE], check=True)


def test_spans_are_exported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A span has our name and attributes, nests, and records the error that ended it."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    with open_memory(tmp_path) as memory:
        memory.remember("The ferry leaves at nine.")
        exporter.clear()
        with provider.get_tracer("agent").start_as_current_span("agent"):
            memory.recall("when does the ferry leave?", top_k=3)
        recalled, agent = exporter.get_finished_spans()
        with pytest.raises(InvalidInput):
            memory.recall("when does the ferry leave?", filters={"$no": 1})
        failed = exporter.get_finished_spans()[-1]
    assert (recalled.name, agent.name) == ("anaphora.recall", "agent")
    assert dict(recalled.attributes or {}) == {"anaphora.mode": "hybrid", "anaphora.top_k": 3}
    assert agent.context is not None
    assert recalled.parent is not None
    assert recalled.parent.span_id == agent.context.span_id
    assert not failed.status.is_ok
    assert [event.name for event in failed.events] == ["exception"]
    provider.shutdown()
