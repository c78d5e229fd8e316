"""Words of the user inside the output of tools: answers to questions, why a call was refused.

A program asks through a tool (Claude Code's AskUserQuestion, Codex's request_user_input), and lets
a plan or a call be refused in words. Those are read here, and plans, which are the assistant's
words. Nothing that any other tool puts out is ever taken for words of the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from anaphora.ingest.importers.tools import decoded, output_text

_ASKS: Final = frozenset({"askuserquestion", "requestuserinput", "askuser", "askquestion"})
_PLANS: Final = frozenset({"exitplanmode"})

_ANSWERED: Final = re.compile(
    r"\s*(?:Your questions? ha(?:s|ve) been answered|(?:The )?user (?:has )?answered)\b[^:\n]*:\s*",
    re.IGNORECASE,
)
_AFTER_ANSWERS: Final = ("You can now continue with", "Read the answers carefully")
_ANSWER: Final = re.compile(
    r"""(?:"(?P<answer>.*)"|\(no\ option\ selected\))
    (?:\s+selected\ preview:.*?)?
    (?:\s+(?:user\ )?notes:\s*(?P<notes>.*))?""",
    re.DOTALL | re.VERBOSE,
)
_LONGEST_ANSWER: Final = 20_000
_NOTHING: Final = frozenset({"", "unanswered", "(no answer provided)", "(no option selected)"})
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOTE: Final = "user_note:"

_REFUSED: Final = re.compile(
    r"\s*(?:Error:\s*)?(?:The user doesn['\u2019]t want to |Permission for this tool use was denied"
    r"|The agent proposed a plan that was rejected|User rejected |The tool use was rejected)"
)
_REASON: Final = re.compile(
    r"the user (?:said|provided the following reason for the rejection)\s*:\s*", re.IGNORECASE
)
_AFTER_REASON: Final = ("Note: The user's next message may contain",)
_CLARIFIES: Final = "The user wants to clarify these questions"
_ASKED_LINE: Final = re.compile(r'\s*- "(?P<question>.*)"\s*')
_ANSWER_LINE: Final = re.compile(r"\s+(?:Answer|User notes):\s*(?P<words>.*)")
_REJECTED_PLAN: Final = re.compile(r"^Rejected plan:[ \t]*\n", re.MULTILINE)
_APPROVED_PLAN: Final = re.compile(
    r"^## Approved Plan(?P<edited> \(edited by user\))?:[ \t]*\n", re.M
)


def asks(tool: object) -> bool:
    """Whether a tool of this name asks the user."""
    return _plain(tool) in _ASKS


def plans(tool: object) -> bool:
    """Whether a tool of this name shows the user a plan."""
    return _plain(tool) in _PLANS


def plan_of(given: object) -> str:
    """The plan in what such a tool was called for, or gave; "" where it has none."""
    value = decoded(given)
    found = value.get("plan") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def plan_told(output: object) -> tuple[str, bool]:
    """The plan that an output repeats, and whether the user has changed it."""
    text = output_text(output)
    if found := _APPROVED_PLAN.search(text):
        return text[found.end() :].strip(), bool(found["edited"])
    found = _REJECTED_PLAN.search(text) if _REFUSED.match(text) else None
    if found is None:
        return "", False
    reason = _REASON.search(text, found.end())
    return text[found.end() : reason.start() if reason else None].strip(), False


def refusal_of(output: object, feedback: object = None) -> str:
    """The words with which a user refused a call; "" where the refusal has none.

    `feedback` is the program's own record of them, if there is one. Of questions that are to be
    asked anew they are the answers that were given all the same.
    """
    text = output_text(output)
    found = _REASON.search(text) if _REFUSED.match(text) else None
    words = text[found.end() :] if found else feedback if isinstance(feedback, str) else ""
    words = _without_tail(words, _AFTER_REASON).strip()
    return _joined(_clarified(words)) if words.startswith(_CLARIFIES) else words


def answers_of(given: object, result: object, output: object) -> str:
    """Each question that was answered, with the answer; "" where there is none.

    `given` is what the tool was called for, `result` the program's own record of what it gave, if
    there is one, `output` what the model was told.
    """
    questions = dict(_questions(decoded(given)))
    for value in (decoded(result), decoded(output_text(output))):
        if not isinstance(value, Mapping):
            continue
        answers = value.get("answers")
        if isinstance(answers, Mapping | list):
            questions = dict(_questions(value)) | questions
            return _joined(_recorded(questions, answers, value.get("annotations")))
    return _told(list(questions.values()), output_text(output))


def _plain(tool: object) -> str:
    """The name of a tool without that of its server, in one spelling."""
    name = tool if isinstance(tool, str) else ""
    return re.sub(r"[^a-z]", "", re.split(r"__|[./:]", name)[-1].lower())


def _questions(given: object) -> Iterator[tuple[str, str]]:
    """The questions in a call, by their ids, else by themselves."""
    asked = given.get("questions") if isinstance(given, Mapping) else None
    for one in asked if isinstance(asked, list) else ():
        if isinstance(one, Mapping) and isinstance(text := one.get("question"), str):
            name = one.get("id")
            yield (name if isinstance(name, str) and name else text), text
    if isinstance(given, Mapping) and isinstance(text := given.get("question"), str):
        yield text, text


def _recorded(
    questions: Mapping[str, str], answers: object, annotations: object
) -> Iterator[tuple[str, str]]:
    """Questions and answers of a program's record: by id or question, or in the same order."""
    if isinstance(answers, list):
        answers = dict(zip(questions or map(str, range(len(answers))), answers, strict=False))
    notes = annotations if isinstance(annotations, Mapping) else {}
    names = dict.fromkeys([*(answers if isinstance(answers, Mapping) else ()), *notes])
    for name in names:
        answer = answers.get(name) if isinstance(answers, Mapping) else None
        note = notes.get(name)
        words = [*_parts(answer), *_parts(note.get("notes") if isinstance(note, Mapping) else "")]
        # An id that no question has tells nothing.
        own = "" if _ID.fullmatch(str(name)) else str(name)
        question = questions.get(str(name), own)
        yield question, "; ".join(dict.fromkeys(words))


