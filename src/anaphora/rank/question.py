"""Reads a question for ranking: what to look up, what to embed, and the speakers that it means.

In a transcript people speak of themselves as "I": the name of a speaker in a question says whose
turns are meant, but it hardly ever stands in those turns. It stands in the other one's, as a form
of address. So a speaker's name is taken out of the words, and what is embedded is the question as
that speaker would ask it ("What sports does Kevin play?" becomes "What sports does I play?", which
is closer to "I play chess" than any sentence about a Kevin).

Nicknames: display names are seldom what people call each other ("Chris" for Christopher, "Kate" for
Emi). But they greet each other by name ("Hey Kate", "Thank you Kate") and give their own ("My name
is Kate"): `find_bearer` reads that from texts. A name that no text introduces, or that two speakers
share, stands for none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from anaphora.language.analyser import STOP_WORDS, QueryWord, analyse, fold
from anaphora.language.dates import MONTH_OF, WEEKDAYS
from anaphora.language.languages.language import ENGLISH, language_of, languages, loose
from anaphora.rank.statements import asked_words
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """What a question asks for.

    - `terms`: the words to look up, analysed, distinct, names of speakers left out; `words`: the
      same with all that they may stand for in an index.
    - `meaning`: the text to embed; the question itself unless it names a speaker.
    - `speakers`: codes of the speakers it names; `roles`: roles it means by "I" or "you told".
    - `spans`: (start, end) in epoch seconds of the times it names, end excluded.
    """

    terms: tuple[str, ...]
    meaning: str
    speakers: tuple[int, ...] = ()
    roles: tuple[int, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    words: tuple[QueryWord, ...] = ()


# Names that are English words too: they are names only where they are written as one.
_WORDS_TOO = """
    april art august autumn bill bob bud buck chance chase clay cliff dale dawn dean dick don drew
    eve faith frank gene grace grant guy heath heather holly hope hunter iris ivy jack jade jasper
    jean jet joy june lance lane lily major mark mason may miles nick olive page pat penny pierce
    ray reed rich rob robin rose ruby sandy sky sterling sue summer violet wade ward will
    assistant human me system user you
"""
ALSO_WORDS = frozenset(_WORDS_TOO.split())
_ENGLISH = re.compile(
    r"\b(?:what|which|who|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|the)\b",
    re.IGNORECASE,
)
_THEIRS = re.compile(r"\b(?:his|her|their)\b")
_THEY = re.compile(r"\b(?:he|she)\b")
_UNSPACED = "[\u0e00-\u0eff\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff]"


def read_question(
    question: str,
    present: dict[int, str] | None = None,
    spans: Iterable[tuple[float, float]] = (),
    called: Mapping[str, int] | None = None,
) -> QuestionReading:
    """Read `question`, asked where the speakers `present` (code to name) speak.

    A speaker is recognised by the whole name or its first word, or by what else they are `called`
    (name as the question has it, to code). A question that holds nothing but names is taken as it
    stands: then the names are what is looked for.
    """
    words = asked_words(question)
    folded_question = fold(question)
    form_by_code = {
        code: form
        for code, name in (present or {}).items()
        # Most of the speakers that are present are not in the question at all.
        if _first_word(name) in folded_question and (form := _find_form(question, name))
    }
    called_codes = called or {}
    speakers = tuple(sorted({*form_by_code, *called_codes.values()}))
    forms = tuple(dict.fromkeys((*form_by_code.values(), *called_codes)))
    dropped_tokens = {token for form in forms for token in analyse(form)}
    remaining = tuple(word for word in words if word.tokens[0] not in dropped_tokens)
    may_mean_role = not speakers and bool(remaining)
    roles: tuple[int, ...] = ()
    if may_mean_role:
        addressee, asker = _compile_people(language_of(question) or ENGLISH)
        if addressee.search(question):
            roles = (ROLE_ASSISTANT,)
        elif asker.search(question):
            roles = (ROLE_USER,)
    return QuestionReading(
        terms=tuple(word.tokens[0] for word in remaining or words),
        meaning=_rewrite(question, forms, len(speakers) > 1) if forms and remaining else question,
        speakers=speakers,
        roles=roles,
        spans=tuple(spans),
        words=remaining or words,
    )


@lru_cache(maxsize=64)
def _compile_people(code: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns in a language for mentions of the addressee's answers, and of the asker."""
    language = languages()[code]
    addressee, asker = (
        re.compile(language.any_of(language.people.get(name, ())) or _NOTHING, re.IGNORECASE)
        for name in ("asked", "asker")
    )
    return addressee, asker


