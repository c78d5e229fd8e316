"""What it costs that documents and imports are read in a process of their own.

    python -m bench.document_workers [--before COMMIT] [--rounds N]

The first document or import of a program, and 1,000 small files of each kind: on this source, and
on that of the last commit before there was such a process. Each is a process of its own, in turns,
so that both see the same machine; a figure is the least of all rounds, in seconds of the processor
with those of children, since others may use the machine.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.figures import Figure, at_most, keep

ROOT: Final = Path(__file__).parents[1]
BEFORE: Final = "f4f45ab8"
"""The last commit at which the program read documents and imports itself."""
FILES: Final = 1_000
ROUNDS: Final = 3
_SAID: Final = "The harbour opens at six in the morning, number {}. "
_TIME: Final = "2026-01-01T00:00:00Z"


def _json_lines(number: int) -> str:
    turn = {"text": _SAID.format(number), "conversation_id": f"c{number}"}
    return "".join(json.dumps({"role": role} | turn) + "\n" for role in ("user", "assistant"))


def _claude_code(number: int) -> str:
    lines = []
    for role, parent in (("user", None), ("assistant", f"user{number}")):
        message = {"role": role, "content": _SAID.format(number)}
        line = {"type": role, "uuid": f"{role}{number}", "parentUuid": parent, "timestamp": _TIME}
        lines.append(json.dumps(line | {"sessionId": f"s{number}", "message": message}) + "\n")
    return "".join(lines)


def _claude_ai(number: int) -> str:
    said = {"uuid": f"m{number}", "sender": "human", "text": _SAID.format(number)}
    chat = {"uuid": f"c{number}", "name": "Harbour", "created_at": _TIME, "updated_at": _TIME}
    return json.dumps([chat | {"chat_messages": [said | {"created_at": _TIME}]}])


def _text(number: int) -> bytes:
    return (_SAID.format(number) * 10).encode()


def _mail(number: int) -> bytes:
    head = f"From: a@b\r\nTo: c@d\r\nSubject: Note {number}\r\nMessage-ID: <{number}@x>\r\n"
    return f"{head}MIME-Version: 1.0\r\n\r\n".encode() + _text(number) + b"\r\n"


def _docx(number: int) -> bytes:
    from tests.document_files import docx

    return docx([(f"Note {number}", 1), (_SAID.format(number) * 10, 0)], title=f"Note {number}")


def _pdf(number: int) -> bytes:
    from tests.document_files import pdf

    return pdf([[_SAID.format(number)] * 10], title=f"Note {number}")


IMPORTS: Final[Mapping[str, tuple[str, Callable[[int], str]]]] = {
    "JSON Lines": (".jsonl", _json_lines),
    "notes": (".md", lambda number: f"# N {number}\n\n{_SAID.format(number)}\n"),
    "Claude Code": (".jsonl", _claude_code),
    "Claude.ai": (".json", _claude_ai),
}
DOCUMENTS: Final[Mapping[str, tuple[str, Callable[[int], bytes]]]] = {
    "text": (".txt", _text),
    "Markdown": (".md", lambda number: b"# Note %d\n\n%s\n" % (number, _text(number))),
    "HTML": (".html", lambda number: b"<h1>%d</h1><p>%s</p>" % (number, _text(number))),
    "mail": (".eml", _mail),
    "DOCX": (".docx", _docx),
    "PDF": (".pdf", _pdf),
}
EXPORT: Final = "our export"


def run(before: str = BEFORE, rounds: int = ROUNDS) -> list[Figure]:
    """All kinds; prints and keeps the figures."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        sources = {"before": _source_of(before, Path(folder)), "now": ROOT / "src"}
        for kind, count in _cases():
            spent = _least(kind, count, sources, rounds)
            figures += _figures(kind, count, spent)
            print(*(f"{one.name} {one.value:.2f} {one.unit}" for one in figures[-3:]), sep="; ")
    keep("document_workers", "Documents and imports in a process of their own", figures)
    return figures


def _cases() -> Iterator[tuple[str, int]]:
    for count in (1, FILES):
        for kind in (*DOCUMENTS, *IMPORTS, EXPORT):
            if count > 1 or kind in ("text", "PDF", "JSON Lines"):
                yield kind, count


def _figures(kind: str, count: int, spent: Mapping[str, tuple[float, float]]) -> Iterator[Figure]:
    what = f"{count:,} files, {kind}" if count > 1 else f"the first, {kind}"
    (before, _), (now, clock) = spent["before"], spent["now"]
    yield Figure(f"{what}: before there was one", before, "s")
    if count > 1:
        yield Figure(f"{what}: now", now, "s")
        yield at_most(f"{what}: now, relative to before", now / before, 1.3, "x")
    else:
        yield at_most(f"{what}: now", now, 0.5, "s")
        yield Figure(f"{what}: now, by the clock", clock, "s")


def _least(
    kind: str, count: int, sources: Mapping[str, Path], rounds: int
) -> dict[str, tuple[float, float]]:
    """The least seconds of the processor and of the clock that each source took."""
    least: dict[str, tuple[float, float]] = {}
    for _ in range(rounds if count > 1 else 2 * rounds):
        for name, source in sources.items():
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(ROOT)))}
            command = [sys.executable, "-m", "bench.document_workers", "--one", kind, str(count)]
            done = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True, cwd="/"
            )
            processor, clock = json.loads(done.stdout)
            known = least.get(name, (processor, clock))
            least[name] = min(known[0], processor), min(known[1], clock)
    return least


def _source_of(commit: str, folder: Path) -> Path:
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit, "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "src"


def _one(kind: str, count: int) -> tuple[float, float]:
    """What it takes to bring in so many files, in seconds of the processor and of the clock."""
    from anaphora import Memory

    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder, "home"), embedder="hashing") as memory,
    ):
        memory.remember("The heron is grey.")
        if kind in DOCUMENTS:
            ending, make = DOCUMENTS[kind]
            files = [make(number) for number in range(count)]
            began, clock = _processor(), time.perf_counter()
            for number, data in enumerate(files):
                memory.add_document(data, name=f"{number}{ending}", embed=False)
        else:
            source = Path(folder, "source")
            _write(kind, count, source)
            began, clock = _processor(), time.perf_counter()
            report = memory.import_(source, embed=False)
            if report.conversations + report.memories_added < count or report.problems:
                raise RuntimeError(f"{kind}: {report}")
        taken = time.perf_counter() - clock
        # What a child took is known when it has ended.
        with suppress(ImportError):
            from anaphora.core.worker import end_workers

            end_workers()
        return _processor() - began, taken


def _write(kind: str, count: int, place: Path) -> None:
    from anaphora import Memory

    if kind == EXPORT:
        with Memory.open(place.with_name("other"), embedder="hashing") as other:
            other.remember_many([_SAID.format(number) for number in range(count)])
            other.export(place)
        return
    place.mkdir()
    ending, make = IMPORTS[kind]
    for number in range(count):
        (place / f"{number}{ending}").write_text(make(number), encoding="utf-8")


def _processor() -> float:
    times = os.times()
    return sum(times[:4])


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="a commit without such a process")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_one(given.one[0], int(given.one[1]))))
    else:
        run(given.before, given.rounds)


if __name__ == "__main__":
    main()
