"""What do hooks put into prompts unasked? `python -m bench.injection --data DIR`.

Sessions of prompts, each given to the hooks of a session as a client gives them, over a memory that
holds one chat: questions that the chat answers, and prompts that need nothing of it (turns and
questions of another data set, commit messages, questions that it cannot answer). Judged by the
evidence of the sets: how much of what was put in is evidence, how often nothing was put in where
nothing was needed, and the tokens, beside putting in the five best hits always. The stories of
`bench.changes`, told as facts, do the same for memories: there a fact counts that holds the answer.
`fit` finds the weights of `rank/relevance` on chats 1 to 5; what is reported is of the others and
of the stories that are held out. bench/results/injection.json and .md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Final, TypeVar
from uuid import uuid4

from anaphora import Memory
from anaphora.features.coding_agents.hooks.protocols import read_event
from anaphora.features.coding_agents.hooks.session import SessionHooks
from anaphora.features.coding_agents.session_context import MOST_HITS
from anaphora.rank.budget import token_cost
from anaphora.rank.relevance import relevance_features
from anaphora.recall.unasked import turn_evidence
from anaphora.values.conversations import READ_IN_HOOKS
from anaphora.values.search import SearchHit
from bench.changes import ABSENT, FITTED, Story, holds_any, read_stories
from bench.datasets import SETS, Haystack, haystacks
from bench.figures import Figure, at_least, at_most, exactly, keep, run_alone
from bench.fitting import fit_logistic
from bench.homes import home_of, load_reader, tell_once
from bench.projects import read_project_sets
from bench.told import asked_chat

CLIENT: Final = "claude-code"
NEEDED: Final = "answered here"
OTHER_TURN, OTHER_QUESTION, COMMIT, UNANSWERED, CHAT = (
    "turn of another chat",
    "question of another chat",
    "commit message",
    "question without an answer",
    "chit-chat",
)
# What is typed between questions: it needs nothing, whatever it shares with what was said.
CHIT_CHAT: Final = (
    *("thanks, that worked", "perfect, thank you so much!", "ok great", "yes please do that"),
    *("go ahead", "no, not like that", "hmm let me think about it", "lol nice one"),
    *("good morning! how are you today?", "sorry, I had to step away for a bit", "continue"),
    *("can you try again", "looks good to me, ship it", "run the tests again please"),
    *("that is exactly what I meant", "never mind, forget it", "wow, that was fast"),
    *("have a nice weekend!", "see you tomorrow", "I am back, where were we?"),
    *("danke, das hat geklappt", "ja bitte, mach weiter", "merci beaucoup, c'est parfait"),
    *("d'accord, vas-y", "gracias, muy bien", "sí, adelante por favor", "obrigado, ficou ótimo"),
    *("ありがとう、助かりました", "great job so far", "could you make it a bit shorter?"),
    *("ok nevermind", "good weekend!", "yes, do it", "sí, gracias", "danke, gute nacht"),
    *("ok merci", "good night", "commit this", "rename total to amount", "Good night, Noor."),
    *("bis morgen, schönen Feierabend", "à demain, bonne soirée", "hasta mañana, buenas noches"),
    *("valeu, até amanhã", "はい、続けてください", "谢谢，晚安", "好的，继续"),
    "<task-notification><status>completed</status></task-notification>",
)
# Prompts of each kind in a session, evenly spread over what there is.
EACH: Final[Mapping[str, int]] = {NEEDED: 60, OTHER_TURN: 30, OTHER_QUESTION: 20, COMMIT: 20}
ALWAYS: Final = 5
LOOKED_AT: Final = 4
RIDGE: Final = 1.0
FACTS: Final = "stories, as facts"
# The questions that ask for a value that has changed.
CHANGED: Final = ("current", "current-explicit")

Judge = Callable[[SearchHit], bool]
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of a session: what kind it is, which hits are evidence for it, which outdated."""

    kind: str
    text: str
    judge: Judge
    stale: Judge = lambda _: False


@dataclass(frozen=True, slots=True)
class Injected:
    """What one prompt got: hits put in, those of them that are evidence, tokens of the block.

    `always` is the same for the five best hits. `stale` are those that hold an outdated value and
    no mark that says so: beside the new value, and alone. `features` and `labels` are of the turns
    that were looked at, for the fit.
    """

    where: str
    fitted: bool
    kind: str
    hits: int
    evidence: int
    tokens: int
    always: tuple[int, int, int]
    features: tuple[tuple[float, ...], ...] = ()
    labels: tuple[bool, ...] = ()
    stale: tuple[int, int] = (0, 0)


