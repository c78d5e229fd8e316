"""What the resident process costs after a week: `python -m bench.resident`.

A week of use is played against the installed program: 15 sessions with 170 prompts in two projects.
Each session has a Claude Code transcript, which grows as it would; each prompt is a hook of a
process of its own, each session has an MCP server beside it, and transcripts are read again after
every turn. Then comes large work: a transcript of 1 MB, and a memory of 60 KB. Memory is the
kernel's (RSS, PSS, USS and peak) of the process that answers hooks, first without the reader and
then with it; disk is that of the home by kind, beside the bytes of the transcripts. What it costs
in time stands beside it: hooks, and 1,000 texts that the process embeds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from corpus.reading import FOLDER, Story, read_stories

from anaphora.embed.service import spec_for
from anaphora.system import resident
from bench.figures import Figure, at_most, keep, percentile
from bench.hooks import SCRIPT, seconds_of, started_server, stop_residents
from bench.measuring import memory_of, processor_time, size_of, user_environment

SESSIONS: Final = 15
PROMPTS: Final = 170
PROJECTS: Final = ("tideline", "kestrel")
LIMIT: Final = 200.0
READER_LIMIT: Final = 60.0
DISK_LIMIT: Final = 8.0
"""Bytes of the home for each byte of transcripts."""

LARGE_TURNS: Final = 500
LARGE_MEMORY: Final = 60_000
FILLING: Final = 1_000
QUIET: Final = 45.0
"""Seconds without work until it is measured: by then readings that were put off are done, and the
logs are cut."""

SETTLE: Final = 120.0
"""Seconds that the process has, at most, to make vectors and to give memory back."""

_REPOSITORY: Final = Path(__file__).resolve().parents[1]
_ROLLUP: Final = ("Pss", "Private_Clean", "Private_Dirty")


@dataclass(slots=True)
class Week:
    """What was measured. Memory is in MB by the moment, disk in bytes, times are in seconds."""

    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    disk: dict[str, dict[str, float]] = field(default_factory=dict)
    prompts: list[float] = field(default_factory=list)
    injected: int = 0
    filling: float = 0.0
    question: float = 0.0
    transcripts: int = 0


@dataclass(slots=True)
class Transcript:
    """A session of Claude Code on the disk, to which turns are added."""

    place: Path
    session: str
    directory: str
    at: datetime
    _before: str | None = None
    _counted: int = 0

    def add(self, role: str, content: object) -> None:
        """Write a message at the end of the file, a minute after the one before."""
        self.at += timedelta(minutes=1)
        self._counted += 1
        mark = f"{self.session}-{self._counted}"
        line = {
            "type": role,
            "timestamp": self.at.isoformat().replace("+00:00", "Z"),
            "parentUuid": self._before,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.directory,
            "sessionId": self.session,
            "version": "2.0.30",
            "uuid": mark,
            "message": {"role": role, "content": content},
        }
        self._before = mark
        with self.place.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def add_tool_call(self, path: Path) -> None:
        """A file that the agent reads, with what the client notes of it."""
        call = f"toolu_{self._counted}"
        text = path.read_text("utf-8")[:2_500]
        self.add("assistant", [{"type": "tool_use", "id": call, "name": "Read",
                                "input": {"file_path": str(path)}}])  # fmt: skip
        self.add("user", [{"type": "tool_result", "tool_use_id": call, "content": text}])


def run() -> list[Figure]:
    """The figures of the weeks without the reader and with it, kept in bench/results/."""
    weeks = {reader: play_week(reader) for reader in ("off", "on")}
    figures = [figure for reader, week in weeks.items() for figure in _figures(reader, week)]
    gap = weeks["on"].memory["after the week"]["RSS"] - weeks["off"].memory["after the week"]["RSS"]
    figures.append(at_most("the reader, more after the week", gap, READER_LIMIT, "MB"))
    keep("resident", "The resident process after a week of use", figures)
    return figures


def _figures(reader: str, week: Week) -> Iterator[Figure]:
    name = f"reader {reader}"
    limit = LIMIT + (READER_LIMIT if reader == "on" else 0)
    for moment, memory in week.memory.items():
        for kind, value in memory.items():
            words = f"{name}: {moment}, {kind}"
            bounded = kind == "RSS" and moment == "after the week"
            yield at_most(words, value, limit, "MB") if bounded else Figure(words, value, "MB")
    yield Figure(f"{name}: a prompt's hook, p50", 1000 * percentile(week.prompts, 0.5), "ms")
    yield Figure(f"{name}: a prompt's hook, p95", 1000 * percentile(week.prompts, 0.95), "ms")
    yield Figure(f"{name}: prompts with an injection", week.injected)
    yield Figure(f"{name}: {FILLING:,} texts embedded by the process", week.filling, "s")
    yield Figure(f"{name}: one question embedded by the process", 1000 * week.question, "ms")
    if reader == "off":
        yield Figure("transcripts", week.transcripts / 1e6, "MB")
        for moment, kinds in week.disk.items():
            for kind, value in kinds.items():
                yield Figure(f"disk {moment}: {kind}", value / 1e6, "MB")
        whole = sum(week.disk["after the week"].values()) / week.transcripts
        yield at_most("disk of a byte of transcripts", whole, DISK_LIMIT, "bytes")


def play_week(reader: str) -> Week:
    """A week against a fresh home and a resident process of its own."""
    with tempfile.TemporaryDirectory(prefix="anr") as root:
        week, environ = Week(), user_environment(Path(root)) | {"ANAPHORA_READER": reader}
        try:
            _play(Path(root), environ, week)
        finally:
            stop_residents(environ)
        return week


def _play(root: Path, environ: Mapping[str, str], week: Week) -> None:
    stories = iter([story for story in read_stories(FOLDER) if story.lang == "en"])
    files = itertools.cycle(sorted((_REPOSITORY / "src" / "anaphora").glob("**/*.py")))
    share = [PROMPTS // SESSIONS + (n < PROMPTS % SESSIONS) for n in range(SESSIONS)]
    for number, prompts in enumerate(share):
        transcript = _session(root, number)
        _hook(environ, transcript, "SessionStart", source="startup")
        if not number:
            _hook(environ, transcript, "UserPromptSubmit", prompt="which editor do I use?")
            _settle(environ)
            week.memory["fresh"] = _memory(environ)
        _live_through(transcript, environ, week, _exchanges(stories, prompts), files)
        _call_tools(environ, transcript)
        # Every fifth window is closed without a word.
        if number % 5 != 4:
            _hook(environ, transcript, "SessionEnd", reason="exit")
    _settle(environ)
    week.memory["after the week"] = _memory(environ)
    week.disk["after the week"] = disk_by_kind(root / "home", root / "state")
    week.transcripts = size_of(root / "user")
    week.question, week.filling = _embedding(environ)
    _do_large_work(root, environ, stories)
    _settle(environ)
    week.memory["after large work"] = _memory(environ)


def _live_through(
    transcript: Transcript,
    environ: Mapping[str, str],
    week: Week,
    exchanges: Sequence[tuple[str, str]],
    files: Iterator[Path],
) -> None:
    for prompt, reply in exchanges:
        spent, out = _hook(environ, transcript, "UserPromptSubmit", prompt=prompt)
        week.prompts.append(spent)
        week.injected += bool(out.strip())
        transcript.add("user", prompt)
        transcript.add_tool_call(next(files))
        transcript.add("assistant", [{"type": "text", "text": reply}])
        # The end of a turn within 30 s is put off; before a compaction a transcript is read.
        _hook(environ, transcript, "PreCompact", trigger="auto")


def _exchanges(stories: Iterator[Story], count: int) -> list[tuple[str, str]]:
    """What the user types and what is answered: turns of stories, two at a time."""
    texts: list[str] = []
    while len(texts) < 2 * count:
        texts += [turn.text for session in next(stories).sessions for turn in session.turns]
    return list(zip(texts[0 : 2 * count : 2], texts[1 : 2 * count : 2], strict=True))


def _session(root: Path, number: int) -> Transcript:
    project = PROJECTS[number % 2]
    directory = root / "code" / project
    folder = root / "user" / ".claude" / "projects" / str(directory).replace("/", "-")
    for needed in (directory, folder):
        needed.mkdir(parents=True, exist_ok=True)
    session = f"{number:08x}-0000-4000-8000-000000000000"
    began = datetime.fromisoformat("2026-11-16T08:00:00+00:00") + timedelta(hours=8 * number)
    return Transcript(folder / f"{session}.jsonl", session, str(directory), began)


def _hook(
    environ: Mapping[str, str], transcript: Transcript, event: str, **more: Any
) -> tuple[float, str]:
    """Seconds of one hook, and what it printed."""
    event_fields = {
        "hook_event_name": event,
        "session_id": transcript.session,
        "transcript_path": str(transcript.place),
        "cwd": transcript.directory,
        **more,
    }
    return seconds_of([str(SCRIPT), "hook", "claude-code"], environ, json.dumps(event_fields))


def _call_tools(environ: Mapping[str, str], transcript: Transcript) -> None:
    """A client's MCP server for a session: two facts are stored, three questions asked."""
    when = transcript.at.isoformat()
    facts = (f"The release of {when} listens on {transcript.at:%d%H%M}", f"Mara approved {when}")
    questions = ("what does the release listen on?", "what did Mara approve?", "what changed?")
    calls = [
        *(("store_memory", {"content": fact}) for fact in facts),
        *(("recall", {"question": question}) for question in questions),
    ]
    _call_server(environ, transcript.directory, calls)


