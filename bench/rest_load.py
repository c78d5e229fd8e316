"""Recall over HTTP under load: `anaphora serve` as users start it, asked by wrk.

In: the folder of shared data (10,000 memories out of its chats, their questions). Out: throughput,
p50, p99, errors and processor time of `POST /v1/recall` with 1 and with 16 connections, each
request another question, on one core and on two, by one process and by two; what the parts of an
answer cost; and, by simulation from those, the same on more cores (`bench/rest_load_model.py`).
wrk must be on the path; cores and processor time are known on Linux alone.
`python -m bench.rest_load --data DIR --home DIR` keeps its home for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anaphora import Memory
from anaphora.embed.minilm import MiniLM
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.values.memories import NewMemory
from bench.figures import Figure, as_markdown, machine, show, write
from bench.memory_texts import questions, texts
from bench.rest_load_model import Costs, simulate

__all__ = ["run", "served"]

MEMORIES = 10_000
SECONDS = 12
TITLE = f"Recall over HTTP, {MEMORIES:,} memories"
MEASURED = ((1, 1), (1, 2), (2, 2))
"""Processes and cores of what is measured; wrk shares them where there are no others."""
CORES = (1, 2, 4, 8, 16)
_TOGETHER = 8
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


# The same question where nothing is kept: what is around a recall.
AROUND = """
function request()
  local headers = {["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. TOKEN,
                   ["Anaphora-Namespace"] = "nothing-is-here"}
  return wrk.format("POST", "/v1/recall", headers, '{"query": "what", "top_k": 3}')
end
""" + LUA[LUA.index("local bad") :]


@dataclass(frozen=True, slots=True)
class Load:
    """What wrk saw, and the processor seconds that the server took for it."""

    requests: float
    seconds: float
    p50: float
    p99: float
    errors: float
    processor: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds


def run(data: Path, *, home: Path | None = None, seconds: int = SECONDS) -> tuple[Figure, ...]:
    """Measure, print and keep the figures; nothing where wrk is not installed."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("rest_load: wrk is not installed")
        return ()
    with tempfile.TemporaryDirectory() as folder:
        home = home or Path(folder) / "home"
        asked = questions(data, 500)
        _fill(home, data)
        (Path(folder) / "questions").write_text("\n".join(map(_in_json, asked)), "utf-8")
        around, client, loads = 0.0, 0.0, dict[tuple[int, int, int], Load]()
        for processes, cores in MEASURED:
            with served(home, processes, cores) as (process, url, token):
                words = {"QUESTIONS": str(Path(folder) / "questions"), "TOKEN": token}
                given = "".join(f"{name} = {json.dumps(word)}\n" for name, word in words.items())
                script = Path(folder) / "recall.lua"
                script.write_text(given + LUA, "utf-8")
                # Each process opens its indexes with its first question.
                _load(wrk, script, url, 16, 3 * processes, process)
                for connections in (1, 16):
                    before = _of_children()
                    found = _load(wrk, script, url, connections, seconds, process)
                    client = (_of_children() - before) / found.requests
                    loads[processes, cores, connections] = found
                if processes == 1:
                    script.write_text(given + AROUND, "utf-8")
                    empty = _load(wrk, script, url, 1, 3, process)
                    around = empty.processor / empty.requests
        costs = _costs(home, asked, around, client)
        figures = [Figure("one embedding (ms, p50)", _embedding(asked)), *_figures(loads)]
    figures += [
        Figure("processor of an answer where nothing is kept (ms)", costs.around * 1e3),
        Figure("processor of a recall less its embedding (ms)", _mean(costs.recalls) * 1e3),
        Figure("processor of one embedding (ms)", (costs.run + costs.each) * 1e3),
        Figure(f"processor of one of {_TOGETHER} together (ms)", _of_several(costs) * 1e3),
        Figure("processor of wrk for an answer (ms)", costs.client * 1e3),
    ]
    _keep(figures, loads, costs)
    return tuple(figures)


def _fill(home: Path, data: Path) -> None:
    """The home, unless it is there from the last run."""
    with Memory.open(home) as memory:
        if not memory.stats().memories:
            memory.remember_many(NewMemory(text) for text in texts(data, MEMORIES))
        memory.ready()


def _figures(loads: dict[tuple[int, int, int], Load]) -> list[Figure]:
    found = []
    for (processes, cores, connections), load in loads.items():
        label = f"{connections} connection{'s' * (connections > 1)}"
        label += f", {processes} processes" if processes > 1 else ""
        label += ", one core" if cores == 1 else ""
        found += [
            Figure(f"{label}: requests a second", load.rate),
            Figure(f"{label}: p50 (ms)", load.p50),
            Figure(f"{label}: p99 (ms)", load.p99),
            Figure(f"{label}: errors", load.errors),
            Figure(f"{label}: processor of an answer (ms)", load.processor / load.requests * 1e3),
        ]
    return found


def _costs(home: Path, asked: Sequence[str], around: float, client: float) -> Costs:
    """The parts of an answer: a recall and its embedding in this process, and what is `around`."""
    model = MiniLM(threads=1)
    new = [f"{text} {number}z" for number, text in enumerate(asked)]
    alone = _processor(lambda: [model.embed_query(text) for text in new[:200]]) / 200
    several = [new[at : at + _TOGETHER] for at in range(0, 200, _TOGETHER)]
    together = _processor(lambda: [model.embed_queries(some) for some in several]) / 200
    each = max(0.0, (together * _TOGETHER - alone) / (_TOGETHER - 1))
    recalls = []
    with Memory.open(home) as memory:
        memory.ready()
        for text in asked[:50]:
            memory.recall(text, top_k=3)
        for text in new:
            begun = time.thread_time()
            memory.recall(text, top_k=3)
            recalls.append(max(0.0, time.thread_time() - begun - alone))
    return Costs(around, tuple(recalls), max(0.0, alone - each), each, client)


def _of_several(costs: Costs) -> float:
    return costs.each + costs.run / _TOGETHER


def _keep(figures: Sequence[Figure], loads: dict[tuple[int, int, int], Load], costs: Costs) -> None:
    show(TITLE, figures)
    checked, curve = [], []
    for (processes, cores, connections), load in loads.items():
        made = simulate(costs, processes=processes, cores=cores, connections=connections)
        checked.append(
            {"processes": processes, "cores": cores, "connections": connections,
             "measured": {"rate": load.rate, "p50": load.p50, "p99": load.p99},
             "simulated": asdict(made)}
        )  # fmt: skip
    # The client has cores of its own from here on.
    alone = Costs(costs.around, costs.recalls, costs.run, costs.each)
    for cores in CORES:
        for connections in sorted({16, 16 * cores}):
            made = simulate(alone, processes=cores, cores=cores, connections=connections)
            curve.append({"cores": cores, "connections": connections, **asdict(made)})
    value = {
        "title": TITLE,
        "machine": machine(),
        "figures": [asdict(one) for one in figures],
        "simulation": {"checked": checked, "curve": curve},
    }
    lines = [as_markdown(TITLE, figures), "", "## By simulation", "", *_told(checked, curve)]
    write("rest_load", json.dumps(value, indent=1), "\n".join(lines))


def _told(checked: Sequence[dict[str, Any]], curve: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield (
        "Not measured: discrete events with the processor times above, a process a core, nothing "
        "in each other's way but cores and each process's lock. First beside what was measured, "
        "with wrk on the same cores; then with a client that has its own."
    )
    yield ""
    yield "| processes, cores, connections | measured a second | simulated | measured p50, p99 | simulated |"  # noqa: E501
    yield "|---|---:|---:|---:|---:|"
    for one in checked:
        seen, made = one["measured"], one["simulated"]
        yield (
            f"| {one['processes']}, {one['cores']}, {one['connections']} "
            f"| {seen['rate']:.0f} | {made['rate']:.0f} "
            f"| {seen['p50']:.0f}, {seen['p99']:.0f} ms | {made['p50']:.0f}, {made['p99']:.0f} ms |"
        )
    yield ""
    yield "| cores and processes | connections | answers a second | p50 | p99 |"
    yield "|---:|---:|---:|---:|---:|"
    for one in curve:
        yield (
            f"| {one['cores']} | {one['connections']} | {one['rate']:,.0f} "
            f"| {one['p50']:.0f} ms | {one['p99']:.0f} ms |"
        )


def _load(wrk: str, script: Path, url: str, connections: int, seconds: int, server: int) -> Load:
    before = _of_tree(server)
    threads = min(2, connections)
    done = subprocess.run(
        [wrk, "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s",
         "-s", str(script), url],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return Load(**found, processor=_of_tree(server) - before)


@contextmanager
def served(
    home: Path, processes: int = 1, cores: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, str, str]]:
    """A server that has answered once: the process, where it is, and the token in its link.

    With `cores` 1 it is pinned to one; `environment` stands for this process's own.
    """
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
    pinned = shutil.which("taskset")
    if cores == 1 and pinned is not None:
        command = [pinned, "-c", str(min(os.sched_getaffinity(0))), *command]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"(http://\S+:\d+)", process.stdout.readline())
        assert found is not None, "the server did not start"
        body = b'{"query": "warm"}'
        token = (home / "server.token").read_text().strip()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(f"{found[1]}/v1/recall", body, headers)
        with urllib.request.urlopen(asked, timeout=120) as answer:
            answer.read()
        yield process.pid, found[1], token
    finally:
        process.terminate()
        process.wait(60)


def _of_tree(pid: int) -> float:
    """Processor seconds of a process and those that it has started; 0 where they are not known."""
    found = 0.0
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in (task / "children").read_text().split():
            found += _of_tree(int(child))
    place = Path(f"/proc/{pid}/stat")
    if place.is_file():
        words = place.read_text().rpartition(")")[2].split()
        found += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return found


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _processor(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--home", type=Path, help="where the memories stay for the next run")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of each load")
    given = parser.parse_args(arguments)
    run(given.data, home=given.home, seconds=given.seconds)


if __name__ == "__main__":
    main()