def ask_chats(data: Path, homes: Path | None = None) -> Iterator[Injected]:
    """A session over each chat of both data sets; with `homes` their homes are kept there."""
    chats = {form: [chat for _, chat in haystacks(data, form)] for form, _ in SETS}
    sets = read_project_sets(data / "projects" / "history")
    commits = [question.text for project in sets for question in project.questions]
    for form, own in chats.items():
        (strangers,) = (found for other, found in chats.items() if other != form)
        for at, chat in enumerate(own):
            prompts = list(
                _prompts(
                    chat,
                    strangers[at % len(strangers)],
                    _spread(commits[at :: len(own)], EACH[COMMIT]),
                )
            )
            part, fitted = ("1-5", True) if chat.number <= 5 else ("6-10", False)
            with asked_chat(homes, form, chat) as (memory, _):
                yield from _session(memory, f"{form}, {part}", fitted, prompts)


def _prompts(chat: Haystack, other: Haystack, commits: Sequence[str]) -> Iterator[Prompt]:
    keys = {
        (one.conversation_id, turn.text): (one.conversation_id, turn.key)
        for one in chat.conversations
        for turn in one.turns
    }

    def by(evidence: frozenset[tuple[str, str]]) -> Judge:
        return lambda hit: (
            keys.get((hit.conversation_id, hit.text)) in evidence
            or (hit.conversation_id, "") in evidence
        )

    asked = [q for q in chat.questions if q.evidence]
    for question in _spread(asked, EACH[NEEDED]):
        yield Prompt(NEEDED, question.text, by(question.evidence))
    turns = [
        turn.text
        for one in other.conversations
        for turn in one.turns
        if turn.role == "user" and len(turn.text) > 15
    ]
    nothing = {
        OTHER_TURN: _spread(turns, EACH[OTHER_TURN]),
        OTHER_QUESTION: _spread(
            [q.text for q in other.questions if q.evidence], EACH[OTHER_QUESTION]
        ),
        COMMIT: commits,
        CHAT: CHIT_CHAT,
        UNANSWERED: [
            q.text for q in chat.questions if not q.evidence and "abst" in q.category.lower()
        ],
    }
    for kind, texts in nothing.items():
        for text in texts:
            yield Prompt(kind, text, _never)


def ask_stories(data: Path, homes: Path | None = None) -> Iterator[Injected]:
    """A session over the facts of each story that is held out.

    With `homes` their homes are kept there."""
    for part, stories in read_stories(data).items():
        for at, story in enumerate(stories if part != FITTED else ()):
            with home_of(homes, f"facts-{story['id']}") as home:
                yield from _over_facts(story, stories[(at + 1) % len(stories)], home)


def _over_facts(story: Story, other: Story, home: Path) -> Iterator[Injected]:
    now = [datetime.now(UTC)]
    with Memory.open(home, clock=lambda: now[0]) as memory:

        def tell() -> None:
            for fact in sorted(story["facts"], key=lambda one: str(one["when"])):
                now[0] = datetime.fromisoformat(fact["when"])
                memory.remember(fact["text"], type=fact["type"])
            memory.ready()

        tell_once(home, tell)
        now[0] = max(datetime.fromisoformat(one["now"]) for one in story["questions"])
        yield from _session(memory, FACTS, False, list(_of_story(story, other)))


def _of_story(story: Story, other: Story) -> Iterator[Prompt]:
    for one in story["questions"]:
        if one["kind"] != ABSENT:
            changed = one["kind"] in CHANGED
            outdated = _outdated(one["answer"], one["stale"] if changed else ())
            yield Prompt(NEEDED, one["q"], _holding(one["answer"]), outdated)
    for one in other["questions"]:
        if one["kind"] != ABSENT:
            yield Prompt(OTHER_QUESTION, one["q"], _never)
    for text in CHIT_CHAT:
        yield Prompt(CHAT, text, _never)


def _outdated(answer: Sequence[str], stale: Sequence[str]) -> Judge:
    """Whether a hit holds an outdated value alone, and nothing beside it says so."""
    return lambda hit: (
        holds_any(hit.text, stale)
        and not holds_any(hit.text, answer)
        and hit.current
        and not hit.contradicts
        and not any(line.startswith("earlier than") for line in hit.versions)
    )


def _holding(answer: Sequence[str]) -> Judge:
    return lambda hit: holds_any(" ".join((hit.text, *hit.versions)), answer)


def _is_later(hit: SearchHit) -> Judge:
    return lambda other: other.ts is not None and hit.ts is not None and other.ts > hit.ts


def _never(_: SearchHit) -> bool:
    return False


