"""What a coding agent waits for at each hook: `python -m bench.hooks [--data DIR]`.

Each hook is a process of its own, as the client starts it, over a home of 10,000 real turns (or of
the example conversations without `--data`). Warm: the resident process is there. Cold: the hook has
to start it. Alone: none is used. Each beside the bare interpreter's own start, in turns, so that
both see the same machine; and the memory of the resident process, which all clients share.

`--first 20` measures only the first hooks after a boot instead, so many times each: nothing runs
and no file is in the disk cache (as root; else only those of the installation and the home are
dropped), with `--busy 2` beside so many busy loops. It says for each how often what was stored came
back, with the resident process and without, over a home of one memory and one of 3,000 turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from anaphora import Memory
from anaphora.features.coding_agents.setup.dialogue import ServerDialogue
from bench.datasets import haystacks
from bench.figures import Figure, at_most, keep, percentile
from bench.measuring import memory_of, user_environment

TURNS: Final = 10_000
FEW_TURNS: Final = 3_000
WARM: Final = 60
COLD: Final = 7
SCRIPT: Final = Path(sys.executable).with_name("anaphora")
EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples" / "conversation.json"
PROMPTS: Final = (
    "Which port is the staging database on?",
    "why did we leave redis?",
    "rename the variable foo to bar in the parser",
    "add a retry to the webhook sender",
    "what did we say about the trip in the summer?",
)


def run(data: Path | None = None) -> list[Figure]:
    """Every figure, kept in bench/results/."""
    with tempfile.TemporaryDirectory(prefix="anh") as root:
        turns = _fill(Path(root) / "home", data)
        environ = user_environment(Path(root))
        cold = [_cold(environ) for _ in range(COLD)]
        bare, warm = [], []
        for number in range(WARM):
            bare.append(seconds_of([sys.executable, "-I", "-c", "pass"], environ)[0])
            warm.append(_prompted(environ, number))
        resident = _resident_memory(environ)
        stop_residents(environ)
        alone = [_prompted({**environ, "ANAPHORA_RESIDENT": "0"}, n) for n in range(COLD)]
    over = sorted(one - bare[at] for at, one in enumerate(warm))
    figures = [
        Figure("turns in the home", turns),
        Figure("the bare interpreter, p50", 1000 * percentile(bare, 0.5), "ms"),
        at_most(
            "a hook with a warm process, over that, p50", 1000 * percentile(over, 0.5), 60, "ms"
        ),
        at_most(
            "a hook with a warm process, over that, p95", 1000 * percentile(over, 0.95), 150, "ms"
        ),
        at_most("the first hook, which starts the process, p50", percentile(cold, 0.5), 1.2, "s"),
        at_most("the first hook, the slowest", max(cold), 1.2, "s"),
        Figure("a hook without a resident process, p50", percentile(alone, 0.5), "s"),
        Figure("memory of the resident process", resident, "MB"),
    ]
    keep("hooks", "What a coding agent waits for at each hook", figures)
    return figures


RULE: Final = "Always answer in British spelling."
STORED: Final = "The old mill stands at the brook."
SAID: Final = "The barge leaves the quay at nine on Sundays."
FIRST: Final[Mapping[str, tuple[str, dict[str, str], str]]] = {
    "UserPromptSubmit": (
        "UserPromptSubmit",
        {"prompt": "where does the old mill stand?"},
        "brook",
    ),
    "SessionStart": ("SessionStart", {"source": "startup"}, "British"),
    "SessionStart (compact)": ("SessionStart", {"source": "compact"}, "barge"),
}
"""The first hooks that are measured: the event, what is told of it, and what must come back."""


def run_first(rounds: int, busy: int, data: Path | None) -> None:
    """Print how long the first hooks after a boot take, and whether they give what is stored."""
    print(f"{rounds} times each, {busy} busy loops, load {os.getloadavg()[0]:.1f}")
    print(
        f"{'first hook':24}{'home':>12}{'resident':>9}"
        + "".join(f"{name:>7}" for name in ("min", "p50", "p95", "max"))
        + " given"
    )
    for most in (0, FEW_TURNS):
        with tempfile.TemporaryDirectory(prefix="anh") as root:
            turns = _fill_first(Path(root) / "home", data, most)
            environ = user_environment(Path(root))
            for name in FIRST:
                # An installation that was used has its bytecode.
                _first(environ, name, "before")
            for resident in ("", "0"):
                for name in FIRST:
                    variables = environ | ({"ANAPHORA_RESIDENT": resident} if resident else {})
                    with _busy(busy):
                        tried = [_first(variables, name, f"{resident}{n}") for n in range(rounds)]
                    took = [seconds for seconds, _ in tried]
                    shown = (min(took), statistics.median(took), percentile(took, 0.95), max(took))
                    print(
                        f"{name:24}{turns:>6} turns{'off' if resident else 'on':>9}"
                        + "".join(f"{one:7.2f}" for one in shown)
                        + f" {sum(given for _, given in tried)} of {rounds}, "
                        f"load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
            stop_residents(environ)


def _fill_first(home: Path, data: Path | None, most: int) -> int:
    with Memory.open(home) as memory:
        memory.remember(STORED)
        memory.remember(RULE)
        turns = 0
        for _, chat in haystacks(data) if data and most else ():
            if turns < most:
                memory.import_(chat.conversations, embed=False)
                turns += sum(len(one.turns) for one in chat.conversations)
        memory.ready()
        memory.reindex()
        return turns


def _first(environ: Mapping[str, str], name: str, number: str) -> tuple[float, bool]:
    """Seconds of the first hook, and whether it gave what it should."""
    stop_residents(environ)
    event, more, wanted = FIRST[name]
    transcript = Path(environ["HOME"]) / f"{name[:12]}-{number}.jsonl"
    about = {"session_id": f"{name}-{number}", "cwd": "/", "transcript_path": str(transcript)}
    command = [str(SCRIPT), "hook", "claude-code"]
    line = {
        "type": "user",
        "uuid": f"u{number}",
        "sessionId": about["session_id"],
        "timestamp": "2026-05-04T09:00:00Z",
        "message": {"role": "user", "content": SAID},
    }
    transcript.write_text(json.dumps(line) + "\n")
    _forget_files(environ)
    if more.get("source") == "compact":
        told = json.dumps({"hook_event_name": "PreCompact", **about})
        seconds_of(command, environ, told)
    told = json.dumps({"hook_event_name": event, **about, **more})
    seconds, out = seconds_of(command, environ, told)
    return seconds, wanted in out


def _forget_files(environ: Mapping[str, str]) -> None:
    """Drop the disk cache: all of it, or of the files that a hook reads."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        package = Path(__file__).resolve().parents[1] / "src"
        for folder in (Path(sys.prefix), package, Path(environ["ANAPHORA_HOME"])):
            for path in folder.rglob("*"):
                if path.is_file():
                    with path.open("rb") as file:
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Beside so many processes that never rest."""
    # They end with this process, however that ends.
    code = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    loops = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _fill(home: Path, data: Path | None) -> int:
    with Memory.open(home) as memory:
        if data is None:
            memory.import_(EXAMPLES)
        else:
            kept = 0
            for _, chat in haystacks(data):
                if kept < TURNS:
                    memory.import_(chat.conversations, embed=False)
                    kept += sum(len(one.turns) for one in chat.conversations)
        memory.ready()
        memory.reindex()
        return sum(one.turn_count for one in memory.conversations.list())


def _prompted(environ: Mapping[str, str], number: int) -> float:
    told = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": f"s{number}",
        "cwd": "/",
        "prompt": f"{PROMPTS[number % len(PROMPTS)]} ({number})",
    }
    return seconds_of([str(SCRIPT), "hook", "claude-code"], environ, json.dumps(told))[0]


def _cold(environ: Mapping[str, str]) -> float:
    """The first hook of a session, while nothing runs."""
    stop_residents(environ)
    told = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/", "source": "startup"}
    return seconds_of([str(SCRIPT), "hook", "claude-code"], environ, json.dumps(told))[0]


def seconds_of(
    command: list[str], environ: Mapping[str, str], stdin: str = ""
) -> tuple[float, str]:
    """Seconds of a program, and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(
        command, input=stdin.encode(), env=environ, stdout=subprocess.PIPE, check=True
    )
    return time.perf_counter() - began, done.stdout.decode()


