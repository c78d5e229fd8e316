# ruff: noqa: A005 - it is run as `python -m bench.secrets`
"""False alarms of the redaction of secrets on foreign code and text, and what it costs.

    python -m bench.secrets --data DIR

Reads every file below DIR as text: JSON by its strings, a SQLite database by its texts and packed
blobs, the rest as it is. Prints how much was read, each find by kind with its line (the secret
itself only with `--show`: foreign code has examples of keys, which a person has to look at), how
many of them nobody has looked at yet, and the CPU time for a megabyte. `secrets_labels.txt` has a
line for each find that a person has read and that is a literal secret, as those of tests and
manuals are: a digest of its kind and words, and what it is. A find without a line is a false alarm
or is new.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from anaphora.ingest.secrets.redacting import redact, secrets_in

_LEAST = 40


def texts_below(folder: Path) -> Iterator[tuple[str, str]]:
    """Every text below a folder, with a name for it."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".sqlite", ".db"}:
            yield from _of_database(path)
        elif path.is_file():
            data = path.read_bytes()
            if b"\0" in data[:4096]:
                continue
            text = data.decode("utf-8-sig", "replace")
            try:
                value = json.loads(text) if path.suffix == ".json" else None
            except (ValueError, RecursionError):
                value = None  # lines of JSON, or what only bears the name
            if value is None:
                yield path.name, text
            else:
                yield from ((path.name, part) for part in _strings(value))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) >= _LEAST:
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _of_database(path: Path) -> Iterator[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as rows:
        tables = [
            name for (name,) in rows.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for table in tables:
            for row in rows.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    text = _unpacked(value) if isinstance(value, bytes) else value
                    if isinstance(text, str) and len(text) >= _LEAST:
                        yield f"{path.name}:{table}", text


def _unpacked(value: bytes) -> str | None:
    try:
        return zlib.decompress(value).decode("utf-8", "replace")
    except zlib.error:
        return None


LABELS = Path(__file__).with_name("secrets_labels.txt")


def digest(kind: str, secret: str) -> str:
    """What a find is known by in the file of labels."""
    return hashlib.sha256(f"{kind}\0{secret}".encode()).hexdigest()[:16]


def labelled() -> frozenset[str]:
    """The digests of the finds that a person has read."""
    lines = LABELS.read_text("utf-8").splitlines()
    return frozenset(line.split()[0] for line in lines if line and not line.startswith("#"))


def main() -> None:
    """Read the texts and say what was found in them."""
    parser = argparse.ArgumentParser(prog="python -m bench.secrets", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder of foreign code or text")
    parser.add_argument("--most", type=int, default=20_000_000, help="characters that are read")
    parser.add_argument("--show", action="store_true", help="show each line with what was found")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    known, fresh = labelled(), 0
    size, seconds = 0, 0.0
    for name, text in texts_below(options.data):
        began = time.process_time()
        redacted = redact(text)
        seconds += time.process_time() - began
        size += len(text)
        kinds.update(redacted.kinds)
        for secret, kind in secrets_in(text).items() if redacted.kinds else ():
            fresh += digest(kind, secret) not in known
            if options.show:
                at = text.find(secret)
                line = text[text.rfind("\n", 0, at) + 1 : at + len(secret) + 20].partition("\n")[0]
                print(f"{kind:20} {name:36} {line.strip()[:150]}")
        if size >= options.most:
            break
    print(f"{size:,} characters, {sum(kinds.values())} finds: {dict(kinds.most_common())}")
    print(f"{fresh} of them without a label")
    print(f"{seconds / max(1, size) * 1e6:.3f} s of CPU time for a million characters")


if __name__ == "__main__":
    main()
