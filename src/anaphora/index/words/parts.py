"""Parts of the words on disk: what was forgotten makes only the part anew in which it lies.

A generation is a folder that tantivy opens as one index. Each of its parts was written by a writer
of its own, and `meta.json`, which lists the segments of all of them, is composed here: no writer
is ever opened on the folder, so nothing is merged behind our back. A part never changes. What may
be read is what `meta.json` lists: a part that went with forgotten words is not in it any more.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from anaphora.index.words.segment import (
    NumberedTexts,
    Part,
    SegmentMeta,
    signature_of,
    write_segment,
)

_META: Final = "meta.json"


@dataclass(frozen=True, slots=True)
class PartSizes:
    """How many documents lie in a part: `least`, or one of `share` equal shares if that is more.

    A search looks into every part, and what was forgotten makes a whole part anew
    (docs/decisions/0048). Above `most` parts the smallest ones are joined.
    """

    least: int = 2_500
    share: int = 12
    most: int = 24

    def usual(self, total: int) -> int:
        """The size of a part where there are `total` documents."""
        return max(self.least, -(-total // self.share))

    def split(self, count: int, total: int) -> list[int]:
        """How many of `count` new documents, of `total` in all, go into each new part."""
        if not count:
            return []
        parts = max(1, round(count / self.usual(total)))
        return [count * (at + 1) // parts - count * at // parts for at in range(parts)]

    def kept(self, parts: Sequence[Part], fresh: int) -> tuple[Part, ...]:
        """The parts that stay as they are where `fresh` documents are written beside them.

        Small ones are written anew together with what comes, as long as they are not larger than
        it: so that few are small, and no document is written more often than its part doubles.
        """
        size = self.usual(fresh + sum(part.count for part in parts))
        # An empty part has nothing to stay for.
        remaining = sorted((part for part in parts if part.count), key=lambda part: part.count)
        while fresh and remaining and fresh + remaining[0].count <= size:
            if remaining[0].count > fresh and len(remaining) < self.most:
                break
            fresh += remaining.pop(0).count
        return tuple(sorted(remaining, key=lambda part: part.first))


def parts_from(stored: Iterable[Sequence[Any]]) -> tuple[Part, ...]:
    """Parts as `stored_parts` gave them. Raises TypeError or ValueError for anything else."""
    parts = []
    for first, count, tokens, segments, files, signed in stored:
        sized_segments = tuple((str(name), int(documents)) for name, documents in segments)
        parts.append(Part(first, count, tuple(tokens), sized_segments, tuple(files), signed))
    return tuple(parts)


def stored_parts(parts: Iterable[Part]) -> list[tuple[Any, ...]]:
    """Parts in the form that a manifest has them in."""
    return [astuple(part) for part in parts]


def free_number(parts: Iterable[Part], count: int) -> int:
    """The first number from which on `count` numbers are free."""
    first = 1
    for part in sorted(parts, key=lambda part: part.first):
        if part.first - first >= count:
            break
        first = max(first, part.upto + 1)
    return first


def part_in(folder: Path, first: int, meta: SegmentMeta) -> Part:
    """All that lies in the folder of a writer, as one part. Raises OSError or ValueError."""
    segments = _segments(_described(folder))
    files = sorted(path.name for path in folder.iterdir() if _segment_of(path.name) in segments)
    signed = signature_of(folder, files)
    return Part(first, meta.count, meta.tokens, tuple(segments.items()), tuple(files), signed)


def write_part(
    folder: Path, fields: Sequence[str], first: int, documents: Iterable[NumberedTexts]
) -> Part:
    """Write documents `first`, `first` + 1, … as a part into `folder`; it is not listed yet.

    Raises one of WORD_INDEX_ERRORS.
    """
    scratch = folder / uuid.uuid4().hex
    part = part_in(scratch, first, write_segment(scratch, SegmentMeta(), fields, documents))
    for name in (*part.files, _META):
        (scratch / name).replace(folder / name)
    # What is left of it has no words.
    shutil.rmtree(scratch, ignore_errors=True)
    return part


def link_part(part: Part, source: Path, target: Path) -> bool:
    """Let a part lie in another generation too; False where it is gone.

    Raises OSError, or ValueError where it is torn.
    """
    try:
        check_part(part, source)
        for name in part.files:
            _link(source / name, target / name)
    except FileNotFoundError:
        for name in part.files:
            (target / name).unlink(missing_ok=True)
        return False
    return True


def copy_list(source: Path, target: Path) -> None:
    """Begin the list of a generation with that of another one. Raises OSError."""
    shutil.copyfile(source / _META, target / _META)


def list_parts(folder: Path, parts: Sequence[Part]) -> int:
    """Let `folder` be the index of these parts; its signature. Raises OSError or ValueError."""
    described = _described(folder)
    _write_list(folder, described, dict(segment for part in parts for segment in part.segments))
    return _signature(described, parts)


def usable_parts(folder: Path, parts: Sequence[Part], signed: int) -> tuple[Part, ...]:
    """Those of `parts` that may be read, checked. Raises OSError or ValueError where one is torn.

    `signed` is the signature of all of them.
    """
    described = _described(folder)
    if _signature(described, parts) != signed:
        raise ValueError("the word index on disk is not the one that was finished")
    usable = parts_listed(folder, parts)
    if not usable or _segments(described) != dict(s for part in usable for s in part.segments):
        raise ValueError("the word index on disk has lost parts")
    for part in usable:
        check_part(part, folder)
    return usable


def check_part(part: Part, folder: Path) -> None:
    """Raise ValueError or OSError where the files of a part are not as they were written."""
    if signature_of(folder, part.files) != part.signature:
        raise ValueError("the word index on disk is torn")


def parts_listed(folder: Path, parts: Iterable[Part]) -> tuple[Part, ...]:
    """Those of `parts` that nobody has dropped. Raises OSError or ValueError."""
    segments = _segments(_described(folder))
    return tuple(part for part in parts if all(name in segments for name, _ in part.segments))


def drop_parts(folder: Path, parts: Iterable[Part]) -> None:
    """Take parts off the disk, listed or not. Raises OSError or ValueError.

    Several processes may do so at once: whoever is last leaves a list of what is there.
    """
    dropped = {name: part for part in parts for name, _ in part.segments}
    while True:
        described: dict[str, Any] = {"segments": []}
        # There is none yet where another process is writing.
        with suppress(FileNotFoundError):
            described = _described(folder)
        segments = _segments(described)
        on_disk = {_segment_of(path.name) for path in folder.iterdir()}
        remaining = {n: count for n, count in segments.items() if n not in dropped and n in on_disk}
        if remaining != segments:
            # First the list: who opens the index now finds what it names.
            _write_list(folder, described, remaining)
        for part in dropped.values():
            for name in part.files:
                # Windows keeps what is open: it goes with its generation.
                with suppress(PermissionError):
                    (folder / name).unlink(missing_ok=True)
        if remaining == segments:
            return


def _described(folder: Path) -> dict[str, Any]:
    """What tantivy says of an index. Raises OSError or ValueError."""
    described = json.loads((folder / _META).read_text(encoding="utf-8"))
    if not isinstance(described, dict) or not isinstance(described.get("segments"), list):
        raise ValueError(f"{_META} of the word index on disk is torn")
    return described


def _segments(described: dict[str, Any]) -> dict[str, int]:
    """Each segment with its number of documents."""
    try:
        return {segment["segment_id"]: segment["max_doc"] for segment in described["segments"]}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{_META} of the word index on disk is torn") from error


def _segment_of(name: str) -> str:
    """The segment that a file belongs to; "" for other files."""
    stem = name.partition(".")[0]
    with suppress(ValueError):
        return str(uuid.UUID(stem)) if len(stem) == 32 else ""
    return ""


def _write_list(folder: Path, described: dict[str, Any], segments: dict[str, int]) -> None:
    listed = [
        {"segment_id": name, "max_doc": count, "deletes": None} for name, count in segments.items()
    ]
    fresh = folder / f"{uuid.uuid4().hex}.new"
    fresh.write_text(json.dumps({**described, "segments": listed}), encoding="utf-8")
    fresh.replace(folder / _META)


def _signature(described: dict[str, Any], parts: Iterable[Part]) -> int:
    """One number over all that is said of an index, and the files of its parts."""
    # How often tantivy was written to differs from part to part.
    stable = {key: field for key, field in described.items() if key not in ("segments", "opstamp")}
    return zlib.crc32(json.dumps([stable, [astuple(part) for part in parts]]).encode())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        # Not every file system has links.
        shutil.copyfile(source, target)


def total_of(parts: Collection[Part], fields: int) -> tuple[int, tuple[int, ...]]:
    """How many documents lie in parts, and how many tokens each field has."""
    tokens = tuple(sum(part.tokens[at] for part in parts) for at in range(fields))
    return sum(part.count for part in parts), tokens