def started_server(environ: Mapping[str, str], directory: str) -> ServerDialogue:
    """The memory server that a client starts for a session in this directory."""
    server = ServerDialogue((str(SCRIPT), "mcp"), environ, directory, 60.0)
    about = {"name": "bench", "version": "1"}
    server.ask(
        "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    )
    server.notify("notifications/initialized")
    return server


def residents(environ: Mapping[str, str]) -> list[int]:
    """The processes whose runtime folder is this one, but for this one itself."""
    found = []
    mark = f"XDG_RUNTIME_DIR={environ['XDG_RUNTIME_DIR']}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes() and int(place.name) != os.getpid():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def _resident_memory(environ: Mapping[str, str]) -> float:
    return max((memory_of("VmRSS", one) for one in residents(environ)), default=0.0)


def stop_residents(environ: Mapping[str, str]) -> None:
    """End all of them, and wait until they have."""
    for process in residents(environ):
        os.kill(process, 15)
    while residents(environ):
        time.sleep(0.05)


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.hooks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--first", type=int, metavar="TIMES", help="only first hooks after a boot")
    parser.add_argument("--busy", type=int, default=0, help="so many busy loops beside them")
    args = parser.parse_args()
    if args.first:
        run_first(args.first, args.busy, args.data)
    else:
        run(args.data)


if __name__ == "__main__":
    main()