def _parts(answer: object) -> Iterator[str]:
    """The answers to one question, one by one."""
    if isinstance(answer, str):
        words = answer.strip().removeprefix(_NOTE).strip()
        if words.lower() not in _NOTHING:
            yield words
    elif isinstance(answer, list):
        for part in answer:
            yield from _parts(part)
    elif isinstance(answer, Mapping):
        for name in ("answers", "answer", "value", "text", "label", "notes", "other"):
            yield from _parts(answer.get(name))


def _told(questions: Sequence[str], text: str) -> str:
    """Questions and answers out of what the model was told."""
    head = _ANSWERED.match(text)
    if head is None:
        return ""
    rest = _without_tail(text[head.end() :], _AFTER_ANSWERS).removesuffix(".")
    begins: list[tuple[int, int, str]] = []
    at = 0
    for question in questions:
        mark = f'"{question}"='
        begin = rest.find(mark, at)
        if begin >= 0:
            at = begin + len(mark)
            begins.append((begin, at, question))
    if not begins:
        return rest.strip()
    ends = [begin for begin, _, _ in begins[1:]] + [len(rest)]
    pairs = []
    for (_, start, question), end in zip(begins, ends, strict=True):
        words = rest[start:end].strip().removesuffix(",").strip()
        found = _ANSWER.fullmatch(words) if len(words) <= _LONGEST_ANSWER else None
        parts = [found["answer"], found["notes"]] if found else [words]
        pairs.append((question, "; ".join(_parts([part or "" for part in parts]))))
    return _joined(pairs)


def _without_tail(text: str, heads: tuple[str, ...]) -> str:
    """A text without its last line, where that is one that the program adds."""
    at = max(map(text.rfind, heads))
    return text if at < 0 or "\n" in text[at:].strip() else text[:at].rstrip()


def _clarified(text: str) -> Iterator[tuple[str, str]]:
    """The answers in a request to ask the questions anew."""
    question, lines = "", list[str]()
    for line in text.splitlines():
        if asked := _ASKED_LINE.fullmatch(line):
            yield question, "\n".join(lines)
            question, lines = asked["question"], []
        elif found := _ANSWER_LINE.fullmatch(line):
            lines += _parts(found["words"])
        elif lines and line.strip():
            lines.append(line)
    yield question, "\n".join(lines)


def _joined(pairs: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(
        f"{question} \u2014 {words}" if question else words for question, words in pairs if words
    )
