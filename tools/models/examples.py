"""What training reads: a question, what answers it and what does not, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ExampleT = TypeVar("ExampleT")
AS_WRITTEN = "written"
LONG = "long"
"""The lane of passages that are cut late: several turns in one."""
MEANT = "meant"
"""How the product reads a question that names a speaker: without the name."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the passages that answer it.

    `queries` are (style, text), the first as it was written. Any of `positives` answers; none of
    `negatives` does, the likeliest to be mistaken first. `neutral` is neither: an outdated value,
    or the same told in the other lane; it is never held against the question. Texts of one `group`
    are from one story, chat or package. `lane` is what is asked for: turns, facts, long passages,
    code, documents. `language` is that of all texts, or `en of de`: asked in the first.
    """

    key: str
    source: str
    lane: str
    group: str
    queries: tuple[tuple[str, str], ...]
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    neutral: tuple[str, ...] = ()
    language: str = "en"

    @property
    def query(self) -> str:
        """The question as it was written."""
        return self.queries[0][1]


def write_lines(path: Path, examples: Iterable[DataclassInstance]) -> int:
    """Write examples of one kind, one a line; how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with path.open("w", encoding="utf-8") as lines:
        for example in examples:
            lines.write(json.dumps(asdict(example), ensure_ascii=False) + "\n")
            count += 1
    return count


def read_examples(path: Path) -> Iterator[Example]:
    """The examples of a file, in its order."""
    return read_lines(path, Example)


def read_lines(path: Path, kind: type[ExampleT]) -> Iterator[ExampleT]:
    """The examples of one kind in a file, in its order; lists are tuples."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield kind(**{name: _frozen(field) for name, field in json.loads(line).items()})


def _frozen(field: Any) -> Any:
    return tuple(map(_frozen, field)) if isinstance(field, list) else field


def chunks(examples: Iterable[ExampleT], size: int) -> Iterator[list[ExampleT]]:
    """Lists of `size` in their order, the last one shorter."""
    rest = iter(examples)
    while chunk := list(islice(rest, size)):
        yield chunk
