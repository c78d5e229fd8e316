"""Analysis of a question, and of an answer, by their words alone.

The form that two equal questions share; a wider form, to find text that must be erased; whether a
question asks about the whole of a history (counting, order, time, completeness: no handful of hits
can answer it); whether an answer says anything; and the first searches for a question, all made of
its own words. English, and the usual words of German, French and Spanish.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import chain, zip_longest
from typing import Final

from anaphora.features.deep.evidence.scope import ScopedEvidence
from anaphora.features.deep.values import DeepSource
from anaphora.language.analyser import STOP_WORDS, fold, query_terms

# Over folded text: small letters, no accents.
_WHOLE: Final = {
    "counting": (
        r"how (?:many|much|often|frequently|long|old)\b(?! (?:is|are) (?:the|your|his|her) name)",
        r"\b(?:number|count|total|sum|amount|average|mean|majority|percentage|share) of\b",
        r"\bin total\b|\baltogether\b|\bcount (?:the|all|how|up)\b|\bhow (?:many|few)er\b",
        r"\b(?:times|days|weeks|months|years) (?:did|have|has|had|was|were|do|does)\b",
        r"\b(?:once|twice|three times|several times|more than once)\b.*\?",
        r"\b(?:most|least) (?:often|frequent(?:ly)?|common(?:ly)?|mentioned|recent(?:ly)?)\b",
        r"\bevery (?:time|day|week|month|single)\b|\beach (?:time|of the)\b",
        r"\b(?:which|what|who) .{0,40}\b(?:most|least)\b",
        r"\bwie (?:viele?|oft|haufig|lange|alt)\b|\banzahl\b|\binsgesamt\b"
        r"|\bam (?:haufigsten|meisten)\b",
        r"\bcombien\b|\bnombre (?:de|d'|total)\b|\ba quelle frequence\b|\bau total\b"
        r"|\ble plus souvent\b",
        r"\bcuant[oa]s?\b|\bnumero de\b|\bcon que frecuencia\b|\ben total\b|\bmas a menudo\b",
    ),
    "order": (
        r"\b(?:first|last|latest|earliest|newest|oldest|final|initial|original)(?:ly)?\b",
        r"\b(?:before|after|afterwards|since|until|till|prior to|following|next|previous(?:ly)?)\b",
        r"\b(?:order|sequence|chronolog\w+|timeline|evol(?:ve|ved|ution)|progress(?:ed|ion)?)\b",
        r"\b(?:most )?recent(?:ly)?\b|\bso far\b|\bup to now\b|\bchange[ds]?\b.*\bover\b"
        r"|\bover time\b",
        r"\b(?:earlier|later|sooner) than\b|\bhow did .{0,60}\b(?:develop|change|evolve)\b",
        r"\b(?:zuerst|zuletzt|erste[nmrs]?|letzte[nmrs]?|fruheste\w*|neueste\w*|vorher|nachher)\b",
        r"\b(?:bevor|nachdem|seit|bisher|danach|davor|reihenfolge|der reihe nach)\b",
        r"\b(?:premiere?s?|premierement|dernier(?:e|s|es)?|derniere?ment|avant|apres|depuis"
        r"|jusqu)\b",
        r"\b(?:d'abord|ensuite|l'ordre|recemment|jusqu'a present)\b",
        r"\b(?:primer[oa]?s?|ultim[oa]s?|antes|despues|desde|hasta|luego|orden|recientemente)\b",
    ),
    "time": (
        r"\bwhen\b|\bwhat (?:date|day|time|month|year|week)\b|\bwhich (?:date|day|month"
        r"|year|week)\b",
        r"\b(?:yesterday|today|tonight|ago|last (?:night|week|month|year|time)|this (?:week"
        r"|month|year))\b",
        r"\bon (?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\bduring\b|\bbetween\b.*\band\b",
        r"\b(?:in|by|around) (?:january|february|march|april|may|june|july|august|september"
        r"|october|november|december)\b|\bin (?:19|20)\d\d\b",
        r"\b(?:wann|gestern|heute|vorgestern|vor \w+ (?:tag|woche|monat|jahr)\w*)\b",
        r"\ban welchem (?:tag|datum)\b|\bwelches datum\b",
        r"\bquand\b|\bhier\b|\baujourd'hui\b|\bil y a\b|\bquel(?:le)? (?:date|jour|annee"
        r"|mois|heure)\b",
        r"\bcuando\b|\bayer\b|\bhoy\b|\bhace \w+|\bque (?:dia|fecha|ano|mes|hora)\b"
        r"|\ben que fecha\b",
    ),
    "completeness": (
        r"\b(?:list|enumerate|name|show|give me|tell me|find|collect|summari[sz]e) (?:me )?"
        r"(?:all|every|each|any|everything|the (?:different|various|list))\b",
        r"^(?:please )?(?:list|enumerate|summari[sz]e|recap|compare)\b|\b(?:summary"
        r"|overview|recap) of\b",
        r"\ball (?:the|of|my|our|your|his|her|their)\b|\beverything\b|\beveryone\b"
        r"|\ball\b.*\b(?:that|which)\b",
        r"\bever\b|\balways\b|\bnever\b|\bany (?:other|more)\b|\bwhat else\b|\bwho else\b",
        r"\bin common\b|\bcompare\b|\bdifferen(?:t|ces?)\b|\bboth\b|\bcontradict\w*\b"
        r"|\bconsistent\w*\b",
        r"\b(?:alle[rsn]?|samtliche|liste auf|aufzahlen|jemals|immer|nie|zusammenfass\w+"
        r"|vergleich\w*)\b",
        r"\b(?:tou(?:te)?s|enumere\w*|jamais|toujours|resume[rsz]?|compare[rz]?)\b",
        r"\b(?:tod[oa]s|enumera\w*|jamas|siempre|nunca|resum\w+|compar\w+)\b",
    ),
}
_PATTERNS: Final = {
    kind: re.compile("|".join(f"(?:{regex})" for regex in regexes))
    for kind, regexes in _WHOLE.items()
}

# An answer that opens by saying that there is none, or consists of nothing else.
_NOTHING: Final = re.compile(
    r"^(?:(?:i(?:'m| am)? |we |the (?:model|search|history|conversations?|memor\w+|evidence) )?"
    r"(?:sorry\W+)?(?:but )?(?:i |we )?"
    r"(?:could(?: not|n't)|can(?:not|'t| not)|was(?: not|n't)? (?:un)?able to|am unable to"
    r"|were unable to|unable to|did(?: not|n't)|do(?: not|n't)|does(?: not|n't)|have not|haven't)"
    r" (?:actually |directly |explicitly |even )*(?:find|found|locate|determine|answer|see"
    r"|know|have"
    r"|identify|recall|contain|mention|provide|say|tell|be found|be determined|discover)\b)"
    r"|^(?:there (?:is|are|was|were) (?:no|not|nothing|neither)|nothing (?:was|is|has been"
    r"|about|in|found)"
    r"|no (?:\w+ ){0,4}(?:evidence|information|mention|record|records|answer|result|results|data"
    r"|relevant|match|matches|turn|turns|memory|memories|trace|details?)\b"
    r"|not (?:found|mentioned|known|available|specified|discussed|stated|enough|sure)\b"
    r"|(?:unknown|none|nothing|null|n/?a|nil|no answer|no idea|i don't know|it is (?:not "
    r"|un)(?:known"
    r"|clear|mentioned|stated|specified))\b"
    r"|(?:ich|wir) (?:konnte|konnten|habe|haben) .{0,40}\b(?:nicht|nichts|keine?)\b"
    r"|es (?:konnte|wurde) .{0,40}\b(?:nichts|keine?)\b"
    r"|(?:keine?|nichts) .{0,40}\b(?:gefunden|bekannt|information\w*|hinweis\w*)"
    r"|(?:je|nous) n'(?:ai|avons) (?:pas|rien|trouve)|aucune? (?:information|mention|trace"
    r"|resultat)"
    r"|no (?:he|hemos|se|pude|encontre|hay|pudo)\b|ningun\w* (?:informacion|resultado|mencion))"
)
_HOLLOW: Final = 240
"""Characters beyond which an answer that opens by saying nothing may still tell something."""
_BUT: Final = re.compile(r"\b(?:but|however|although|except|only|aber|jedoch|mais|pero)\b")


# One question mark after a word (or after the space that French puts there) asks nothing else;
# after a sign it may belong to the sign ("a+?", "int??").
_ASKS: Final = re.compile(r"(?<=[^\W_])\s*[?\uff1f\u061f]\Z")


def question_form(question: str) -> str:
    """A question without its case, extra white space and one "?" at its end.

    Every other character stays: C++ is not C#, -5 not +5, $5 not 5%, schön not schon. Equal forms
    are one question; to miss an equal one costs only time.
    """
    # Lower case, not case folding, which makes "Maße" equal to "Masse".
    lower_question = unicodedata.normalize("NFC", unicodedata.normalize("NFC", question).lower())
    return _ASKS.sub("", " ".join(lower_question.split()))


def fold_for_erasure(text: str) -> str:
    """A text without case, accents, punctuation and extra space: to find text that must be erased.

    Different texts may become equal, so nothing is ever returned by it. A text of nothing but
    punctuation is only stripped.
    """
    spaced_text = "".join(" " if unicodedata.category(c)[0] in "PSZC" else c for c in fold(text))
    return " ".join(spaced_text.split()) or text.strip()


def asks_about_the_whole(question: str) -> str | None:
    """Which kind of whole a question asks about: counting, order, time, completeness; else None.

    Answering such a question from the best few hits is a guess, however good the hits are.
    """
    # Longer than any question: a longer text must not take long to match.
    text = fold(question[:2_000]).replace("\u2019", "'")
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.search(text)), None)


def says_nothing(answer: str) -> bool:
    """Whether an answer is none: empty, or it says that nothing was found."""
    text = " ".join(fold(answer).replace("\u2019", "'").split()).strip(" .!\"'*_`-")
    if not text:
        return True
    if not _NOTHING.search(text):
        return False
    # "I could not find the date, but she said in March that …" tells something.
    return len(text) <= _HOLLOW and not _BUT.search(text)


QUERIES: Final = 4
HITS: Final = 8
SHOWN: Final = 16

_QUOTED = re.compile(
    r"[\"“”«]([^\"“”»]{3,120})[\"“”»]|`([^`]{2,120})`|(?<!\w)'([^']{3,120})'(?!\w)"
)
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:of|the|de|von|van)?\s*[A-Z][\w'’-]*)*|\b\w*\d\w*\b")
_PARTS = re.compile(
    r"[,;:?!]\s+|\s+(?:and|or|but|than|before|after|when|while|because|between|versus|vs\.?)\s+",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^\s*(?:please\s+)?(?:(?:can|could|do|did|does|would)\s+(?:you|we|i)\s+)?(?:tell me|remember|"
    r"how (?:many|much|often|long)|in (?:which|what)|what(?:'s| is| was| were| did| do| does)?|"
    r"which|who|whom|whose|when|where|why|how|list|count|find|show me)\b[\s:,]*(?:times\s+)?"
    r"(?:(?:did|do|does|was|were|is|are|has|have|had)\b\s*)?",
    re.IGNORECASE,
)


def seed_queries(question: str) -> tuple[str, ...]:
    """Up to 4 different queries for `question`, itself first.

    The others are: its quotations, names and numbers; the question without its interrogative
    words ("how often did"); and its longest parts. One with the same terms as an earlier one is
    left out.
    """
    quoted_phrases = [
        " ".join(filter(None, match.groups())) for match in _QUOTED.finditer(question)
    ]
    # The first word of a question is always capitalised.
    names = [m.group() for m in _NAME.finditer(question) if m.start() > 0]
    bare = _ASKING.sub("", question)
    parts = [part for part in _PARTS.split(bare) if part]
    longest = sorted(parts, key=len, reverse=True) if len(parts) > 1 else []
    queries: list[str] = []
    seen_terms: set[frozenset[str]] = set()
    for query in (question.strip(), " ".join([*quoted_phrases, *names]), bare, *longest):
        terms = frozenset(query_terms(query))
        if terms and terms not in seen_terms and not terms <= STOP_WORDS:
            seen_terms.add(terms)
            queries.append(query)
    return tuple(queries[:QUERIES])


def first_hits(evidence: ScopedEvidence, question: str) -> tuple[DeepSource, ...]:
    """The hits of all seed queries, the best of each in turn; at most 16."""
    lists = [evidence.search(query, HITS) for query in seed_queries(question)]
    best_by_id: dict[str, DeepSource] = {}
    for hit in chain.from_iterable(zip_longest(*lists)):
        if hit is not None:
            best_by_id.setdefault(hit.id, hit)
    return tuple(best_by_id.values())[:SHOWN]
