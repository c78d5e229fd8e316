"""Recall over HTTP under load: `anaphora serve` as users start it, asked by wrk.

In: the folder of shared data (10,000 memories out of its chats, their questions). Out: throughput,
p50, p99 and errors of `POST /v1/recall` with 1 and with 16 connections, each request another
question, beside what one embedding costs in the same run. wrk must be on the path.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anaphora import Memory
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.values.memories import NewMemory
from bench.figures import Figure, keep
from bench.memory_texts import questions, texts

__all__ = ["run"]

MEMORIES = 10_000
SECONDS = 30
# wrk gives each of its threads an own Lua state: every one takes every n-th question, and words
# of its own go with each, so that no two requests are one question.
LUA = """
local asked = {}
for line in io.lines(QUESTIONS) do asked[#asked + 1] = line end
local threads = 0
function setup(thread) threads = threads + 1; thread:set("number", threads) end
local count = 0
function request()
  count = count + 1
  local text = asked[(count * 7 + number * 131) % #asked + 1]
  local body = '{"query": "' .. text .. ' ' .. number .. 'x' .. count .. '", "top_k": 3}'
  local headers = {["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. TOKEN}
  return wrk.format("POST", "/v1/recall", headers, body)
end
local bad = 0
function response(status) if status ~= 200 then bad = bad + 1; wrk.thread:set("bad", bad) end end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def run(data: Path, *, memories: int = MEMORIES, seconds: int = SECONDS) -> tuple[Figure, ...]:
    """Measure, print and keep the figures; nothing where wrk is not installed."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("rest_load: wrk is not installed")
        return ()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        asked = questions(data, 500)
        with Memory.open(home) as memory:
            memory.remember_many(NewMemory(text) for text in texts(data, memories))
            memory.ready()
        script = Path(folder) / "recall.lua"
        (Path(folder) / "questions").write_text("\n".join(map(_in_json, asked)), "utf-8")
        figures = [Figure("one embedding (ms, p50)", _embedding(asked))]
        for processes in (1, 2):
            with _server(home, processes) as (url, token):
                words = {"QUESTIONS": str(Path(folder) / "questions"), "TOKEN": token}
                given = "".join(f"{name} = {json.dumps(word)}\n" for name, word in words.items())
                script.write_text(given + LUA, "utf-8")
                for connections in (1, 16):
                    threads = min(2, connections)
                    # Each process opens its indexes with its first question.
                    _load(wrk, script, url, threads, connections, 3 * processes)
                    found = _load(wrk, script, url, threads, connections, seconds)
                    label = f"{connections} connection{'s' * (connections > 1)}"
                    label += f", {processes} processes" if processes > 1 else ""
                    figures += [
                        Figure(f"{label}: requests a second", found["requests"] / found["seconds"]),
                        Figure(f"{label}: p50 (ms)", found["p50"]),
                        Figure(f"{label}: p99 (ms)", found["p99"]),
                        Figure(f"{label}: errors", found["errors"]),
                    ]
    keep("rest_load", f"Recall over HTTP, {memories:,} memories", figures)
    return tuple(figures)


def _load(
    wrk: str, script: Path, url: str, threads: int, connections: int, seconds: int
) -> dict[str, float]:
    done = subprocess.run(
        [wrk, "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s",
         "-s", str(script), url],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@contextmanager
def _server(home: Path, processes: int) -> Iterator[tuple[str, str]]:
    """Where it is, and the token in its link."""
    command = [
        str(Path(sys.executable).parent / "anaphora"),
        "--home",
        str(home),
        "serve",
        "--port",
        "0",
        "--processes",
        str(processes),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"(http://\S+:\d+)/#token=(\w+)", process.stdout.readline())
        assert found is not None, "the server did not start"
        body = b'{"query": "warm"}'
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {found[2]}"}
        asked = urllib.request.Request(f"{found[1]}/v1/recall", body, headers)
        with urllib.request.urlopen(asked, timeout=120) as answer:
            answer.read()
        yield found[1], found[2]
    finally:
        process.terminate()
        process.wait(60)


def _embedding(asked: list[str]) -> float:
    service = EmbedderService(spec_for("minilm"), cache_size=0)
    service.ready()
    taken = []
    for text in asked[:200]:
        begun = time.perf_counter()
        service.query(text)
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[len(taken) // 2] * 1e3


def _in_json(text: str) -> str:
    return json.dumps(" ".join(text.split()))[1:-1]
