"""The lane of turns: what was said in conversations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from anaphora.recall.lanes import Lane, LaneAnswer, LaneHit, SearchRequest, make_answer
from anaphora.recall.render import version_lines
from anaphora.values.conversations import RelatedTurn, TurnChoice, TurnHit
from anaphora.values.search import SearchHit
from anaphora.values.search_kinds import TURN

if TYPE_CHECKING:
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.places import SessionPlaces

_WIDER: Final = 3
_NO_BUDGET: Final = 1 << 40


def turn_lane(turns: ConversationRecall, places: SessionPlaces) -> Lane:
    """The lane over the turns of all conversations."""
    return Lane(
        "conversations",
        (TURN,),
        frozenset(("speaker", "times", "project")),
        partial(_search_turns, turns, places),
    )


def _search_turns(
    turns: ConversationRecall, places: SessionPlaces, request: SearchRequest
) -> LaneAnswer:
    choice = request.choice
    silent_times: list[str] = []
    recall = turns.recall(
        None,
        request.question,
        top_k=_WIDER * request.top_k if request.own else request.top_k,
        budget=_NO_BUDGET,
        exclude=choice.exclude,
        choice=TurnChoice(
            choice.since, choice.until, choice.speaker, conversations=request.sessions
        ),
        min_confidence=request.floor,
        read=request.read,
        silent_times=silent_times,
    )
    folders = places.all()

    def convert(hit: TurnHit, score: float) -> LaneHit:
        folder = folders.get(hit.conversation_id)
        project = "" if folder is None else folder.repository or folder.directory
        # The title of its conversation, if that is among what the turn was found by.
        title = turns.title_of(hit.conversation_id) if "title" in hit.factors else ""
        excerpt, matches = request.show(hit.text)
        search_hit = SearchHit(
            TURN.name,
            _turn_id(hit),
            hit.text,
            excerpt,
            hit.score,
            matches,
            hit.ts,
            speaker=hit.speaker or hit.role,
            title=title,
            project=project,
            conversation_id=hit.conversation_id,
            index=hit.index,
            current=hit.current,
            versions=tuple(version_lines(hit)),
            factors=hit.factors,
            answers=hit.answers,
            read=hit.read,
            older_than="" if (newer := hit.older_than) is None else _turn_id(newer),
        )
        # The turns and conversations that it was said in.
        said: tuple[TurnHit | RelatedTurn, ...] = (hit, *hit.occurrences)
        keys = {key for turn in said for key in (_turn_id(turn), turn.conversation_id)}
        return LaneHit(search_hit, score, (hit.role, hit.speaker or ""), frozenset(keys))

    return make_answer(recall, convert, tuple(silent_times))


def _turn_id(turn: TurnHit | RelatedTurn) -> str:
    return f"{turn.conversation_id}#{turn.index}"
