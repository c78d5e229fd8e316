"""How a segment is written: the columns of new documents, joined with those of an older one.

All columns are made anew, from columns: no text is read or analysed for it. Ten thousand memories
take some milliseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.postings import MOST, term_number
from anaphora.index.words.segment import (
    ENDS,
    FORM,
    LINES_OF_DOCUMENTS,
    WORD,
    Columns,
    checksum,
    lines_of,
)

_OF_DOCUMENTS: Final = ("numbers", "digests", "lengths")
"""Columns with a cell for each document."""

_LINE_END: Final = 10


class CutShort(Exception):
    """A write was stopped before it was complete: documents it began with were forgotten."""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The indexed form of an item: the tokens of each field joined by spaces, and their digest.

    `forms` are its words as written, if those are stored. `number` (not 0) is stored beside it: of
    a turn its row id.
    """

    key: str
    texts: tuple[str, ...]
    digest: int = 0
    forms: str = ""
    number: int = 1


def columns_of(
    documents: Sequence[IndexedDocument],
    fields: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> Columns:
    """The columns of documents. Raises CutShort once `stop` is true."""
    # By field, the words as written at the end: each term, with a number in order of its coming.
    vocabularies: list[dict[str, int]] = [{} for _ in range(fields + 1)]
    terms: list[list[int]] = [[] for _ in vocabularies]
    lengths = np.zeros((fields + 1, len(documents)), np.int32)
    for at, document in enumerate(documents):
        if stop():
            raise CutShort
        for field, text in enumerate((*document.texts, document.forms)):
            words, vocabulary = text.split(" ") if text else [], vocabularies[field]
            terms[field] += [vocabulary.setdefault(word, len(vocabulary)) for word in words]
            lengths[field, at] = len(words)
    numbers = np.array(
        [
            term_number(word, field)
            for field, vocabulary in enumerate(vocabularies)
            for word in vocabulary
        ],
        np.uint64,
    )
    order = np.argsort(numbers)
    ranks = np.argsort(order)
    room, first_rank, codes = len(documents) + 1, 0, [np.empty(0, np.int64)]
    for vocabulary, field_terms, sizes in zip(vocabularies, terms, lengths, strict=True):
        field_ranks = ranks[first_rank + np.array(field_terms, np.int64)]
        codes.append(field_ranks * room + np.repeat(np.arange(1, room), sizes))
        first_rank += len(vocabulary)
    distinct_codes, counts = np.unique(np.concatenate(codes), return_counts=True)
    starts = np.searchsorted(distinct_codes, np.arange(len(numbers) + 1) * room)
    forms, first_form = list(vocabularies[-1]), len(numbers) - len(vocabularies[-1])
    return {
        "terms": numbers[order],
        "starts": starts.astype(np.int64),
        "places": (distinct_codes % room).astype(np.uint32),
        "counts": np.minimum(counts, MOST).astype(np.uint16),
        "numbers": np.array([document.number for document in documents], np.int64),
        "digests": np.array([document.digest for document in documents], np.uint64),
        "lengths": lengths[:-1],
        "keys": _text(document.key for document in documents),
        "readings": _text("" for _ in documents),
        "forms": _text(forms[at - first_form] for at in order[first_form:].tolist()),
    }


def select(columns: Columns, keep: NDArray[np.bool_], readings: Mapping[int, str]) -> Columns:
    """The columns of some of the documents, with the terms that they have, and with some new
    `readings` by place."""
    is_kept = np.concatenate(([False], keep & (columns["numbers"] > 0)))
    postings = is_kept[columns["places"]]
    starts = np.concatenate(([0], np.cumsum(postings)))[columns["starts"]]
    used = starts[1:] > starts[:-1]
    forms = lines_of(columns["forms"])
    used_forms = used[len(used) - len(forms) :].tolist()
    chosen = np.flatnonzero(is_kept[1:])
    lines = {name: lines_of(columns[name]) for name in LINES_OF_DOCUMENTS}
    for number, reading in readings.items():
        lines["readings"][number - 1] = reading
    return {
        "terms": columns["terms"][used],
        "starts": np.append(starts[:-1][used], starts[-1]),
        "places": np.cumsum(is_kept).astype(np.uint32)[columns["places"][postings]],
        "counts": columns["counts"][postings],
        **{name: columns[name][..., chosen] for name in _OF_DOCUMENTS},
        **{name: _text(lines[name][at] for at in chosen.tolist()) for name in lines},
        "forms": _text(form for form, is_used in zip(forms, used_forms, strict=True) if is_used),
    }


def join(old: Columns, new: Columns) -> Columns:
    """The columns of the documents of both, one after the other."""
    terms, of_both = np.unique(np.concatenate((old["terms"], new["terms"])), return_inverse=True)
    of_old, of_new = np.split(of_both, [len(old["terms"])])
    old_sizes, new_sizes = np.diff(old["starts"]), np.diff(new["starts"])
    before_new = np.zeros(len(terms), np.int64)
    before_new[of_old] = old_sizes
    sizes = before_new.copy()
    sizes[of_new] += new_sizes
    starts = np.concatenate(([0], np.cumsum(sizes)))
    # Where the postings of each go: those of a term one after the other.
    old_shift = np.repeat(starts[of_old] - old["starts"][:-1], old_sizes)
    new_shift = np.repeat((starts[:-1] + before_new)[of_new] - new["starts"][:-1], new_sizes)
    targets = np.concatenate(
        (np.arange(len(old_shift)) + old_shift, np.arange(len(new_shift)) + new_shift)
    )
    joined: Columns = {"terms": terms, "starts": starts}
    new = {**new, "places": new["places"] + np.uint32(len(old["numbers"]))}
    for name in ("places", "counts"):
        joined[name] = np.empty(len(targets), old[name].dtype)
        joined[name][targets] = np.concatenate((old[name], new[name]))
    for name in _OF_DOCUMENTS:
        joined[name] = np.concatenate((old[name], new[name]), axis=-1)
    for name in LINES_OF_DOCUMENTS:
        joined[name] = _text((*lines_of(old[name]), *lines_of(new[name])))
    forms: dict[int, str] = {}
    for columns in (old, new):
        lines = lines_of(columns["forms"])
        form_terms = columns["terms"][len(columns["terms"]) - len(lines) :]
        forms.update(zip(form_terms.tolist(), lines, strict=True))
    joined["forms"] = _text(forms[term] for term in sorted(forms))
    return joined


def write_columns(path: Path, columns: Columns, form: str, generation: str, upto: int) -> None:
    """Write a new file. Raises OSError."""
    columns = columns | {
        name + ENDS: np.flatnonzero(columns[name] == _LINE_END).astype(np.uint32)
        for name in (*LINES_OF_DOCUMENTS, "forms")
    }
    header = {
        "form": FORM + form,
        "generation": generation,
        "upto": upto,
        "columns": [[name, column.dtype.str, column.shape] for name, column in columns.items()],
    }
    described = json.dumps(header).encode()
    described += b" " * (-len(described) % WORD)
    blocks = [len(described).to_bytes(WORD, "little") + described]
    blocks += [column.tobytes() + bytes(-column.nbytes % WORD) for column in columns.values()]
    total = np.zeros(1, np.uint64)
    for block in blocks:
        total += checksum(np.frombuffer(block, np.uint64))
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(total.tobytes())
        file.writelines(blocks)


def _text(lines: Iterable[str]) -> NDArray[np.uint8]:
    """A column of text: each line is between two ends of lines."""
    return np.frombuffer("\n".join(("", *lines, "")).encode("utf-8", "surrogatepass"), np.uint8)