def _call_server(
    environ: Mapping[str, str], directory: str, calls: Sequence[tuple[str, dict[str, Any]]]
) -> None:
    server = started_server(environ, directory)
    for name, arguments in calls:
        server.call(name, arguments)
    server.finish()


def _do_large_work(root: Path, environ: Mapping[str, str], stories: Iterator[Story]) -> None:
    transcript = _session(root, SESSIONS)
    texts = itertools.cycle(_all_texts())
    for prompt, reply in _exchanges(stories, LARGE_TURNS // 4):
        transcript.add("user", prompt)
        transcript.add(
            "assistant", [{"type": "text", "text": f"{reply}\n\n{_words(texts, 7_000)}"}]
        )
    _hook(environ, transcript, "PreCompact", trigger="auto")
    _settle(environ)
    text = _words(texts, LARGE_MEMORY)
    _call_server(environ, transcript.directory, [("store_memory", {"content": text})])


def _all_texts() -> list[str]:
    stories = read_stories(FOLDER)
    return [turn.text for story in stories for session in story.sessions for turn in session.turns]


def _words(texts: Iterator[str], size: int) -> str:
    """The next texts, so many characters of them."""
    parts, length = [], 0
    while length < size:
        parts.append(next(texts))
        length += len(parts[-1]) + 1
    return " ".join(parts)[:size]


def _embedding(environ: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of a question's vector and of `FILLING` texts, by the process, as a program asks."""
    texts = _all_texts()
    name = spec_for("minilm").name
    with resident.reach(environ, 10.0) as connection:

        def embed(some: Sequence[str]) -> float:
            began = time.perf_counter()
            request = {"call": "embed", "model": name, "body": json.dumps(some).encode()}
            assert "ends" in resident.ask(connection, request, 120.0)
            return time.perf_counter() - began

        question = statistics.median(embed([text]) for text in texts[-60:])
        filling = sum(embed(texts[at : at + 64]) for at in range(0, FILLING, 64))
    return question, filling


def _settle(environ: Mapping[str, str]) -> None:
    """Wait until the process has had nothing to do for `QUIET` seconds."""
    process, end = _process(environ), time.monotonic() + SETTLE
    before, since = processor_time(process), time.monotonic()
    while time.monotonic() < min(end, since + QUIET):
        time.sleep(0.5)
        ticks = processor_time(process)
        if ticks - before > 1:
            since = time.monotonic()
        before = ticks


def _process(environ: Mapping[str, str]) -> int:
    """The resident process that answers programs with these variables."""
    with resident.reach(environ, 10.0) as connection:
        hello = {"call": "hello", "stamp": resident.program_stamp()}
        return int(resident.ask(connection, hello, 10.0)["pid"])


def _memory(environ: Mapping[str, str]) -> dict[str, float]:
    process = _process(environ)
    rollup = {}
    for line in Path(f"/proc/{process}/smaps_rollup").read_text("utf-8").splitlines()[1:]:
        name, size = line.split(":")
        rollup[name] = int(size.split()[0]) / 1000
    pss, clean, dirty = (rollup[name] for name in _ROLLUP)
    return {
        "RSS": memory_of("VmRSS", process),
        "PSS": pss,
        "USS": clean + dirty,
        "peak": memory_of("VmHWM", process),
    }


def disk_by_kind(home: Path, state: Path) -> dict[str, float]:
    """Bytes of a home's files, and of the logs, by what they are for; a file of two names once."""
    kinds: dict[str, float] = {}
    counted: set[int] = set()
    for path in home.glob("**/*"):
        status = path.stat()
        if path.is_file() and status.st_ino not in counted:
            counted.add(status.st_ino)
            kind = _kind_of(path.relative_to(home))
            kinds[kind] = kinds.get(kind, 0) + status.st_size
    kinds["logs"] = size_of(state)
    return dict(sorted(kinds.items()))


def _kind_of(path: Path) -> str:
    name, folders = path.name, path.parts[:-1]
    if name.endswith(("-wal", "-shm")):
        return "write-ahead log"
    if name.endswith((".db", ".sqlite")):
        return "database"
    if "hooks" in folders:
        return "state of hooks"
    return f"{folders[0]}/…" if folders else "other files"


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m bench.resident", description=__doc__).parse_args()
    run()
