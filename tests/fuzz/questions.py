"""Questions about times, made at random: in every language that has rules for times.

In: a `random.Random`. Out: text. The phrases of a language are drawn from the patterns of its own
file, so that a new rule is asked about without a change here; those of English are written here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from random import Random
from typing import Any, Final

from anaphora.language.languages.language import Language, languages

__all__ = ["moment_text", "question", "time_phrase"]

_PARSER: Final[Any] = import_module("re._parser")
_REPEATED: Final = 3
_DIGITS: Final = ("0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９")
_SPACES: Final = (" ", " ", " ", "  ", "\t", "\n", "\u00a0", "\u3000", "\u2009", "\u200b", "")

_NUMBERS: Final = (
    *("0", "1", "2", "3", "7", "12", "29", "30", "31", "32", "99", "100", "366", "1000", "2026"),
    *("9999", "10000", "99999999999", "9" * 40, "9" * 400, "-1", "1.5", "1e9", "a", "an", "one"),
    *("a few", "several", "a couple of", "half a", "twenty", "no", "²", "½", "Ⅳ", "十"),
)
_YEARS: Final = (
    *("0", "1", "0000", "0001", "33", "999", "1066", "1899", "1900", "1969", "1970", "1971"),
    *("1989", "1990", "1995", "2000", "2024", "2025", "2026", "2027", "2031", "2038", "2099"),
    *("2100", "2199", "2200", "2201", "2999", "9998", "9999", "10000", "99999", "-5", "20266"),
)
_UNITS: Final = (
    *("hour", "day", "week", "weekend", "month", "quarter", "year", "second", "minute"),
    *("hours", "days", "weeks", "weekends", "months", "quarters", "years", "decades", "centuries"),
)
_NAMES: Final = (
    *("Monday", "Tuesday", "wednesday", "Thu", "Friday", "Sat", "Sunday", "weekday"),
    *("January", "Feb", "March", "april", "May", "may", "June", "Sept", "December", "Smarch"),
    *("spring", "summer", "autumn", "fall", "winter", "Christmas", "Easter", "Thanksgiving"),
    *("New Year", "New Year's Eve", "Halloween", "Valentine's Day", "Q1", "Q4", "Q5", "Ramadan"),
)
_WORDS: Final = (
    *("today", "yesterday", "tomorrow", "tonight", "now", "the day after tomorrow", "noon"),
    *("the day before yesterday", "this morning", "tomorrow evening", "last night", "the weekend"),
    *("the week before last", "the year after next", "the 31st of February", "February 30"),
    *("the 0th", "the 31st", "the 32nd of May", "29 February", "29 February 2027", "year 0"),
    *("the end of time", "the year dot", "12 o'clock", "25:61", "the past", "the future"),
)
_ENGLISH: Final = (
    *("{words}", "{names}", "{names} {years}", "in {years}", "in the year {years}", "last {units}"),
    *("next {units}", "this {units}", "the coming {names}", "last {names}", "next {names}"),
    *("in {numbers} {units}", "{numbers} {units} ago", "{numbers} {units} from now", "on {names}"),
    *("the last {numbers} {units}", "the next {numbers} {units}", "within {numbers} {units}"),
    *("{numbers} {names}", "{numbers} {names} {years}", "{names} {numbers}, {years}", "on {iso}"),
    *("{iso}", "the {units} of {iso}", "the {units} before {names}", "the {units} after {iso}"),
    *("{numbers}/{numbers}/{years}", "{numbers}.{numbers}.{years}", "{years}-{numbers}", "{years}"),
    *("early {names}", "mid-{names}", "late {years}", "the end of {names}", "around {names}"),
    *(
        "the middle of the {units}",
        "the beginning of {years}",
        "{names} last year",
        "{names} night",
    ),
    *("the {numbers}th", "the {numbers}st of {names}", "{names} {numbers}-{numbers}"),
)
_SIDES: Final = (
    *("since {}", "before {}", "after {}", "until {}", "by {}", "till the {}", "since after {}"),
    *(
        "between {} and {}",
        "from {} to {}",
        "from {} until {}",
        "{} or {}",
        "{}, {} and {}",
        "{}–{}",
    ),
    *("not {}", "the day before {}", "the day before the day after {}", "before before {}"),
)
_FRAMES: Final[Mapping[str, Sequence[str]]] = {
    "en": (
        *("{}", "{}?", "what happens {}?", "what happened {}?", "what did we say {}?"),
        *("what is planned for {}?", "what will happen {}?", "what did Mara say {}?"),
        *("what did Mara decide about the boiler {}?", "boiler {}", "when was {}?"),
        *("what was my rent {}?", "{} {}", "what did we say {} and {}?", "who spoke {}, and why?"),
    ),
    "de": (
        *("was passiert {}?", "was geschah {}?", "was haben wir {} gesagt?", "{}", "was war {}?"),
        *("was hat Mara {} über die Heizung gesagt?", "was wird {} geschehen?"),
    ),
    "es": ("¿qué pasó {}?", "¿qué pasa {}?", "¿qué dijo Mara {}?", "{}", "¿qué va a pasar {}?"),
    "fr": ("que s'est-il passé {} ?", "qu'a dit Mara {} ?", "{}", "que va-t-il se passer {} ?"),
    "pt": ("o que aconteceu {}?", "o que disse Mara {}?", "{}", "o que vai acontecer {}?"),
    "ja": ("{}に何がありましたか", "{}", "{}何を話しましたか", "{}の予定は"),
    "zh": ("{}发生了什么?", "{}", "我们{}说了什么", "{}会发生什么"),
}
_ISO: Final = "{:04d}-{:02d}-{:02d}"
_CLOCKS: Final = (
    "",
    "",
    "T12:00",
    "T00:00:00Z",
    " 24:00",
    "T23:59:60Z",
    "T01:30+14:00",
    "T1:0-23:59",
)


def question(random: Random) -> str:
    """A question about times, mostly of one language, now and then with damage of its own."""
    code = random.choice(("en", "en", *sorted(languages())))
    frame = _bare_frame(random, code)
    if random.random() < 0.6:
        frame = random.choice(_FRAMES.get(code, _FRAMES["en"]))
    text = _filled(frame, lambda: _sided(random, code))
    if random.random() < 0.1:
        text = f"{text} {_sided(random, random.choice(sorted(languages())))}"
    return _distorted(random, text) if random.random() < 0.25 else text


def _bare_frame(random: Random, code: str) -> str:
    """What asks for a time and nothing else: words for what happens, and the time."""
    language = languages()[code]
    words = language.cues.get("happening", "").split()
    chosen = random.sample(words, min(len(words), random.choice((0, 1, 1, 2))))
    return (" " if language.spaced else "").join((*chosen, "{}"))


def time_phrase(random: Random, code: str) -> str:
    """One time in a language, sensible or not."""
    times = languages()[code].times
    phrases = [*times.get("phrases", ()), *times.get("told", ())] if code != "en" else ()
    if phrases and random.random() < 0.8:
        return _drawn(random, languages()[code], random.choice(phrases)[0])
    words = {
        "words": _WORDS, "names": _NAMES, "units": _UNITS, "numbers": _NUMBERS, "years": _YEARS,
    }  # fmt: skip

    def part(match: re.Match[str]) -> str:
        return _iso(random) if match[1] == "iso" else random.choice(words[match[1]])

    return re.sub(r"\{(\w+)\}", part, random.choice(_ENGLISH))


def moment_text(random: Random) -> str:
    """A text for `since` or `until`: a time in words, a day in digits, or neither."""
    kind = random.random()
    if kind < 0.4:
        return time_phrase(random, random.choice(("en", *sorted(languages()))))
    if kind < 0.8:
        return _iso(random) + random.choice(_CLOCKS)
    return random.choice(("", " ", "never", "0", "soon", "-1", "null", "2026", *_YEARS, *_WORDS))


def _iso(random: Random) -> str:
    year = random.choice((1, 2, 1899, 1969, 1970, 2024, 2026, 2026, 2027, 2200, 9998, 9999))
    return _ISO.format(
        year, random.choice((0, 1, 2, 3, 11, 12, 13)), random.choice((1, 29, 30, 31))
    )


def _sided(random: Random, code: str) -> str:
    """A time, or a range of times that may be reversed."""
    if random.random() < 0.6:
        return time_phrase(random, code)
    times = languages()[code].times
    sides = list(_SIDES)
    for name in ("since", "before", "after", "until"):
        sides += [f"{lead} {{}}" for lead in _alternatives(random, times, name)] * 2
        sides += [f"{{}}{lead}" for lead in _alternatives(random, times, f"{name}_after")] * 2
    for lead, joint in times.get("ranges", ()):
        sides += [f"{_sampled(random, lead)} {{}} {_sampled(random, joint)} {{}}"] * 4
    return _filled(random.choice(sides), lambda: time_phrase(random, code))


def _alternatives(random: Random, times: Mapping[str, Any], name: str) -> list[str]:
    return [_sampled(random, times[name])] if name in times else []


def _filled(frame: str, phrase: Callable[[], str]) -> str:
    return "".join(part + (phrase() if at else "") for at, part in _numbered(frame.split("{}")))


def _numbered(parts: Sequence[str]) -> list[tuple[bool, str]]:
    return [(at < len(parts) - 1, part) for at, part in enumerate(parts)]


def _distorted(random: Random, text: str) -> str:
    """Other digits, spaces, letters or lengths of the same text."""
    kind = random.randrange(6)
    if kind == 0:
        digits = random.choice(_DIGITS)
        return text.translate(str.maketrans(_DIGITS[0], digits))
    if kind == 1:
        return "".join(random.choice(_SPACES) if letter == " " else letter for letter in text)
    if kind == 2:
        return random.choice((text.upper(), text.title(), text.lower(), text[::-1]))
    if kind == 3:
        at = random.randrange(len(text) + 1)
        odd = ("\x00", "\ud800", "\u202e", "\ufeff", "e\u0301", "🕰", "’", "#", '"', "²", "\u2028")
        return text[:at] + random.choice(odd) + text[at:]
    if kind == 4:
        return f"{text} " * random.choice((2, 17, 300))
    return text[: random.randrange(len(text) + 1)]


def _drawn(random: Random, language: Language, phrase: str) -> str:
    """A text that a phrase of a language's file is about."""
    times = language.times
    groups: Mapping[str, Sequence[str]] = {
        "month": times["months"],
        "weekday": times["weekdays"],
        "unit": list(times["units"].values()),
        "season": list(times.get("seasons", {}).values()),
        "part": list(times.get("parts", {}).values()),
        "holiday": list(times.get("holidays", {}).values()),
        "number": [*times["numbers"], *times.get("vague", {}).values(), *map(re.escape, _NUMBERS)],
        "year": [re.escape(year) for year in _YEARS],
        "nth": [re.escape(number) for number in _NUMBERS[:9]],
        "day": [re.escape(number) + times.get("ordinal", "") for number in _NUMBERS[:9]],
    }

    def part(match: re.Match[str]) -> str:
        name, _, only = match[1].partition(":")
        patterns = [times["units"][only]] if only else groups[name]
        return f"(?:{random.choice(patterns)})" if patterns else ""

    return _sampled(random, re.sub(r"\{([a-z]+(?::[a-z]+)?)\}", part, phrase))


