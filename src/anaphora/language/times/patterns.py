"""The patterns of a language, compiled from the table in its file.

`language/languages/data/README.md` lists what a table holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, Generic, NamedTuple, TypeVar

from anaphora.language.languages.language import Language, loose

_NUMERIC: Final = (
    r"(?<![\w./-])(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?![\w.]\d)",
    r"(?<![\w./-])(?P<d>\d{1,2})[./-](?P<m>\d{1,2})[./-](?P<y>(?:19|20)\d\d)(?!\d)",
)
_SIDES: Final = ("since", "after", "before", "until")
_NOTHING: Final = "(?!)"
_TOLD: Final = {
    "day": "",
    **dict.fromkeys(("unit", "weekend", "ago", "ahead", "rolling"), "{unit}|weekend"),
    "weekday": "{any_weekday}",
    "date": "{month}",
    "holiday": "{holiday}",
    "nth": r"\d",
}
"""The kinds of times that lie around the day on which they are told, or are on it, each
with a pattern of what a text that names one holds."""
_CASED: Final = re.compile(r"\(\?-i:[^()]*\)")
_NAME_OF_GROUP: Final = re.compile(r"\(\?P<\w+>")
MeaningT = TypeVar("MeaningT")


class Phrase(NamedTuple):
    """How a time is worded, and what it is; with a `lead` it is one only behind certain words."""

    pattern: re.Pattern[str]
    kind: str
    detail: tuple[str, ...]
    lead: re.Pattern[str] | None = None


class Affixes(NamedTuple, Generic[MeaningT]):
    """What stands before a time, or behind it, and changes its days, by what it makes of them."""

    before: Mapping[MeaningT, re.Pattern[str]]
    behind: Mapping[MeaningT, re.Pattern[str]]


class Range(NamedTuple):
    """What stands before and between two times; the same where one of them is a bare day."""

    before: re.Pattern[str]
    between: re.Pattern[str]
    before_with_day: re.Pattern[str]
    behind_with_day: re.Pattern[str]


@lru_cache(maxsize=64)
def patterns_of(language: Language) -> Patterns | None:
    """The patterns of a language, None for one without a table."""
    return Patterns(language) if language.times else None


class Patterns:
    """The compiled patterns of a language; those named for a place end or begin there."""

    def __init__(self, language: Language) -> None:
        times = self._times = language.times
        self.by_words: bool = times.get("by_words", False)
        self.spaced = language.spaced
        self._parts = _make_parts(language)
        edge = r"\S" if self.by_words else r"\w"
        self.bounds = (rf"(?<!{edge})", rf"(?!{edge})") if self.spaced else ("", "")
        self.bound = r"\b" if self.spaced else ""
        self._cues: dict[str, re.Pattern[str]] = {}
        self.signs = self._compile_bounded(times["signs"]) if "signs" in times else None

    @cached_property
    def phrases(self) -> Sequence[Phrase]:
        """What names a time."""
        rows = (*self._times["phrases"], *self._led_rows())
        phrases = [self.compile_phrase(*row) for row in rows]
        if not self.by_words:
            phrases += [Phrase(self._compile(form), "numeric", ()) for form in _NUMERIC]
        return phrases

    @cached_property
    def told(self) -> Sequence[DayPhrases]:
        """The phrases by which a told text may name a day by that of telling it.

        Among them are those of dates: a date is no weekday.
        """
        rows_by_gate: dict[str, list[Sequence[str]]] = {}
        for row in (*self._times["phrases"], *self._led_rows(), *self._times.get("told", ())):
            if (gate := _TOLD.get(row[1].partition(" ")[0])) is not None:
                rows_by_gate.setdefault(gate, []).append(row)
        return [DayPhrases(self, gate, rows) for gate, rows in rows_by_gate.items()]

    @cached_property
    def near(self) -> re.Pattern[str]:
        """What a text in small letters holds that tells a day by the day on which it is told."""
        pattern = f"{self.bound}(?:{_any(*self._times.get('near', ()))}){self.bound}"
        return self.compile_small(pattern)

    @cached_property
    def happened(self) -> re.Pattern[str]:
        """What shows that a text tells of what is past."""
        return self._compile_bounded(_any(*self._times.get("happened", ())))

    def tells(self, lower_text: str, cue: str) -> bool:
        """Whether a text in small letters holds what a list of the table has: `past`, `future`,
        `usual` or `lasting`."""
        if cue not in self._cues:
            pattern = self._bound(_any(*self._times.get(cue, ())))
            self._cues[cue] = self.compile_small(pattern)
        return bool(self._cues[cue].search(lower_text))

    @cached_property
    def sides(self) -> Affixes[str]:
        """What gives a time an open side, by the side."""
        times = self._times
        behind = {name: times.get(f"{name}_after") for name in _SIDES}
        return Affixes(
            {name: self._compile_relation(times[name]) for name in _SIDES if name in times},
            {name: self._compile(f"(?:{form})") for name, form in behind.items() if form},
        )

    @cached_property
    def thirds(self) -> Affixes[int]:
        """What says that the first, middle or last third of a time is meant, by its number."""
        before, behind = (self._times.get(name, ()) for name in ("thirds", "thirds_after"))
        return Affixes(
            {number: self._compile_ending(form) for number, form in enumerate(before)},
            {number: self._compile(f"(?:{form})") for number, form in enumerate(behind)},
        )

    @cached_property
    def beside(self) -> re.Pattern[str]:
        """What stands before a time that is not meant itself: "the day before"."""
        return self._compile_ending(self._times.get("beside", _NOTHING))

    @cached_property
    def around(self) -> re.Pattern[str]:
        """What stands before a holiday of which some days are meant."""
        return self._compile_ending(self._times.get("around", _NOTHING))

    @cached_property
    def ranges(self) -> Sequence[Range]:
        """What joins two times to one."""
        day = self._times.get("bare_day", _NOTHING)
        return [
            Range(
                self._compile_relation(before),
                self._compile(rf"\s*(?:{between}){self._skipped}\s*"),
                self._compile_relation(f"(?:{before}) {day} (?:{between})"),
                self._compile(rf" (?:{between}) {self._bound(day)}"),
            )
            for before, between in self._times.get("ranges", ())
        ]

    @cached_property
    def relations(self) -> re.Pattern[str]:
        """What stands before a time and makes it one, if it could be something else."""
        sides = _any(*(self._times[name] for name in _SIDES if name in self._times))
        thirds = self._times.get("thirds", ())
        return self._compile_ending(_any(f"(?:{sides}){self._skipped}", *thirds))

    @cached_property
    def sides_of_relations(self) -> re.Pattern[str]:
        """What stands before a time and makes it one if it relates it to another."""
        ends = [form for row in self._times.get("ranges", ()) for form in row]
        beside = self._times.get("beside", "")
        return self._compile_ending(_any(f"(?:{_any(*ends)}){self._skipped}", beside))

    @property
    def _skipped(self) -> str:
        """Words that may stand between the words of a relation and the time."""
        return str(self._times.get("skipped", ""))

    def _led_rows(self) -> Iterator[tuple[str, str]]:
        """A month or weekday that is one by what relates it: "seit März"."""
        if self.by_words or not self.spaced:
            return
        leads = [self._times[name] for name in _SIDES if name in self._times]
        leads += [form for row in self._times.get("ranges", ()) for form in row]
        if leads:
            lead = f"(?:{'|'.join(f'(?:{lead})' for lead in leads)}) "
            yield lead + "{month}(?: {year})?", "date"
            yield lead + "{weekday}", "weekday"

    def compile_phrase(self, pattern: str, means: str, lead: str | None = None) -> Phrase:
        """The phrase of a row of the table."""
        kind, *detail = means.split(" ")
        lead_pattern = None if lead is None else self._compile_ending(lead)
        return Phrase(self._compile_bounded(pattern), kind, tuple(detail), lead_pattern)

    def _compile_relation(self, pattern: str) -> re.Pattern[str]:
        return self._compile_ending(f"(?:{pattern}){self._skipped}")

    def _compile_ending(self, pattern: str) -> re.Pattern[str]:
        """Of what stands directly before a place."""
        if not self.spaced:
            return self._compile(f"(?:{pattern})$")
        bound = self.bounds[0] if self.by_words else r"\b"
        return self._compile(rf"{bound}(?:{pattern})(?:\s+|-|['’])$")

    def _compile_bounded(self, pattern: str) -> re.Pattern[str]:
        return self._compile(self._bound(pattern))

    def _bound(self, pattern: str) -> str:
        return f"{self.bounds[0]}(?:{pattern}){self.bounds[1]}"

    def compile_small(self, pattern: str) -> re.Pattern[str]:
        """A pattern of small letters, which are found faster; what they do not tell, it takes."""
        plain = _NAME_OF_GROUP.sub("(?:", _CASED.sub("", self._fill(pattern)))
        return self._compile(plain, re.NOFLAG)

    def _compile(self, pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
        flags |= re.ASCII if self.by_words else re.NOFLAG
        return re.compile(loose(self._fill(pattern)), flags)

    def _fill(self, pattern: str) -> str:
        def part(match: re.Match[str]) -> str:
            return f"(?:{self._fill(self._parts[match[1]])})"

        return re.sub(r"\{([a-z_]+(?::[a-z]+)?)\}", part, pattern)


class DayPhrases:
    """Phrases, each with the same gate: what a text in small letters that has one of them holds.

    Few texts have any of most gates, whose phrases are not compiled.
    """

    def __init__(self, patterns: Patterns, gate: str, rows: Sequence[Sequence[str]]) -> None:
        self._patterns, self._rows = patterns, rows
        self.gate = patterns.compile_small(f"{patterns.bound}(?:{gate})")

    @cached_property
    def starts(self) -> re.Pattern[str]:
        """Where the phrases begin: a text in small letters is looked through once for all."""
        before, behind = self._patterns.bounds
        forms = _any(*(row[0] for row in self._rows))
        return self._patterns.compile_small(f"{before}(?=(?:{forms}){behind})")

    @cached_property
    def phrases(self) -> Sequence[Phrase]:
        """The phrases themselves."""
        return [self._patterns.compile_phrase(*row) for row in self._rows]


def _make_parts(language: Language) -> dict[str, str]:
    """What stands for a name in braces in the patterns of a language."""
    times = language.times
    day = r"(?P<day_digits>\d{1,2})"
    if not language.spaced:
        day = f"(?:{day}|{_numbered('day', times['numbers'], 1)})"
    parts = {
        "core": "(?P<core>)",
        "unsure": "(?P<unsure>)",
        "month": _numbered("month", times["months"], 1),
        "weekday": _numbered("weekday", times["weekdays"], 0),
        "unit": _by_name("unit", times["units"]),
        "season": _by_name("season", times.get("seasons", {})),
        "part": _by_name("part", times.get("parts", {})),
        "holiday": _by_name("holiday", times.get("holidays", {})),
        "number": _any(
            r"(?P<digits>\d{1,4})",
            _by_name("vague", times.get("vague", {})),
            _numbered("number", times["numbers"], 1),
        ),
        "nth": r"(?P<nth>\d{1,2})",
        "year": r"(?P<year>(?:19|20)\d\d)(?!\d)",
        "day": day + times.get("ordinal", "(?:er|st|nd|rd|th|º|ª|°|\\.)?"),
    }
    units = {
        f"unit:{name}": f"(?P<unit_{name}>{pattern})" for name, pattern in times["units"].items()
    }
    terms: Mapping[str, str] = times.get("terms", {})
    return {"any_weekday": parts["weekday"], **parts, **units, **terms}


def _numbered(kind: str, patterns: Sequence[str], first: int) -> str:
    return _by_name(kind, {str(at): form for at, form in enumerate(patterns, first) if form})


def _by_name(kind: str, patterns: Mapping[str, str]) -> str:
    named_groups = [
        f"(?P<{kind}_{name.replace(' ', '_')}>{pattern})" for name, pattern in patterns.items()
    ]
    # Of two that begin alike, the longer one.
    return _any(*sorted(named_groups, key=lambda pattern: -len(pattern)))


def _any(*patterns: str) -> str:
    return "|".join(pattern for pattern in patterns if pattern) or _NOTHING
