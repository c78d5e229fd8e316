"""Statements: what one is about, whether it says or replaces another, however it was typed."""

from __future__ import annotations

import json
import math
from functools import cached_property
from inspect import signature

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rank.sameness_pairs import ONE_FACT, TWO_FACTS

from anaphora.language.languages.language import languages
from anaphora.rank.contradiction import seem_to_contradict
from anaphora.rank.currency import FEATURES as CURRENCY_FEATURES
from anaphora.rank.currency import answer_loss
from anaphora.rank.replacement import (
    FEATURES,
    REPLACED,
    SURE,
    Statement,
    is_possible,
    reason_of,
    replacement_features,
    replacement_probability,
)
from anaphora.rank.sameness import same_fact
from anaphora.rank.statements import (
    StatementReading,
    keep_reading,
    read_cues,
    read_statement,
    words_of,
)
from anaphora.rank.subjects import read_keys, share_a_subject
from anaphora.rank.turn_table import PERSONAL, STANDING, turn_flags

DAY = 86_400.0
UNKNOWN = math.nan


def told(text: str, day: float, speaker: str = "", *, assistant: bool = False) -> Statement:
    return Statement(text, day * DAY, speaker, assistant, read_statement(text))


def chance(older: str, newer: str, *speakers: str, closeness: float = 0.7) -> float:
    """The probability that the second of two texts, said a month later, replaces the first."""
    first, second = speakers or ("", "")
    return replacement_probability(told(older, 0, first), told(newer, 30, second), closeness)


_TEXTS = st.sampled_from(
    [
        "The staging database listens on port 5433.",
        "Staging's database is on port 5439 now.",
        "Ada: I live in Berlin.",
        "I live in Porto.",
        "I do not live in Porto.",
        "which port does the staging database listen on?",
        "",
        "?!",
    ]
) | st.text(max_size=80)
_STATEMENTS = st.builds(
    told,
    _TEXTS,
    st.floats(0, 400) | st.just(UNKNOWN),
    st.sampled_from(("", "Ada", "Bob")),
    assistant=st.booleans(),
)
_CLOSENESS = st.floats(-1, 1) | st.just(UNKNOWN)


@pytest.mark.promise("recall.current")
@given(_STATEMENTS, _STATEMENTS, _CLOSENESS)
def test_a_probability_is_one_and_stands_for_a_later_statement(
    older: Statement, newer: Statement, closeness: float
) -> None:
    """It lies between 0 and 1, and is 0 where the second was not said later or either asks."""
    found = replacement_probability(older, newer, closeness)
    assert 0.0 <= found <= 1.0
    assert len(replacement_features(older, newer, closeness)) == len(FEATURES)
    if found:
        assert is_possible(older, newer)
        assert older.at < newer.at
        assert not any(statement.reading.asks for statement in (older, newer))
        assert not replacement_probability(newer, older, closeness)


@given(_STATEMENTS, _CLOSENESS)
def test_nothing_replaces_what_says_the_same(statement: Statement, closeness: float) -> None:
    """The same words a day later are no change."""
    at = statement.at + DAY
    later = Statement(statement.text, at, statement.speaker, statement.assistant, statement.reading)
    assert replacement_probability(statement, later, closeness) == 0.0


def test_no_question_has_a_part_in_it() -> None:
    """What is known of two statements holds no word and no score of a question."""
    assert list(signature(replacement_probability).parameters) == ["older", "newer", "closeness"]
    assert not [
        name for name in FEATURES if name.split()[-1] in {"asked", "meaning", "gap", "past"}
    ]


@pytest.mark.parametrize(
    ("older", "newer", "speakers", "possible"),
    [
        ("I live in Berlin.", "I live in Porto.", ("Ada", "Ada"), True),
        ("I live in Berlin.", "I live in Porto.", ("Ada", "Bob"), False),
        ("I live in Berlin.", "I live in Porto.", ("Ada", ""), True),
        ("Ada: I live in Berlin.", "Bob: I live in Porto.", ("", ""), False),
        ("Ada: I live in Berlin.", "Ada: I live in Porto.", ("", ""), True),
        ("Ada lives in Berlin.", "Ada lives in Porto now.", ("Bob", "Carl"), True),
        ("Boxing on Mondays, as ever.", "Boxing on Fridays, as ever.", ("Bob", "Carl"), False),
        ("Boxing on Mondays, as ever.", "Boxing on Fridays, as ever.", ("Bob", "Bob"), True),
        ("Ada lives in Berlin.", "I live in Porto.", ("Bob", "Ada"), False),
    ],
)
def test_who_speaks_of_themselves_replaces_nothing_of_another_one(
    older: str, newer: str, speakers: tuple[str, str], possible: bool
) -> None:
    """Two people in the first person have a life each; of a third both may tell that it changed."""
    first, second = told(older, 0, speakers[0]), told(newer, 30, speakers[1])
    assert is_possible(first, second) == possible
    if not possible:
        assert replacement_probability(first, second, 0.9) == 0.0