def _find_form(question: str, name: str) -> str | None:
    """Return the form of `name` that stands in the question, None if there is none."""
    name = " ".join(name.split())
    for form in dict.fromkeys((name, name.split(" ")[0] if name else "")):
        # A name that is an English word too needs a capital, and not only at a sentence's start.
        is_word = form.casefold() in ALSO_WORDS
        if form and any(
            not is_word or (match.group()[:1].isupper() and not _opens_sentence(match))
            for match in re.finditer(_pattern(form), question)
        ):
            return form
    # Accents are often left out in a question.
    first_word = _first_word(name)
    if (
        first_word not in ALSO_WORDS
        and first_word
        and re.search(_pattern(first_word), fold(question))
    ):
        return first_word
    return None


@lru_cache(maxsize=4096)
def _first_word(name: str) -> str:
    return fold(" ".join(name.split())).split(" ")[0]


@lru_cache(maxsize=4096)
def _pattern(form: str) -> re.Pattern[str]:
    escaped_form = re.escape(form)
    if not re.search(_UNSPACED, form):
        escaped_form = rf"(?<!\w){escaped_form}(?!\w)"
    return re.compile(escaped_form, re.IGNORECASE)


def _rewrite(question: str, forms: tuple[str, ...], several: bool) -> str:
    """Return the question as the speakers that it names would put it of themselves.

    Outside English a name is only taken out: a foreign "I" would say nothing there.
    """
    possessive_pattern, name_pattern = _compile_mentions(forms)
    i, my = ("we", "our") if several else ("I", "my")
    if not _ENGLISH.search(question):
        i = my = ""
    rewritten = name_pattern.sub(i, possessive_pattern.sub(my, question))
    if not several and i:
        rewritten = _THEIRS.sub(my, rewritten)
        rewritten = _THEY.sub(i, rewritten)
    return " ".join(rewritten.split())


