"""Neo's daemon in small: `daemon_child.py DIRECTORY COUNT LABEL ID ...`.

It appends turns round about to conversations as the Go program does: the whole file is read, one
turn is added, and `<id>.json.tmp` is renamed over it. It knows no lock. Each turn is printed once
it is written.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def main() -> None:
    directory, count, label, *ids = sys.argv[1:]
    for number in range(int(count)):
        append(Path(directory), ids[number % len(ids)], f"{label} {number}")
        print(f"{ids[number % len(ids)]}\t{label} {number}", flush=True)


def append(directory: Path, conversation_id: str, text: str) -> None:
    """One turn, as the daemon writes it."""
    directory.mkdir(exist_ok=True)
    path = directory / f"{conversation_id}.json"
    record: dict[str, Any] = {"conversation_id": conversation_id, "turns": []}
    if path.exists():
        record = json.loads(path.read_text("utf-8"))
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    record["turns"] = [*(record["turns"] or []), {"role": "user", "text": text, "ts": now}]
    record["updated"] = now
    temporary = directory / f"{path.name}.tmp"
    temporary.write_text(json.dumps(record, ensure_ascii=False), "utf-8")
    temporary.rename(path)


if __name__ == "__main__":
    main()
