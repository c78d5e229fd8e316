"""The first lines of a package: how strong it is, on what evidence, what to open.

In: what the package will hold. Out: at most four lines, the first with strength and evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.values.projects import ContextMemory, HistoryEvidence, Quality, Target

if TYPE_CHECKING:
    from anaphora.recall.context.ranked import Ranked

_SHOWN: Final = 3


def brief(
    quality: Quality,
    ranked: Ranked,
    targets: Sequence[Target],
    memories: Sequence[ContextMemory],
    history: Sequence[HistoryEvidence],
) -> tuple[str, ...]:
    """Strength and evidence; the targets; what notes there are; what was before."""
    return tuple(_lines(quality, ranked, targets, memories, history))[:4]


def _lines(
    quality: Quality,
    ranked: Ranked,
    targets: Sequence[Target],
    memories: Sequence[ContextMemory],
    history: Sequence[HistoryEvidence],
) -> Iterator[str]:
    kinds = Counter(m.kind for m in memories if m.importance is not None or m.kind == "diary")
    yield f"{quality.capitalize()}: {_evidence(ranked, kinds.total())}{_ADVICE[quality]}."
    places = list(dict.fromkeys(one.path for one in targets if _is_place(one)))
    if places:
        yield f"Begin with {', '.join(places[:_SHOWN])}."
    if kinds:
        counted = [_counted(kind, number) for kind, number in sorted(kinds.items())]
        yield f"Notes: {', '.join(counted)}."
    if history:
        past = Counter(one.kind for one in history)
        yield f"What was before: {', '.join(_counted(kind, n) for kind, n in past.items())}."


def _evidence(ranked: Ranked, notes: int) -> str:
    """What holds how much of the focus: files, or the notes where no file does."""
    held = ranked.targets.held
    share = round(100 * float(held.max())) if len(held) else 0
    files = int((ranked.targets.files >= 0).sum())
    if files or not notes:
        where = f"{files} file{'s' * (files != 1)} hold{'s' * (files == 1)} words of the focus"
        return f"{where}, the best part {share}% of their weight"
    if notes == 1:
        return f"no file, but a note holds words of the focus, {share}% of their weight"
    return f"no file, but {notes} notes hold words of the focus, the best {share}% of their weight"


def _is_place(target: Target) -> bool:
    return target.start_line is not None or target.kind == "module"


_ADVICE: Final[dict[Quality, str]] = {
    "strong": "",
    "partial": "; verify before acting on it",
    "weak": "; little direct support, verify everything",
}


def _counted(kind: str, number: int) -> str:
    name = kind.replace("_", " ")
    if kind == "diary":
        return f"{number} diary entr{'y' if number == 1 else 'ies'}"
    return f"{number} {name}{'s' * (number != 1)}"