def test_an_assistant_speaks_of_whom_it_answers() -> None:
    """ "I have noted" of an assistant is not the first person."""
    first = told("The rent of the flat is 950 euros.", 0, "Ada")
    second = told("I noted it: the rent of the flat is 1,020 euros.", 30, "Helper", assistant=True)
    assert is_possible(first, second)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The office is in Berlin on the third floor.", "The office remains where it was."),
        ("The office is in Berlin.", "The office is still in Berlin."),
        ("The rent of the flat is 950 euros.", "The rent of the flat stayed the same."),
        ("The rent of the flat is 950 euros.", "The rent of the flat is unchanged so far."),
        ("Wir wohnen in der Lindenstraße 5.", "Wir wohnen weiterhin in der Lindenstraße."),
        ("Das Büro ist in Wien.", "Das Büro bleibt vorerst dort."),
        ("El despacho está en Madrid.", "El despacho sigue donde estaba."),
        ("Le bureau est à Lyon.", "Le bureau reste où il était."),
        ("O escritório é em Lisboa.", "O escritório continua no mesmo lugar."),
    ],
)
def test_what_says_that_it_is_still_so_replaces_nothing(older: str, newer: str) -> None:
    """In five languages, as long as no day and no number is new in it."""
    assert read_statement(newer).unchanged
    assert chance(older, newer) == 0.0


def test_a_new_day_or_number_may_replace_whatever_stayed() -> None:
    """ "We still rent it, for 1,020 euros now" is news."""
    for older, newer in (
        ("The rent of the flat is 950 euros.", "We stay in the flat, the rent is 1,020 euros."),
        ("The office opens on Mondays.", "The office remains where it was, on Fridays."),
    ):
        assert read_statement(newer).unchanged
        assert is_possible(told(older, 0), told(newer, 30))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # Whatever the older one tells, the newer one tells too.
        ("I changed my dentist, it is Doctor Weiss now.", "My dentist, Doctor Weiss, is fine."),
        # What somebody complains of is no value.
        ("The winter tyres are in the cellar.", "The winter tyres are far too heavy."),
        ("The message queue is Kafka now.", "The message queue was stuck again."),
        ("Emil's maths tutor is Benoit.", "Emil hates maths."),
        # A word that neither is about.
        ("Our S3 bucket is called heron.", "Leo's thesis is now called Bogs remember."),
    ],
)
def test_no_mark_without_a_subject_in_common_and_another_value(older: str, newer: str) -> None:
    """However alike and close the two are."""
    assert chance(older, newer, closeness=0.95) == 0.0


def test_a_complaint_may_tell_of_a_change() -> None:
    """With a word of change, or a number, it is a value as any other."""
    older = "The winter tyres are in the cellar."
    assert chance(older, "The winter tyres are useless, they are in the shed now.") > 0.0
    assert chance("My rent is 950 euros.", "My rent is far too high, 1,020 euros.") > 0.0


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        # Another value, and a negation.
        ("My rent is 950 euros a month.", "My rent is 1,020 euros a month.", SURE),
        ("I eat meat.", "I do not eat meat.", SURE),
        # Several may hold at once, or the newer one is only thought of.
        ("Mia likes green tea.", "Mia likes green apples.", 0.0),
        ("The web server moves on Monday.", "The web server might move on Friday.", 0.0),
        # Other things, of which one may have changed.
        ("The car insurance is 112 euros.", "The house insurance is 94 euros.", 0.0),
        ("Server alpha runs Debian 12.", "Server beta runs Ubuntu 24.04.", 0.0),
        (
            "The key of the garage is in the blue drawer.",
            "The key of the attic is on the mat now.",
            0.0,
        ),
        (
            "The search database listens on port 6015.",
            "We moved the staging database, it listens on port 5439 now.",
            0.0,
        ),
        # Nothing but a weekday in common.
        ("Lunch is on Monday.", "We travel on Monday.", 0.0),
    ],
)
def test_wordings_tell_it_whatever_the_vectors_say(older: str, newer: str, expected: float) -> None:
    """Where both are worded alike, no closeness changes what they say."""
    for closeness in (UNKNOWN, 0.1, 0.95):
        assert chance(older, newer, closeness=closeness) == expected