@lru_cache(maxsize=4096)
def _compile_mentions(forms: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns for these names, alone or in a row: in the possessive, and plain."""
    any_form = "|".join(_pattern(form).pattern for form in sorted(forms, key=len, reverse=True))
    joined_forms = rf"(?:both )?(?:{any_form})(?:(?:,| and| or|, and|, or) (?:{any_form}))*"
    possessive_pattern = re.compile(rf"(?:{joined_forms})['’]s(?!\w)", re.IGNORECASE)
    return possessive_pattern, re.compile(joined_forms, re.IGNORECASE)


TEXTS = 16
"""Texts that are read for a name: among the shortest with it are the greetings."""

# A question has few names; a pasted page has hundreds of words with a capital.
_MOST_NAMES = 4
_MOST_READ = 2_000

# Three greetings, or one plain "my name is …", identify a speaker; nearly all votes must agree.
_ENOUGH = 3
_AGREE = 0.8
_SHORTEST = 3
_SHORTEST_WRONG = 5

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_NOTHING = r"(?!)"
# What may stand between a greeting and a name.
_GREETED = r"(?: there| again| so much| back)?[,!]? "
_ENDED = r"(?!\w)(?!['’]s)"
_STOPPED = r"(?=\s*(?:[.,;:!?)\n]|and\b|$))"


def unknown_names(question: str, present: Mapping[int, str]) -> tuple[str, ...]:
    """Words of `question` that are written like a first name and are no part of a speaker's name.

    At most four, in order. Empty if no speaker is known. Words in a row ("Las Vegas",
    "Mona Lisa") name something else: friends use one.
    """
    if not present:
        return ()
    known_parts = {part for name in present.values() for part in _parts(name)}
    names: dict[str, None] = {}
    words = [
        candidate
        for candidate in _WORD.finditer(question, 0, _MOST_READ)
        if _is_like_a_name(candidate)
    ]
    ends = {match.end() for match in words}
    for match in words:
        next_index = match.end()
        in_a_row = match.start() - 1 in ends or any(
            following.start() == next_index + 1 for following in words
        )
        if not in_a_row and fold(match.group()) not in known_parts:
            names[match.group()] = None
    return tuple(names)[:_MOST_NAMES]


def _is_like_a_name(match: re.Match[str]) -> bool:
    word = match.group()
    if not word[0].isupper() or len(word) < 2 or word.isupper():
        return False
    folded_word = fold(word)
    if (
        folded_word in STOP_WORDS
        or _is_function_word(folded_word)
        or _compile_dates().fullmatch(word)
    ):
        return False
    return folded_word not in ALSO_WORDS or not _opens_sentence(match)


def match_shortened(name: str, present: Mapping[int, str]) -> int | None:
    """The code of the only speaker with a first name that begins with `name` ("Chris"), or None."""
    short_name = fold(name)
    if len(short_name) < _SHORTEST:
        return None
    return _find_only(present, lambda first: first.startswith(short_name))


def match_misspelt(name: str, present: Mapping[int, str]) -> int | None:
    """The code of the only speaker with a first name one letter away ("Nikolas"), or None.

    Only for names that no turn holds: a friend's friend may be called much the same.
    """
    wrong = fold(name)
    if len(wrong) < _SHORTEST_WRONG:
        return None
    return _find_only(present, lambda first: _is_one_apart(wrong, first))


def _find_only(present: Mapping[int, str], fits: Callable[[str], bool]) -> int | None:
    """The code of the only speaker with a first name that fits, or None."""
    codes = [code for code, name in present.items() if fits((_parts(name) or ("",))[0])]
    return codes[0] if len(codes) == 1 else None


def _is_one_apart(first_name: str, second_name: str) -> bool:
    """Whether one letter is put in, left out or another one, or two stand the wrong way round."""
    if (
        first_name[:1] != second_name[:1]
        or abs(len(first_name) - len(second_name)) > 1
        or first_name == second_name
    ):
        return False
    at = next(
        (i for i, (a, b) in enumerate(zip(first_name, second_name, strict=False)) if a != b), None
    )
    if at is None:
        return True
    is_swapped = (
        first_name[at : at + 2] == second_name[at : at + 2][::-1]
        and first_name[at + 2 :] == second_name[at + 2 :]
    )
    put_in = first_name[at + 1 :] == second_name[at:]
    left_out = first_name[at:] == second_name[at + 1 :]
    return is_swapped or put_in or left_out or first_name[at + 1 :] == second_name[at + 1 :]


def find_bearer(name: str, texts: Iterable[tuple[str, int, int]]) -> int | None:
    """The code of the speaker called `name`, None if the texts do not tell.

    Each of `texts` is a text, the code of its writer, and of the addressee; -1 is not known.
    """
    greeting_pattern, introduction_pattern, presentation_pattern = _compile_patterns(name)
    votes: Counter[int] = Counter()
    for text, writer, addressee in texts:
        if introduction_pattern.search(text):
            votes[writer] += _ENOUGH
        elif presentation_pattern.search(text):
            votes[writer] += 1
        elif greeting_pattern.search(text):
            votes[addressee] += 1
    total = sum(votes.values())
    for code, count in votes.most_common(1):
        if code >= 0 and count >= _ENOUGH and count >= _AGREE * total:
            return code
    return None


@lru_cache(maxsize=256)
def _compile_patterns(name: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    escaped_name = re.escape(name)
    greeting, present, plain = (
        _join_introductions(kind) for kind in ("greetings", "given", "said")
    )
    # "This is Luna" and "his name is Luna" present a cat.
    forms = (
        greeting + _GREETED + escaped_name + _ENDED,
        f"{present} {escaped_name}{_ENDED}",
        f"{plain} {escaped_name}{_STOPPED}",
    )
    greeting_pattern, introduction_pattern, presentation_pattern = (
        re.compile(form, re.IGNORECASE) for form in forms
    )
    return greeting_pattern, introduction_pattern, presentation_pattern


@lru_cache(maxsize=8)
def _join_introductions(kind: str) -> str:
    """What people say before a name, in all languages: friends greet in any of them."""
    spaced_languages = (language for language in languages().values() if language.spaced)
    patterns = [
        pattern for language in spaced_languages for pattern in language.people.get(kind, ())
    ]
    return rf"\b(?:{loose('|'.join(patterns))})"


@lru_cache(maxsize=1)
def _compile_dates() -> re.Pattern[str]:
    """The names of months and days of the week, in all languages."""
    names = [*MONTH_OF, *WEEKDAYS]
    for language in languages().values():
        if language.spaced and language.times:
            names += [*language.times["months"], *language.times["weekdays"]]
    return re.compile(loose("|".join(names)), re.IGNORECASE)


@lru_cache(maxsize=4096)
def _is_function_word(folded: str) -> bool:
    """Whether a word that a sentence may open with, and hence a capital, asks: "Quién", "Wann"."""
    return any(
        folded in language.stop
        and len(folded) > 1
        and re.fullmatch(loose(language.questions), folded)
        for language in languages().values()
        if language.spaced and language.code != ENGLISH and language.questions
    )


@lru_cache(maxsize=4096)
def _parts(name: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(fold(name)))


def _opens_sentence(match: re.Match[str]) -> bool:
    """Whether the word opens a sentence, where every word has a capital."""
    text_before = match.string[: match.start()].rstrip()
    return not text_before or text_before[-1] in ".!?"