def _session(
    memory: Memory, where: str, fitted: bool, prompts: Sequence[Prompt]
) -> Iterator[Injected]:
    """What the prompts of one session got, one after the other."""
    # Of a home that is kept, another run's session must not be gone on with.
    session = f"bench-{uuid4().hex}"
    load_reader(memory, READ_IN_HOOKS)
    hooks = SessionHooks(memory, user=Path.home(), background=lambda _: None, clock=lambda: 0.0)
    for prompt in prompts:
        told = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": session,
            "transcript_path": "",
            "cwd": "",
            "prompt": prompt.text,
        }
        event = read_event(CLIENT, told, Path.home())
        assert event is not None
        given = hooks.bearing(event)[:MOST_HITS]
        stale = [hit for hit in given if prompt.stale(hit)]
        right = [hit for hit in given if prompt.judge(hit)]
        block = hooks.answer(CLIENT, json.dumps(told).encode())
        found = memory.search(
            prompt.text,
            kinds=("memory", "note", "turn"),
            top_k=3 * MOST_HITS,
            exclude=prompt.text,
            min_confidence=0.0,
            budget=1 << 30,
            read=READ_IN_HOOKS,
        )
        best = list(found.hits)[:ALWAYS]
        turns = [hit for hit in found.hits if hit.kind == "turn"]
        seen = [turn_evidence(prompt.text, hit) for hit in turns]
        looked = range(min(LOOKED_AT, len(turns)) if fitted else 0)
        yield Injected(
            where,
            fitted,
            prompt.kind,
            len(given),
            sum(map(prompt.judge, given)),
            token_cost(block) if given else 0,
            (len(best), sum(map(prompt.judge, best)), sum(token_cost(hit.snippet) for hit in best)),
            tuple(relevance_features(seen, at) for at in looked),
            tuple(prompt.judge(turns[at]) for at in looked),
            (sum(any(map(_is_later(hit), right)) for hit in stale), 0 if right else len(stale)),
        )


def _spread(found: Sequence[ItemT], most: int) -> Sequence[ItemT]:
    return found[:: max(1, len(found) // most)][:most]


def fit(seen: Sequence[Injected]) -> tuple[list[float], float]:
    """The weights of the features and the constant; each set's two groups count the same."""
    rows = [
        ((one.where, one.kind == NEEDED), features, label)
        for one in seen
        if one.fitted
        for features, label in zip(one.features, one.labels, strict=True)
    ]
    # Where a reader is installed, a few may be unread because time had run out.
    most = max(len(features) for _, features, _ in rows)
    rows = [row for row in rows if len(row[1]) == most]
    sizes = Counter(group for group, _, _ in rows)
    return fit_logistic(
        [features for _, features, _ in rows],
        [label for _, _, label in rows],
        [100.0 / sizes[group] for group, _, _ in rows],
        RIDGE,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def measured(seen: Sequence[Injected]) -> list[Figure]:
    """The figures that have a target, over all that was held out."""
    held_out = [one for one in seen if not one.fitted]
    chats = [one for one in held_out if one.where != FACTS]
    nothing = [one for one in held_out if one.kind != NEEDED]
    needed = [one for one in chats if one.kind == NEEDED]
    small_talk = [one for one in held_out if one.kind == CHAT]
    return [
        at_least(
            "chats 6 to 10: of what is put in, evidence",
            _share(sum(one.evidence for one in chats), sum(one.hits for one in chats)),
            0.6,
        ),
        at_least(
            "chats and facts: of what is put in, evidence",
            _share(sum(one.evidence for one in held_out), sum(one.hits for one in held_out)),
            0.6,
        ),
        at_least(
            "nothing is put in where nothing is needed",
            _share(sum(not one.hits for one in nothing), len(nothing)),
            0.9,
        ),
        at_least(
            "chats 6 to 10: needs met, prompts that got evidence of those it answers",
            _share(sum(one.evidence > 0 for one in needed), len(needed)),
            0.45,
        ),
        at_least(
            "chit-chat gets nothing",
            _share(sum(not one.hits for one in small_talk), len(small_talk)),
            1.0,
        ),
        exactly(
            "facts: outdated values beside the new one, without a mark",
            sum(one.stale[0] for one in held_out),
            0,
        ),
        at_most(
            "facts: outdated values alone, the new one not found",
            sum(one.stale[1] for one in held_out),
            9,
            "",
        ),
        Figure(
            "the five best hits, always: evidence",
            _share(sum(o.always[1] for o in held_out), sum(o.always[0] for o in held_out)),
        ),
        Figure(
            "the five best hits, always: tokens a prompt",
            fmean(one.always[2] for one in held_out),
            "tokens",
        ),
        Figure("tokens a prompt", fmean(one.tokens for one in held_out), "tokens"),
    ]


def run(data: Path) -> list[Figure]:
    """Ask everything; print and keep the figures."""
    figures = measured([*ask_chats(data), *ask_stories(data)])
    keep("injection", "What is put into prompts unasked", figures)
    return figures


if __name__ == "__main__":
    run_alone("bench.injection", __doc__, run)
