"""Words of the user inside the output of tools: answers to questions, why a call was refused.

A program asks through a tool (Claude Code's AskUserQuestion, Codex's request_user_input), and lets
a plan or a call be refused in words. Those are read here, and plans, which are the assistant's
words. Nothing that any other tool puts out is ever taken for words of the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from anaphora.features.importing.formats.tools import decoded, output_text

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
    return _normalise(tool) in _ASKS


def plans(tool: object) -> bool:
    """Whether a tool of this name shows the user a plan."""
    return _normalise(tool) in _PLANS


def plan_of(given: object) -> str:
    """The plan in what such a tool was called for, or gave; "" if it has none."""
    call = decoded(given)
    plan = call.get("plan") if isinstance(call, Mapping) else None
    return plan if isinstance(plan, str) else ""


def read_plan_output(output: object) -> tuple[str, bool]:
    """The plan that an output repeats, and whether the user has changed it."""
    text = output_text(output)
    if match := _APPROVED_PLAN.search(text):
        return text[match.end() :].strip(), bool(match["edited"])
    match = _REJECTED_PLAN.search(text) if _REFUSED.match(text) else None
    if match is None:
        return "", False
    reason = _REASON.search(text, match.end())
    return text[match.end() : reason.start() if reason else None].strip(), False


def refusal_of(output: object, feedback: object = None) -> str:
    """The words with which a user refused a call; "" if the refusal has none.

    `feedback` is the program's own record of them, if there is one. Of questions that are to be
    asked anew they are the answers that were given all the same.
    """
    text = output_text(output)
    match = _REASON.search(text) if _REFUSED.match(text) else None
    words = text[match.end() :] if match else feedback if isinstance(feedback, str) else ""
    words = _cut_tail(words, _AFTER_REASON).strip()
    if not words.startswith(_CLARIFIES):
        return words
    # A request to ask the questions anew, with the answers so far.
    pairs: list[tuple[str, str]] = []
    question, lines = "", list[str]()
    for line in words.splitlines():
        if question_line := _ASKED_LINE.fullmatch(line):
            pairs.append((question, "\n".join(lines)))
            question, lines = question_line["question"], []
        elif answer_line := _ANSWER_LINE.fullmatch(line):
            lines += _split_answer(answer_line["words"])
        elif lines and line.strip():
            lines.append(line)
    return _join_pairs([*pairs, (question, "\n".join(lines))])


def answers_of(given: object, result: object, output: object) -> str:
    """Each question that was answered, with the answer; "" if there is none.

    `given` is what the tool was called for, `result` the program's own record of what it gave, if
    there is one, `output` what the model was told.
    """
    questions = dict(_read_questions(decoded(given)))
    for record in (decoded(result), decoded(output_text(output))):
        if not isinstance(record, Mapping):
            continue
        answers = record.get("answers")
        if isinstance(answers, Mapping | list):
            questions = dict(_read_questions(record)) | questions
            return _join_pairs(_pair_recorded(questions, answers, record.get("annotations")))
    # Without a record: out of what the model was told.
    text = output_text(output)
    head = _ANSWERED.match(text)
    if head is None:
        return ""
    answers_text = _cut_tail(text[head.end() :], _AFTER_ANSWERS).removesuffix(".")
    begins: list[tuple[int, int, str]] = []
    at = 0
    for question in questions.values():
        mark = f'"{question}"='
        begin = answers_text.find(mark, at)
        if begin >= 0:
            at = begin + len(mark)
            begins.append((begin, at, question))
    if not begins:
        return answers_text.strip()
    ends = [begin for begin, _, _ in begins[1:]] + [len(answers_text)]
    pairs = []
    for (_, start, question), end in zip(begins, ends, strict=True):
        words = answers_text[start:end].strip().removesuffix(",").strip()
        match = _ANSWER.fullmatch(words) if len(words) <= _LONGEST_ANSWER else None
        parts = [match["answer"], match["notes"]] if match else [words]
        pairs.append((question, "; ".join(_split_answer([part or "" for part in parts]))))
    return _join_pairs(pairs)


def _normalise(tool: object) -> str:
    """The name of a tool without that of its server, in one spelling."""
    name = tool if isinstance(tool, str) else ""
    return re.sub(r"[^a-z]", "", re.split(r"__|[./:]", name)[-1].lower())


def _read_questions(call: object) -> Iterator[tuple[str, str]]:
    """The questions in a call, by their ids, else by themselves."""
    questions = call.get("questions") if isinstance(call, Mapping) else None
    for question in questions if isinstance(questions, list) else ():
        if isinstance(question, Mapping) and isinstance(text := question.get("question"), str):
            name = question.get("id")
            yield (name if isinstance(name, str) and name else text), text
    if isinstance(call, Mapping) and isinstance(text := call.get("question"), str):
        yield text, text


def _pair_recorded(
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
        words = [
            *_split_answer(answer),
            *_split_answer(note.get("notes") if isinstance(note, Mapping) else ""),
        ]
        # An id that no question has tells nothing.
        fallback = "" if _ID.fullmatch(str(name)) else str(name)
        question = questions.get(str(name), fallback)
        yield question, "; ".join(dict.fromkeys(words))


def _split_answer(answer: object) -> Iterator[str]:
    """The answers to one question, one by one."""
    if isinstance(answer, str):
        words = answer.strip().removeprefix(_NOTE).strip()
        if words.lower() not in _NOTHING:
            yield words
    elif isinstance(answer, list):
        for part in answer:
            yield from _split_answer(part)
    elif isinstance(answer, Mapping):
        for name in ("answers", "answer", "value", "text", "label", "notes", "other"):
            yield from _split_answer(answer.get(name))


def _cut_tail(text: str, heads: tuple[str, ...]) -> str:
    """A text without its last line, where that is one that the program adds."""
    at = max(map(text.rfind, heads))
    return text if at < 0 or "\n" in text[at:].strip() else text[:at].rstrip()


def _join_pairs(pairs: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(
        f"{question} \u2014 {words}" if question else words for question, words in pairs if words
    )