def _sampled(random: Random, pattern: str) -> str:
    return "".join(_texts(random, _parsed(pattern)))


@lru_cache(maxsize=4096)
def _parsed(pattern: str) -> Any:
    return _PARSER.parse(pattern)


def _texts(random: Random, parsed: Any) -> list[str]:
    """A text that matches; what a pattern only looks at, behind or ahead, is left out."""
    out: list[str] = []
    for kind, value in parsed:
        name = str(kind)
        if name == "LITERAL":
            out.append(chr(value))
        elif name == "IN":
            out.append(_member(random, value))
        elif name == "BRANCH":
            out += _texts(random, random.choice(value[1]))
        elif name == "SUBPATTERN":
            out += _texts(random, value[3])
        elif name in {"MAX_REPEAT", "MIN_REPEAT"}:
            least, most, what = value
            for _ in range(random.randint(least, max(least, min(int(most), _REPEATED)))):
                out += _texts(random, what)
        elif name in {"ANY", "NOT_LITERAL"}:
            out.append(random.choice("a' ’"))
    return out


def _member(random: Random, members: Any) -> str:
    kind, value = random.choice(members)
    if str(kind) == "LITERAL":
        return chr(value)
    if str(kind) == "RANGE":
        return chr(random.randint(*value))
    return random.choice(
        {"CATEGORY_DIGIT": "0123456789", "CATEGORY_SPACE": " "}.get(str(value), "aé")
    )