def test_two_places_that_differ_are_a_change_where_the_newer_one_says_so() -> None:
    """ "My gym is now Crunch and costs 45" after "my gym is Fitline and costs 30"."""
    older = "My gym is Fitline and costs 30 euros a month."
    assert chance(older, "My gym is Crunch and costs 45 euros a month.") == 0.0
    assert chance(older, "My gym is now Crunch and costs 45 euros a month.") > REPLACED


@pytest.mark.parametrize(
    ("older", "newer", "reason"),
    [
        (
            "My rent is 950 euros.",
            "My rent is 1,020 euros.",
            "another value of rent: 950, then 1,020",
        ),
        ("I eat meat.", "I do not eat meat.", "a negation of meat"),
        (
            "The rent of the small flat over the bakery is 950 euros.",
            "Since spring our rent has gone up to 1,020 euros.",
            "a later statement of rent, probability 0.70: 950, then 1,020",
        ),
        ("Snow falls.", "Lunch is at noon.", "a later statement, probability 0.70"),
    ],
)
def test_a_reason_names_the_wording_or_how_sure_it_is(older: str, newer: str, reason: str) -> None:
    """What tells a change is said in words, and what it is a change of."""
    assert reason_of(told(older, 0, "Ada"), told(newer, 30, "Ada"), 0.7) == reason


@pytest.mark.parametrize(
    ("text", "subjects", "attributes", "values"),
    [
        (
            "The staging database listens on port 5433.",
            "databas stage",
            "number port",
            "5433 port",
        ),
        (
            "We moved the staging database to port 5439.",
            "databas stage",
            "number port",
            "5439 port",
        ),
        ("Mara lives in Ghent.", "mara", "", "ghent"),
        ("Mara moved to Turin.", "mara", "", "turin"),
        ("My desk phone is 4417.", "@ada desk phone", "number", "4417"),
        ("The landlord raised our rent to 1,040 euros.", "landlord rent", "number euro", None),
        ("The choir is on Thursdays.", "choir", "day", "thursday"),
        ("The stand-up is at 9:15.", "stand stand-up", "number time", None),
        ("The parser lives in src/lang/parser.py.", "parser src/lang/parser.py", "path", None),
        ("Wir wohnen in der Lindenstraße 5.", None, "number lindenstrass", "5"),
    ],
)
def test_keys_are_read_of_one_text(
    text: str, subjects: str | None, attributes: str, values: str | None
) -> None:
    """Words before the verb, paths and the speaker; days, times, numbers with their words."""
    keys = read_keys(read_statement(text), "Ada Lind")
    if subjects is not None:
        assert keys.subjects == set(subjects.split())
    assert " ".join(sorted(keys.attributes)) == attributes
    if values is not None:
        assert keys.values == set(values.split())


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("The staging database is on port 5433.", "We moved the staging database.", True),
        ("Our podcast is hosted at Acast.", "We moved our podcast to Podbean.", True),
        ("Leo's thesis is called Bogs.", "Our S3 bucket is called heron.", False),
        ("Rent is debited on Mondays.", "Training is on Mondays.", False),
        ("Mara lives in Ghent.", "We had a letter from Mara.", True),
        ("I live in Berlin.", "I work at the harbour.", True),
    ],
)
def test_statements_of_one_thing_share_a_subject(one: str, other: str, shared: bool) -> None:
    """A word of what one is about stands in the other; what is said of it does not count."""
    pair = [(read, read.keys) for read in map(read_statement, (one, other))]
    assert share_a_subject(*pair[0], *pair[1]) is shared
    assert share_a_subject(*pair[1], *pair[0]) is shared


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_contradicts_itself(one: str, other: str) -> None:
    """The same text, or one that says nothing new, is no contradiction, whatever it holds."""
    assert not seem_to_contradict(one, one)
    assert isinstance(seem_to_contradict(one, other), bool)
    assert json.dumps(one)


TOLD = "Mara told us that the printer café is in Ghent."


