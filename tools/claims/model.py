"""Claims as data: the words on a page, the values in them, and what shows that they hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

__all__ = ["Claim", "ClaimError", "Table", "Value", "in_words"]

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
# What a value looks like on a page: a number in digits or in letters, or a dash for none.
_SHOWN = r"(?:[−-]?\d+(?:[.,]\d+)*|[A-Za-z]+|–)"
_LETTERS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)


class ClaimError(Exception):
    """A value cannot be read: a result lacks the key, or the code lacks the name."""


def in_words(number: float) -> str:
    """A small number, rounded to a whole one, in letters."""
    if not 0 <= round(number) < len(_LETTERS):
        raise ClaimError(f"{number} cannot be written in letters")
    return _LETTERS[round(number)]


@dataclass(frozen=True, slots=True)
class Value:
    """A value on a page. `read` takes the root of the repository; `form` is a format such as
    `.2f`, `word` or `Word` (letters); `source` says where in a result or in the code it is;
    `results` are the files in `bench/results/` that it comes from, none where the code holds it;
    `spoken` are words for some numbers, such as "a half"."""

    read: Callable[[Path], float | str]
    form: str
    source: str
    results: tuple[str, ...] = ()
    spoken: tuple[tuple[float, str], ...] = ()

    def formatted(self, form: str) -> Value:
        """The same value in another form."""
        return replace(self, form=form)

    def said(self, words: Mapping[float, str]) -> Value:
        """The same value, in words for each number that it may be."""
        return replace(self, spoken=tuple(words.items()))

    def scaled(self, times: float) -> Value:
        """The same value, so many times as large."""
        return replace(self, read=lambda root: float(self.read(root)) * times)

    def rounded(self, form: str = ".2f", *, times: float = 1) -> Value:
        """A value that is read as text, as a number in this form."""
        return self.scaled(times).formatted(form)

    def shown(self, root: Path) -> str:
        """The value as the pages have it."""
        value = self.read(root)
        if isinstance(value, str):
            return value
        if self.spoken:
            return self._in_phrases(value)
        if self.form in {"word", "Word"}:
            letters = in_words(value)
            return letters.capitalize() if self.form == "Word" else letters
        return format(value, self.form)

    def _in_phrases(self, value: float) -> str:
        for number, words in self.spoken:
            if abs(number - value) < 1e-9:
                return words
        raise ClaimError(f"{self.source} is {value:g}, for which there are no words")


@dataclass(frozen=True)
class Claim:
    """One claim. `words` are the phrasings that state it; each must stand on a page. What shows it:
    the `values` (read from results or the code), the `tests` (`tests/…py::test_…`), the `promises`
    of tests/behaviours.py, or, for a figure of somebody else, the publication `cited`."""

    id: str
    words: tuple[str, ...]
    values: Mapping[str, Value] = field(default_factory=dict)
    tests: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()
    cited: str = ""
    page: str = ""

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """What finds each phrasing on a page, whatever its values and line breaks."""
        return tuple(_pattern(words, self.values) for words in self.words)

    @property
    def results(self) -> tuple[str, ...]:
        """The files in bench/results/ that its values come from."""
        return tuple(sorted({name for value in self.values.values() for name in value.results}))

    @property
    def is_figure(self) -> bool:
        """Whether a measurement shows it."""
        return bool(self.results)

    def shown(self, root: Path, words: str = "") -> str:
        """A phrasing with its values."""
        text = words or self.words[0]
        return _PLACEHOLDER.sub(lambda name: self.values[name[1]].shown(root), text)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that pages have between `<!-- claims: NAME -->` and `<!-- end of claims -->`. Each
    row is a claim whose words are its cells, with `|` between them."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[Claim, ...]

    def shown(self, root: Path) -> str:
        """The table in Markdown."""
        lines = [f"| {' | '.join(self.header)} |", "|---" + "|---:" * (len(self.header) - 1) + "|"]
        lines += [f"| {row.shown(root)} |" for row in self.rows]
        return "\n".join(lines) + "\n"


def _pattern(words: str, values: Mapping[str, Value]) -> re.Pattern[str]:
    parts: list[str] = []
    position = 0
    names: set[str] = set()
    for placeholder in _PLACEHOLDER.finditer(words):
        parts.append(_loosely(words[position : placeholder.start()]))
        name = placeholder[1]
        phrases = "|".join(_loosely(text) for _, text in values[name].spoken) or _SHOWN
        parts.append(f"(?P={name})" if name in names else f"(?P<{name}>{phrases})")
        names.add(name)
        position = placeholder.end()
    parts.append(_loosely(words[position:]))
    start = r"(?<!\w)" if re.match(r"[\w{]", words) else ""
    end = r"(?!\w)" if re.search(r"[\w}]$", words) else ""
    return re.compile(start + "".join(parts) + end)


def _loosely(text: str) -> str:
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", text))
