"""Parts of the word index on disk: forgetting a document rewrites only the part that has it.

A generation is a folder that tantivy opens as one index. Each part was written by its own writer,
and `meta.json`, which lists the segments of all parts, is composed here: no writer is ever opened
on the folder, so tantivy merges nothing. A part never changes. Only parts listed in `meta.json` may
be read: a part that was dropped with forgotten words is no longer listed.
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
    SegmentMeta,
    SegmentPart,
    signature_of,
    write_segment,
)

_META: Final = "meta.json"


@dataclass(frozen=True, slots=True)
class PartSizes:
    """How many documents a part has: `least`, or one of `share` equal shares if that is more.

    A search reads every part, and forgetting a document rewrites a whole part
    (docs/decisions/0022). Above `most` parts the smallest ones are joined.
    """

    least: int = 2_500
    share: int = 12
    most: int = 24

    def usual_size(self, total: int) -> int:
        """The size of a part if there are `total` documents."""
        return max(self.least, -(-total // self.share))

    def split(self, count: int, total: int) -> list[int]:
        """The sizes of the new parts for `count` new documents, of `total` in all."""
        if not count:
            return []
        parts = max(1, round(count / self.usual_size(total)))
        return [count * (at + 1) // parts - count * at // parts for at in range(parts)]

    def choose_staying(self, parts: Sequence[SegmentPart], fresh: int) -> tuple[SegmentPart, ...]:
        """The parts that stay unchanged if `fresh` documents are written beside them.

        Small parts are rewritten together with the new documents while they have no more documents
        than these: few parts stay small, and a document is only rewritten when its part doubles.
        """
        size = self.usual_size(fresh + sum(part.count for part in parts))
        # Empty parts never stay.
        remaining = sorted((part for part in parts if part.count), key=lambda part: part.count)
        while fresh and remaining and fresh + remaining[0].count <= size:
            if remaining[0].count > fresh and len(remaining) < self.most:
                break
            fresh += remaining.pop(0).count
        return tuple(sorted(remaining, key=lambda part: part.first))


def load_parts(stored: Iterable[Sequence[Any]]) -> tuple[SegmentPart, ...]:
    """Parts from the form in a manifest. Raises TypeError or ValueError for anything else."""
    parts = []
    for first_number, count, tokens, segments, files, part_signature in stored:
        sized_segments = tuple((str(name), int(documents)) for name, documents in segments)
        parts.append(
            SegmentPart(
                first_number, count, tuple(tokens), sized_segments, tuple(files), part_signature
            )
        )
    return tuple(parts)


def free_number(parts: Iterable[SegmentPart], count: int) -> int:
    """The first number that begins `count` free numbers."""
    first_number = 1
    for part in sorted(parts, key=lambda part: part.first):
        if part.first - first_number >= count:
            break
        first_number = max(first_number, part.upto + 1)
    return first_number


def write_part(
    folder: Path, fields: Sequence[str], first: int, documents: Iterable[NumberedTexts]
) -> SegmentPart:
    """Write documents `first`, `first` + 1, … as a part into `folder`; it is not listed yet.

    Raises one of WORD_INDEX_ERRORS.
    """
    scratch = folder / uuid.uuid4().hex
    meta = write_segment(scratch, SegmentMeta(), fields, documents)
    segments = _count_documents(_read_list(scratch))
    files = sorted(path.name for path in scratch.iterdir() if _segment_of(path.name) in segments)
    part = SegmentPart(
        first,
        meta.count,
        meta.tokens,
        tuple(segments.items()),
        tuple(files),
        signature_of(scratch, files),
    )
    for name in (*part.files, _META):
        (scratch / name).replace(folder / name)
    # The remaining files contain no words, so failing to delete them does no harm.
    shutil.rmtree(scratch, ignore_errors=True)
    return part


def link_part(part: SegmentPart, source: Path, target: Path) -> bool:
    """Link the files of a part into another generation; False if the part is gone.

    Raises OSError, or ValueError if it is torn.
    """
    try:
        check_part(part, source)
        for name in part.files:
            try:
                os.link(source / name, target / name)
            except FileNotFoundError:
                raise
            except OSError:
                # Not every file system has links.
                shutil.copyfile(source / name, target / name)
    except FileNotFoundError:
        for name in part.files:
            (target / name).unlink(missing_ok=True)
        return False
    return True


def copy_list(source: Path, target: Path) -> None:
    """Copy the list of parts of another generation. Raises OSError."""
    shutil.copyfile(source / _META, target / _META)


def list_parts(folder: Path, parts: Sequence[SegmentPart]) -> int:
    """List these parts in `folder`; the signature of all. Raises OSError or ValueError."""
    meta_fields = _read_list(folder)
    _write_list(folder, meta_fields, dict(segment for part in parts for segment in part.segments))
    return _sign(meta_fields, parts)


def check_parts(folder: Path, parts: Sequence[SegmentPart], signed: int) -> tuple[SegmentPart, ...]:
    """Those of `parts` that are listed, checked. Raises OSError or ValueError if one is torn.

    `signed` is the signature of all of them.
    """
    meta_fields = _read_list(folder)
    if _sign(meta_fields, parts) != signed:
        raise ValueError("the word index on disk is not the one that was finished")
    usable = select_listed(folder, parts)
    if not usable or _count_documents(meta_fields) != dict(
        s for part in usable for s in part.segments
    ):
        raise ValueError("the word index on disk has lost parts")
    for part in usable:
        check_part(part, folder)
    return usable


def check_part(part: SegmentPart, folder: Path) -> None:
    """Raise ValueError or OSError if the files of a part are not as they were written."""
    if signature_of(folder, part.files) != part.signature:
        raise ValueError("the word index on disk is torn")


def select_listed(folder: Path, parts: Iterable[SegmentPart]) -> tuple[SegmentPart, ...]:
    """Those of `parts` that no process has dropped. Raises OSError or ValueError."""
    segments = _count_documents(_read_list(folder))
    return tuple(part for part in parts if all(name in segments for name, _ in part.segments))


def drop_parts(folder: Path, parts: Iterable[SegmentPart]) -> None:
    """Remove parts from the disk, listed or not. Raises OSError or ValueError.

    Several processes may do so at once: the last one leaves a list of the remaining parts.
    """
    parts_by_segment = {name: part for part in parts for name, _ in part.segments}
    while True:
        meta_fields: dict[str, Any] = {"segments": []}
        # There is no list yet while another process is writing.
        with suppress(FileNotFoundError):
            meta_fields = _read_list(folder)
        segments = _count_documents(meta_fields)
        on_disk = {_segment_of(path.name) for path in folder.iterdir()}
        remaining = {
            n: count for n, count in segments.items() if n not in parts_by_segment and n in on_disk
        }
        if remaining != segments:
            # First the list: a process that opens the index now finds all listed files.
            _write_list(folder, meta_fields, remaining)
        for part in parts_by_segment.values():
            for name in part.files:
                # Windows refuses to delete open files: they go with their generation.
                with suppress(PermissionError):
                    (folder / name).unlink(missing_ok=True)
        if remaining == segments:
            return


def _read_list(folder: Path) -> dict[str, Any]:
    """The `meta.json` of an index. Raises OSError or ValueError."""
    meta_fields = json.loads((folder / _META).read_text(encoding="utf-8"))
    if not isinstance(meta_fields, dict) or not isinstance(meta_fields.get("segments"), list):
        raise ValueError(f"{_META} of the word index on disk is torn")
    return meta_fields


def _count_documents(described: dict[str, Any]) -> dict[str, int]:
    """The number of documents of each segment."""
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
    segment_list = [
        {"segment_id": name, "max_doc": count, "deletes": None} for name, count in segments.items()
    ]
    new_path = folder / f"{uuid.uuid4().hex}.new"
    new_path.write_text(json.dumps({**described, "segments": segment_list}), encoding="utf-8")
    new_path.replace(folder / _META)


def _sign(described: dict[str, Any], parts: Iterable[SegmentPart]) -> int:
    """A checksum of the description of an index and its parts."""
    # tantivy's counter of writes ("opstamp") differs from part to part.
    stable = {key: field for key, field in described.items() if key not in ("segments", "opstamp")}
    return zlib.crc32(json.dumps([stable, [astuple(part) for part in parts]]).encode())


def sum_parts(parts: Collection[SegmentPart], fields: int) -> tuple[int, tuple[int, ...]]:
    """How many documents the parts have, and how many tokens in each field."""
    tokens = tuple(sum(part.tokens[at] for part in parts) for at in range(fields))
    return sum(part.count for part in parts), tokens