def _statement(text: str, day: float, speaker: str = "") -> Statement:
    return Statement(text, day * DAY, speaker, assistant=False, reading=read_statement(text))


PARTS = [
    name
    for name, part in vars(StatementReading).items()
    if isinstance(part, property | cached_property) and not name.startswith("_")
]


def _list_parts(reading: StatementReading) -> dict[str, object]:
    """All that is read of a text, but how long it is and how it is written."""
    return {name: getattr(reading, name) for name in PARTS if name not in ("size", "head")}


@pytest.mark.parametrize(
    "text",
    [
        "  " + TOLD.replace(" ", "  ") + " \n",
        TOLD.replace(" ", "\t"),
        TOLD.replace("é", "e\u0301"),
    ],
    ids=["spaces", "tabs", "decomposed"],
)
def test_spaces_and_normal_forms_change_no_reading(text: str) -> None:
    assert read_statement(text) == read_statement(TOLD)
    assert words_of(text) == words_of(TOLD)


def test_lines_stay_apart() -> None:
    assert read_statement("Is it far\nYes, a day.").asks is False
    assert read_statement("one  line\nanother   one ") == read_statement("one line\nanother one")


def test_final_marks_are_not_counted() -> None:
    with_marks, without = read_statement(f"{TOLD}..."), read_statement(TOLD.rstrip("."))
    assert with_marks.size == without.size == len(TOLD) - 1


@pytest.mark.parametrize(
    "question",
    [
        "Where is our podcast hosted?",
        "What is the desk phone?",
        "On which day is boxing?",
        "Jonas: Who is my dentist?",
        "¿Dónde está la llave?",
        "Whens the last time you had one?",
    ],
)
def test_a_question_without_its_mark_tells_nothing_either(question: str) -> None:
    asked, bare = read_statement(question), read_statement(question.rstrip("?"))
    assert bare.asks
    assert bare.told == asked.told == frozenset()
    assert _list_parts(bare) == _list_parts(asked)


@pytest.mark.parametrize(
    "text",
    [
        "Will: lawyer in Kranach Street, copy in Elsbeth's desk.",
        "What a day.",
        "When I get home I cook.",
        "I liked it. Where did you learn to make it?",
        "Really?",
    ],
)
def test_a_text_asks_the_same_without_its_last_mark(text: str) -> None:
    whole, bare = read_statement(text), read_statement(text[:-1])
    assert _list_parts(whole) == _list_parts(bare)


WORDS_OF_MANY = sorted(
    {
        *("Ghent", "I.", "not", "5433", "9:15", "src/a.py", "May", "3rd", "locker", "3", "now?"),
        *("a=b", "=", "getUserName", "1,040"),
        *(word for language in languages().values() for word in language.written),
        *(f"{word}?" for language in languages().values() for word in language.written),
    }
)


@given(
    st.one_of(
        st.text(max_size=200),
        st.sampled_from([text for pair in ONE_FACT + TWO_FACTS for text in pair]),
        st.lists(st.sampled_from(WORDS_OF_MANY), max_size=12).map(" ".join),
    )
)
@example("Are you sure? I am not. We moved the server to port 5439 on Monday, 9:15.")
@example("¿Dónde vive María? Ya no vive aquí. Wir wohnen in der Lindenstraße 5.")
@example("\ud800 \x1c a\tb")
@example("I know it. " + "word " * 2_000 + "Why?")
def test_what_is_kept_of_a_reading_is_that_reading(text: str) -> None:
    kept = keep_reading(text)
    assert "\n" not in kept
    assert _list_parts(read_statement(text, kept)) == _list_parts(read_statement(text))


def test_what_is_kept_is_not_read_again() -> None:
    text = "Mara lives in Ghent."
    reading = read_statement(text, keep_reading(text).replace("ghent", "turin"))
    assert reading.words == {"mara", "live", "turin"}
    assert reading.keys.values == {"turin"}


@pytest.mark.parametrize("wiped", [0, 1, 9, 12, 24])
def test_what_was_kept_of_another_text_is_not_believed(wiped: int) -> None:
    """Nor what is wiped just then: a line is overwritten from its beginning."""
    kept, text = keep_reading("Mara lives in Ghent."), "Mara lives in Turin."
    assert read_statement(text, kept).words == read_statement(text).words
    assert read_statement("Mara lives in Ghent.", kept[wiped:]).words == {"mara", "live", "ghent"}


