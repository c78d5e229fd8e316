"""A document read in a worker process, with limits of memory and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from anaphora.errors import MissingExtra, UnreadableDocument
from anaphora.features.documents.reading.base import DocumentLimits, ExtractedDocument, OtherKind
from anaphora.features.documents.reading.cutting import CutDocument, CutSection, cut_document
from anaphora.features.documents.reading.reading import read_document
from anaphora.system.worker import WorkerEnded, WorkerFailed, WorkerLimits, call_in_worker
from anaphora.values.conversations import ImportProblem
from anaphora.values.plain import Types, types_of


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document that was read: what it tells of itself, without blocks, and its sections."""

    told: ExtractedDocument
    cut: CutDocument


_TYPES: Final[Types] = types_of(
    CutDocument,
    CutSection,
    ExtractedDocument,
    ImportProblem,
    MissingExtra,
    OtherKind,
    ReadDocument,
    UnreadableDocument,
)
_OUTPUT_EACH: Final = 32
"""Bytes of the answer that a character of text may take: escapes, and where its section stands."""


def read_in_worker(name: str, data: bytes, limits: DocumentLimits) -> ReadDocument:
    """A file in sections, read in a worker. `UnreadableDocument` if it takes too much, too."""
    seconds = limits.seconds + limits.seconds_each * len(data) / 1_000_000
    output = _OUTPUT_EACH * limits.characters
    within = WorkerLimits(seconds=seconds, memory=limits.memory, output=output)
    if len(data) > limits.size:
        size, max_size = len(data), limits.size
        reason = f"it has {size:,} bytes; at most {max_size:,} are read"
        raise UnreadableDocument("document", name, reason)
    try:
        calls = call_in_worker(read_and_cut, name, data, limits, limits=within, types=_TYPES)
        (document,) = calls
    except OtherKind as error:
        raise UnreadableDocument("document", name, error.reason) from error
    except WorkerEnded as error:
        raise UnreadableDocument("document", name, str(error)) from error
    except WorkerFailed as error:
        reason = f"it is damaged: its reader failed ({error})"
        raise UnreadableDocument("document", name, reason) from error
    assert isinstance(document, ReadDocument)
    return document


def read_and_cut(name: str, data: bytes, limits: DocumentLimits) -> Iterator[ReadDocument]:
    """A file in sections: one value. Runs in a worker."""
    document = read_document(name, data, limits)
    # Each block is at least one section: too many blocks are refused before they are cut.
    cut_text = None if len(document.blocks) > limits.sections else cut_document(document.blocks)
    if cut_text is None or len(cut_text.sections) > limits.sections:
        reason = f"it has more than {limits.sections:,} sections"
        raise UnreadableDocument("document", name, reason)
    if not cut_text.sections:
        raise OtherKind("document", name, "it has no text")
    yield ReadDocument(replace(document, blocks=()), cut_text)