def test_a_standing_instruction_is_one_with_more_spaces_too() -> None:
    assert turn_flags("  From  now  on,  answer  in  French.") == STANDING


def test_a_short_question_loses_as_much_with_more_spaces() -> None:
    question, cues = "Where is it, " + "so " * 25 + "far?", read_cues("where is it")
    wide = question.replace(" ", "     ")
    assert len(wide) > 100
    losses = [answer_loss(read_statement(text), 1.0, cues) for text in (wide, question)]
    assert losses[0] == losses[1] > 0


@pytest.mark.parametrize(
    "text",
    [
        "For Kestrel, MySQL is gone.",
        "Yes, Mara is in Porto.",
        "Our family car is still a Fiat.",
        "The key of the garage is with Paula.",
    ],
)
def test_capitals_change_nothing_that_is_read(text: str) -> None:
    small = text.casefold()
    assert _list_parts(read_statement(text)) == _list_parts(read_statement(small))
    keys = read_keys(read_statement(text), "Mara Lind")
    assert keys == read_keys(read_statement(small), "mara lind")


def test_no_feature_counts_capitals_of_one_text() -> None:
    assert not {"new name", "name in both", "other names", "other name"} & set(CURRENCY_FEATURES)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Mara still lives in Porto.", "Mara still lives in Ghent."),
        ("I still go to boxing on Mondays.", "I still go to boxing on Saturdays."),
        ("Ada: I drink tea now.", "Ben: I drink tea without milk now."),
    ],
)
def test_small_letters_replace_what_capitals_do(older: str, newer: str) -> None:
    told, small = (
        (_statement(form(older), 0), _statement(form(newer), 30)) for form in (str, str.lower)
    )
    assert is_possible(*told) == is_possible(*small)
    assert replacement_probability(*told, 0.8) == pytest.approx(
        replacement_probability(*small, 0.8)
    )


@pytest.mark.parametrize("text", ["I used to live there", "I'm in Porto", "My desk", "Mine is red"])
def test_who_speaks_of_themselves_in_small_letters_is_personal(text: str) -> None:
    assert read_statement(text.lower()).personal
    assert turn_flags(text.lower()) & PERSONAL


@pytest.mark.parametrize("text", ["i.e. the port", "the i/o port", "option (a), i-beam"])
def test_another_i_is_not_personal(text: str) -> None:
    assert not read_statement(text).personal


@pytest.mark.parametrize(("one", "other"), TWO_FACTS)
def test_two_facts_are_never_one(one: str, other: str) -> None:
    """Opposites, swaps, other numbers, times, names and moods are told apart."""
    assert not same_fact(one, other)
    assert not same_fact(other, one)


def test_most_restatements_are_one() -> None:
    """Of the paraphrases, those that differ in form only are one; the rest stays two."""
    for half, least in ((ONE_FACT[::2], 0.7), (ONE_FACT[1::2], 0.7)):
        share = sum(same_fact(one, other) for one, other in half) / len(half)
        assert share >= least, [pair for pair in half if not same_fact(*pair)]


SENTENCES = st.sampled_from([text for pair in TWO_FACTS + ONE_FACT for text in pair])


@settings(max_examples=300, deadline=None)
@given(st.text() | SENTENCES, st.text() | SENTENCES)
@example("", "")
@example("!!", "??")
@example("one million " * 2000, "\ud800")
def test_it_is_symmetric_and_reflexive(one: str, other: str) -> None:
    """Order of the arguments does not matter, and every text is the same as itself."""
    assert same_fact(one, other) == same_fact(other, one)
    assert same_fact(one, one)


@settings(max_examples=300, deadline=None)
@given(SENTENCES, st.data())
def test_one_word_more_is_another_fact(sentence: str, data: st.DataObject) -> None:
    """Putting a word that carries meaning anywhere into a text makes it another fact."""
    words = sentence.split(" ")
    extra = data.draw(st.sampled_from(["not", "never", "7", "Zoe", "only", "might", "no", "was"]))
    at = data.draw(st.integers(0, len(words)))
    assert not same_fact(sentence, " ".join([*words[:at], extra, *words[at:]]))


@pytest.mark.parametrize("unit", ["a", "-", "a.", "/", "1,", "'", "a_", ":", "is not ", "one "])
def test_long_texts_end(unit: str) -> None:
    """A text of 20,000 characters of any one shape is read within the time-out."""
    long = unit * (20_000 // len(unit))
    assert not same_fact(long, long + " not")
